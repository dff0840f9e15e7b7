// SPDX-License-Identifier: Apache-2.0
// How many packets a second one receiving thread takes from another over UDP on loopback, with and without coalescing: udp_rate [seconds] [packet bytes].
//
// The receiver reads the first eight bytes of each packet and throws it away. The sender sends as fast as it can, so part of the packets is lost
// when the receiver is the slower one; `seen` is what counts. Both threads are pinned when there are two cores. `per_cpu_s` divides by the CPU
// time of the receiving thread instead of the time on the clock: on a busy machine it is the figure to compare.
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "nanet/link/udp.hpp"

namespace {

using nanet::link::Coalesce;
using Clock = std::chrono::steady_clock;

void pin_to(unsigned core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core % std::max(1u, std::thread::hardware_concurrency()), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

double thread_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Result {
  double seen_per_s;
  double seen_per_cpu_s;
  double sent_per_s;
  double lost_share;
  double packets_per_call;
  double copied_share;
};

Result measure(Coalesce coalesce, double seconds, std::uint32_t packet_bytes) {
  nanet::link::UdpConfig config;
  config.listen = nanet::link::parse_endpoint("udp://127.0.0.1:0");
  config.packet_bytes_max = packet_bytes;
  config.gro = coalesce;
  nanet::link::UdpLink receiver(config);
  nanet::link::UdpConfig sending;
  sending.destinations = {receiver.local()};
  sending.gso = coalesce;
  nanet::link::UdpLink sender(sending);

  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> sum{0};
  std::thread sending_thread([&] {
    pin_to(1);
    constexpr std::size_t kBatch = 448;  // of 56 packets in 65,408 bytes
    std::vector<std::byte> payload(kBatch * packet_bytes);
    std::vector<nanet::link::TxPacket> packets;
    for (std::size_t i = 0; i < kBatch; ++i) {
      packets.push_back({payload.data() + i * packet_bytes, packet_bytes, 0});
    }
    while (!stop.load(std::memory_order_relaxed)) {
      sender.send(packets, 0);
    }
  });
  pin_to(0);
  std::vector<std::uint64_t> room((std::size_t{1} << 20) / 8);  // stays in the second-level cache of most machines
  std::vector<nanet::link::RxPacket> packets(2048);
  std::uint64_t seen = 0;
  std::uint64_t headers = 0;
  const double cpu_start_s = thread_cpu_s();
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    const auto bytes = std::as_writable_bytes(std::span(room));
    const auto batch = receiver.receive(bytes, packets, 0);
    for (std::uint32_t i = 0; i < batch.packet_count; ++i) {
      std::uint64_t header = 0;
      std::memcpy(&header, bytes.data() + packets[i].offset, std::min<std::size_t>(sizeof header, packets[i].bytes));
      headers += header;
    }
    seen += batch.packet_count;
  }
  const double elapsed_s = std::chrono::duration<double>(Clock::now() - start).count();
  const double cpu_s = thread_cpu_s() - cpu_start_s;
  stop = true;
  sending_thread.join();
  sum = headers;  // so that the reading is not optimised away
  const auto rx = receiver.stats();
  const auto tx = sender.stats();
  return {static_cast<double>(seen) / elapsed_s,
          static_cast<double>(seen) / cpu_s,
          static_cast<double>(tx.tx_packets) / elapsed_s,
          1.0 - static_cast<double>(seen) / static_cast<double>(std::max<std::uint64_t>(1, tx.tx_packets)),
          static_cast<double>(rx.rx_packets) / static_cast<double>(std::max<std::uint64_t>(1, rx.rx_batches)),
          static_cast<double>(rx.rx_copied_bytes) / static_cast<double>(std::max<std::uint64_t>(1, rx.rx_bytes))};
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2.0;
  const auto packet_bytes = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 1168);
  if (seconds <= 0 || packet_bytes == 0 || packet_bytes > 65'507) {
    std::fprintf(stderr, "usage: udp_rate [seconds > 0] [packet bytes 1..65507]\n");
    return 2;
  }
  for (const Coalesce coalesce : {Coalesce::on, Coalesce::off}) {
    const Result r = measure(coalesce, seconds, packet_bytes);
    std::printf(
        "udp_rate coalesce=%-3s packet_bytes=%u seen_Mpackets_per_s=%.3f seen_Gb_per_s=%.2f seen_Mpackets_per_cpu_s=%.3f "
        "sent_Mpackets_per_s=%.3f lost=%.3f packets_per_call=%.1f copied=%.4f\n",
        coalesce == Coalesce::on ? "on" : "off", packet_bytes, r.seen_per_s / 1e6, r.seen_per_s * packet_bytes * 8 / 1e9,
        r.seen_per_cpu_s / 1e6, r.sent_per_s / 1e6, r.lost_share, r.packets_per_call, r.copied_share);
  }
  return 0;
}
