// SPDX-License-Identifier: Apache-2.0
// What two receive queues on two cores take against one queue on one: udp_queues [rounds] [packets a queue]. Engines with lanes (cpu_cores.lanes),
// protocol raw, processor count, 1168 B.
//
// A sender would need the cores that receive. So in each round the sockets are filled first, and then the engine is started; the time is that from
// its start to the last packet, the best of all rounds. `per_cpu_s` divides by the CPU time of the process instead: on a busy machine it is the
// figure to compare; there two_over_one_by_cpu is what two undisturbed cores would take. The main thread looks every 0.1 ms and else sleeps.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "nanet/engine/engine.hpp"
#include "nanet/engine/kinds.hpp"
#include "nanet/engine/protocol.hpp"
#include "nanet/link/udp.hpp"

namespace {

using nanet::flow::Counter;

constexpr std::uint32_t kPacketBytes = 1168;
constexpr std::uint32_t kSegments = 56;  // of one message

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

nanet::engine::EngineConfig config_for(std::uint32_t queues, bool gro) {
  nanet::engine::EngineConfig config;
  config.processor = std::make_shared<nanet::engine::CountProcessor>();
  config.waiting = {.spin = 100, .sleep_us = 1000};
  for (std::uint32_t q = 0; q < queues; ++q) config.cpu_cores.lanes.push_back(static_cast<int>(q));
  nanet::engine::LinkConfig& link = config.links.emplace_back();
  link.name = "boards";
  link.protocol = &nanet::engine::kRaw;
  link.endpoint = "udp://127.0.0.1:0";
  link.gro = gro;
  link.socket_buffer_bytes = 512u << 20;
  link.memory_region = {.name = "region", .buffer_count = 4};  // stays in the second-level cache of most machines
  if (queues > 1) link.section = nanet::link::UdpConfig{.queues = queues, .steer_by = nanet::link::SteerBy::key};
  return config;
}

// Messages whose packets all have the key of one queue, until each queue has `packets`.
void fill(std::uint16_t port, std::uint32_t queues, std::uint64_t packets) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  const int segment_bytes = static_cast<int>(kPacketBytes);
  ::setsockopt(fd, IPPROTO_UDP, 103 /* UDP_SEGMENT */, &segment_bytes, sizeof segment_bytes);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(port);
  std::vector<std::uint8_t> message(std::size_t{kSegments} * kPacketBytes);
  for (std::uint64_t sent = 0; sent < packets; sent += kSegments) {
    for (std::uint32_t q = 0; q < queues; ++q) {
      for (std::uint32_t s = 0; s < kSegments; ++s) message[std::size_t{s} * kPacketBytes] = static_cast<std::uint8_t>(q);
      if (::sendto(fd, message.data(), message.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) < 0)
        std::perror("sendto");
    }
  }
  ::close(fd);
}

struct Round {
  std::uint64_t packets = 0;
  double wall_s = 0;
  double cpu_s = 0;
};

// The packets that fitted into the sockets, and how long the engine took for them.
Round measure(std::uint32_t queues, bool gro, std::uint64_t packets) {
  nanet::engine::Engine engine(config_for(queues, gro));
  fill(engine.inputs().front().link->local().port, queues, packets);
  std::uint64_t waiting = (packets + kSegments - 1) / kSegments * kSegments * queues;
  for (const nanet::engine::Input& input : engine.inputs()) {
    waiting -= input.link->stats().rx_kernel_dropped * (gro ? kSegments : 1);
  }
  const double cpu_start_s = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  const double start_s = seconds_of(CLOCK_MONOTONIC);
  engine.start();
  Round round{.packets = waiting};
  do {
    ::usleep(100);
    round.wall_s = seconds_of(CLOCK_MONOTONIC) - start_s;
    round.cpu_s = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_start_s;
  } while (engine.total(Counter::packets_accepted) < waiting && round.wall_s < 10);
  if (engine.total(Counter::packets_accepted) != waiting) std::fprintf(stderr, "not all packets came\n");
  return round;
}

struct Best {
  double per_s = 0;
  double per_cpu_s = 0;
  std::uint64_t packets = 0;

  void add(const Round& round) {
    const auto count = static_cast<double>(round.packets);
    per_s = std::max(per_s, count / round.wall_s);
    per_cpu_s = std::max(per_cpu_s, count / round.cpu_s);
    packets = round.packets;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  const long packets = argc > 2 ? std::atol(argv[2]) : 20'000;
  if (rounds <= 0 || packets <= 0) {
    std::fprintf(stderr, "usage: udp_queues [rounds > 0] [packets a queue > 0]\n");
    return 2;
  }
  for (const bool gro : {true, false}) {
    Best one, two;
    for (int round = 0; round < rounds; ++round) {  // in turns, so that both meet what else the machine does
      one.add(measure(1, gro, static_cast<std::uint64_t>(packets)));
      two.add(measure(2, gro, static_cast<std::uint64_t>(packets)));
    }
    std::printf(
        "udp_queues coalesce=%-3s packets_a_queue=%llu one_Mpackets_per_s=%.3f two_Mpackets_per_s=%.3f two_over_one=%.2f "
        "one_Mpackets_per_cpu_s=%.3f two_Mpackets_per_cpu_s=%.3f two_over_one_by_cpu=%.2f\n",
        gro ? "on" : "off", static_cast<unsigned long long>(one.packets), one.per_s / 1e6, two.per_s / 1e6, two.per_s / one.per_s,
        one.per_cpu_s / 1e6, two.per_cpu_s / 1e6, 2 * two.per_cpu_s / one.per_cpu_s);
  }
  return 0;
}
