// SPDX-License-Identifier: Apache-2.0
#include "writer_process.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <vector>

#include "nanet/rdma/notify_ring.hpp"
#include "target_process.hpp"

namespace nanet::test {

WriterProcess::WriterProcess(const std::string& transports, std::uint16_t port, const std::string& region) {
  const std::string number = std::to_string(port);
  pid_ = fork();
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  execl("/proc/self/exe", "test_rdma", "--writer", transports.c_str(), number.c_str(), region.c_str(), nullptr);
  _exit(127);
}

void WriterProcess::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

namespace {

int write_ring(rdma::Connection connection) {
  rdma::NotifyWriter ring{std::move(connection)};
  std::vector<std::byte> memory(RING_PAYLOAD_BYTES_MAX);
  for (std::uint64_t number = 0;;) {
    const std::span<std::byte> data = std::span(memory).first(ring_payload_bytes(number));
    fill_pattern(data, number);
    const std::span<const std::byte> payload = data;
    const auto sent = ring.send(std::span(&payload, 1));
    if (sent.status != rdma::Status::ok) return 1;
    number += sent.count;
  }
}

int write_whole(rdma::Connection connection) {
  const std::size_t bytes = connection.bytes();
  const std::vector<std::byte> memory(
      64 * bytes, std::byte{1});  // more than caches hold: it copies slower than the other side, and is killed while it does
  for (std::size_t turn = 0;; ++turn)
    if (connection.put(0, std::span(memory).subspan(turn % 64 * bytes, bytes)) != rdma::Status::ok) return 1;
}

}  // namespace

int run_writer(const std::string& transports, const std::string& port, const std::string& region) {
  alarm(300);
  try {
    rdma::Worker worker(worker_config(transports));
    rdma::Connection connection(
        worker,
        {.address = target_address(), .port = static_cast<std::uint16_t>(std::stoul(port)), .region = region, .token = TARGET_TOKEN});
    return region == "ring" ? write_ring(std::move(connection)) : write_whole(std::move(connection));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "writer: %s\n", error.what());
    return 1;
  }
}

}  // namespace nanet::test
