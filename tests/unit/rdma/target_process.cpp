// SPDX-License-Identifier: Apache-2.0
#include "target_process.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "nanet/rdma/target.hpp"
#include "writer_process.hpp"

namespace nanet::test {

void fill_pattern(std::span<std::byte> data, std::uint64_t seed) {
  std::byte* const to = data.data();
  const std::size_t bytes = data.size();
  for (std::size_t at = 0; at < bytes; ++at) to[at] = pattern_byte(at, seed);
}

std::size_t first_difference(std::span<const std::byte> data, std::uint64_t seed) {
  const std::byte* const from = data.data();
  const std::size_t bytes = data.size();
  for (std::size_t at = 0; at < bytes; ++at)
    if (from[at] != pattern_byte(at, seed)) return at;
  return bytes;
}

std::string target_address() {
  const char* address = std::getenv("NANET_RDMA_ADDRESS");
  return address ? address : "127.0.0.1";
}

std::vector<const char*> ways(std::vector<const char*> usual) {
  if (const char* way = std::getenv("NANET_RDMA_TRANSPORTS")) return {way};
  return usual;
}

std::string way_name(const std::string& transports) {
  return transports.find("posix") == 0 ? "shm" : transports.empty() ? "any" : transports;
}

rdma::WorkerConfig worker_config(const std::string& transports, std::uint32_t keepalive_ms) {
  return {.transports = transports,
          .keepalive_ms = keepalive_ms,
          .address = target_address(),
          .trust_network = transports.find("tcp") != std::string::npos};
}

TargetProcess::TargetProcess(const std::string& transports, std::size_t region_bytes) {
  int in[2], out[2];
  if (pipe(in) != 0 || pipe(out) != 0) throw std::runtime_error("no pipe");
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(in[0], 0);
    dup2(out[1], 1);
    for (const int descriptor : {in[0], in[1], out[0], out[1]}) close(descriptor);
    execl("/proc/self/exe", "test_rdma", "--target", transports.c_str(), std::to_string(region_bytes).c_str(), nullptr);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
  const std::string line = read_line();
  if (line.rfind("port ", 0) != 0) throw std::runtime_error("the target did not start: " + line);
  port_ = static_cast<std::uint16_t>(std::stoul(line.substr(5)));
}

TargetProcess::~TargetProcess() {
  if (pid_ > 0) kill();
  close(to_);
  close(from_);
}

std::string TargetProcess::ask(const std::string& line) {
  const std::string text = line + "\n";
  if (write(to_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) return "the target is gone";
  return read_line();
}

std::string TargetProcess::read_line() {
  std::string line;
  for (char c = 0;;) {
    pollfd descriptor{from_, POLLIN, 0};
    if (poll(&descriptor, 1, 30'000) != 1) return line + " (then nothing for 30 s)";
    if (read(from_, &c, 1) != 1) return line + " (end)";
    if (c == '\n') return line;
    line += c;
  }
}

std::size_t TargetProcess::descriptor_count() const {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid_) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

void TargetProcess::allow_descriptors(std::size_t more) {
  std::set<std::size_t> used;
  for (const auto& one : std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/fd"))
    used.insert(std::stoul(one.path().filename()));
  rlimit limit{};
  prlimit(pid_, RLIMIT_NOFILE, nullptr, &limit);
  std::size_t number = 0;  // a limit is of numbers, the lowest of which is given out first
  for (std::size_t free = 0; free < more; ++number) free += used.contains(number) ? 0 : 1;
  limit.rlim_cur = std::min<rlim_t>(number, limit.rlim_max);
  if (prlimit(pid_, RLIMIT_NOFILE, &limit, nullptr) != 0) throw std::runtime_error("no limit of descriptors");
}

void TargetProcess::stop() {
  ::kill(pid_, SIGSTOP);
  int status = 0;
  waitpid(pid_, &status, WUNTRACED);
  if (!WIFSTOPPED(status)) throw std::runtime_error("the target did not stop");
}

void TargetProcess::resume() { ::kill(pid_, SIGCONT); }

void TargetProcess::kill() {
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int TargetProcess::join() {
  int status = 0;
  for (int turn = 0; turn < 1000; ++turn) {
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    usleep(10'000);
  }
  return -1;
}

namespace {

std::string answer(const std::string& line, rdma::Target& target, std::map<std::string, rdma::Region>& regions) {
  std::istringstream words(line);
  std::string verb, name;
  std::uint64_t offset = 0, bytes = 0, seed = 0;
  words >> verb;
  if (verb == "connections") return std::to_string(target.connection_count());
  if (verb == "refused") return std::to_string(target.refused_count());
  if (verb == "quit") return "bye";
  words >> name >> offset >> bytes >> seed;
  if (verb == "revoke") return target.revoke(name) ? "revoked" : "unknown";
  const std::span<std::byte> data = regions.at(name.substr(0, name.find('-'))).span().subspan(offset, bytes);
  if (verb == "fill") {
    fill_pattern(data, seed);
    return "done";
  }
  const std::size_t at = first_difference(data, seed);
  return at == data.size() ? "same" : "differs " + std::to_string(at);
}

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (write(1, text.data(), text.size()) < 0) _exit(1);
}

}  // namespace

int run_target(const std::string& transports, std::size_t region_bytes) {
  alarm(300);
  try {
    rdma::Worker worker(worker_config(transports));
    std::map<std::string, rdma::Region> regions;
    regions.emplace("shared", rdma::Region(worker, {.name = "shared", .bytes = region_bytes}));
    regions.emplace("host", rdma::Region(worker, {.name = "host", .bytes = region_bytes, .kind = rdma::RegionKind::host}));
    rdma::Target target(worker, {.address = target_address(), .connection_count_max = 3});
    const auto expose = [&](const char* region, const char* name, rdma::Permissions permissions) {
      target.expose(regions.at(region), {.name = name, .permissions = permissions, .token = TARGET_TOKEN});
    };
    expose("shared", "shared", {.read = true, .write = true});
    expose("shared", "shared-read", {.read = true});
    expose("host", "host", {.read = true, .write = true});
    expose("host", "host-read", {.read = true});
    expose("host", "host-write", {.write = true});
    say("port " + std::to_string(target.port()));
    for (std::string line;;) {
      worker.wait(2);
      pollfd descriptor{0, POLLIN, 0};
      if (poll(&descriptor, 1, 0) != 1) continue;
      char c = 0;
      if (read(0, &c, 1) != 1) return 0;  // the test is over
      for (; c != '\n'; line += c, read(0, &c, 1)) {
      }
      say(answer(line, target, regions));
      if (line == "quit") return 0;
      line.clear();
    }
  } catch (const std::exception& error) {
    say(error.what());
    return 1;
  }
}

}  // namespace nanet::test

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--target") == 0) return nanet::test::run_target(argv[2], std::stoul(argv[3]));
  if (argc == 5 && std::strcmp(argv[1], "--writer") == 0) return nanet::test::run_writer(argv[2], argv[3], argv[4]);
  signal(SIGPIPE, SIG_IGN);  // a target that is gone is seen by what it answers
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
