// SPDX-License-Identifier: Apache-2.0
// Cost of putting units together, without a link: nanoseconds a packet and what one core could take, from packets that lie in the second-level cache,
// as those of a receive batch do, to 64 units of 1 MiB.
//
//   bench_assembler [--csv FILE] [--seconds S]
//
// copy is the same memcpy alone, to the same places: what no assembler can be faster than. The figure is the best of 9 repeats.
//
// Then the same over a socket on loopback, from a sender as fast as it can be, with a header of 20 bytes: packets in a second of the receiving thread's
// processor time, by the link alone, which reads each header, and by the assembling receiver. What is lost when the sender is faster is in both.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "nanet/engine/assembler.hpp"
#include "nanet/engine/assembling_receiver.hpp"
#include "nanet/link/udp.hpp"

namespace {

using namespace nanet;

constexpr std::uint32_t kUnitBytes = 1 << 20;
constexpr std::uint32_t kUnits = 256;
constexpr std::uint32_t kBatch = 64;

enum class Order { ascending, pairs, shuffled };
constexpr const char* kOrderNames[] = {"ascending", "pairs swapped", "shuffled"};

std::vector<std::uint32_t> places(Order order, std::uint32_t packets) {
  std::vector<std::uint32_t> all(packets);
  std::iota(all.begin(), all.end(), 0u);
  if (order == Order::pairs) {
    for (std::uint32_t k = 0; k + 1 < packets; k += 2) std::swap(all[k], all[k + 1]);
  }
  std::mt19937 random(1);
  if (order == Order::shuffled) std::shuffle(all.begin(), all.end(), random);
  return all;
}

double seconds(const auto& work) {
  double best = 1e9;
  for (int repeat = 0; repeat < 9; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

struct Figures {
  double ns_a_packet, copy_ns;
};

Figures measure(std::uint32_t payload_bytes, Order order) {
  flow::Clop clop({.name = "units",
                   .buffer_count = 64,
                   .buffer_bytes = kUnitBytes,
                   .index_capacity = engine::Assembler::index_capacity(kUnitBytes),
                   .huge_pages = true,
                   .locked = false});
  flow::CompletionQueue queue(128);
  engine::Assembler assembler({.streams_max = 1, .units_open = 4}, clop, queue);
  const std::vector<std::byte> batch(std::size_t{kBatch} * payload_bytes, std::byte{7});
  const std::uint32_t packets = (kUnitBytes + payload_bytes - 1) / payload_bytes;
  const std::vector<std::uint32_t> numbers = places(order, packets);
  std::uint64_t unit = 0, now_ns = 1;
  const double own = seconds([&] {
    for (std::uint32_t u = 0; u < kUnits; ++u, ++unit) {
      for (std::uint32_t k = 0; k < packets; ++k) {
        const std::uint64_t place = std::uint64_t{numbers[k]} * payload_bytes;
        const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(payload_bytes, kUnitBytes - place));
        assembler.take({.stream = 1, .unit = unit, .place = place, .unit_bytes = kUnitBytes, .payload_bytes = bytes},
                       std::span(batch).subspan(std::size_t{k % kBatch} * payload_bytes, bytes), ++now_ns);
      }
      while (queue.peek() != nullptr) {
        queue.pop();
        clop.release();
      }
    }
  });
  std::uint32_t buffer = 0;
  const double copy = seconds([&] {
    for (std::uint32_t u = 0; u < kUnits; ++u) {
      for (std::uint32_t k = 0; k < packets; ++k) {
        const std::uint64_t place = std::uint64_t{numbers[k]} * payload_bytes;
        const std::size_t bytes = std::min<std::uint64_t>(payload_bytes, kUnitBytes - place);
        std::memcpy(clop.buffer(buffer).data() + place, batch.data() + std::size_t{k % kBatch} * payload_bytes, bytes);
      }
    }
  });
  if (assembler.counters().value(flow::Counter::units_complete) != unit) std::fprintf(stderr, "units are missing\n");
  const double all = double{kUnits} * packets;
  return {1e9 * own / all, 1e9 * copy / all};
}

// --- the list of accepted streams ---

struct FilterFigures {
  double turns_ns, mixed_ns, foreign_ns, take_ns;
};

// A list of `count` streams, one a range; 0: none, and 64 streams. ns a packet by the filter alone: streams in turns, in any order, and none of the list;
// and by filter and assembler, in turns, with payloads of 64 B.
FilterFigures measure_filter(std::uint32_t count) {
  constexpr std::uint32_t kPackets = 1 << 14;
  const std::uint32_t streams = count == 0 ? 64 : count;
  std::vector<engine::StreamRangeConfig> ranges;
  for (std::uint32_t k = 0; k < count; ++k) ranges.push_back({.first = 10 * k, .last = 10 * k + 3});
  engine::StreamFilter filter(ranges);
  std::mt19937 random(1);
  std::vector<std::uint64_t> turns, mixed, foreign;
  for (std::uint32_t k = 0; k < kPackets; ++k) {
    turns.push_back(10 * (k % streams));
    mixed.push_back(10 * (random() % streams));
    foreign.push_back(10 * (random() % streams) + 5);
  }
  volatile std::uint32_t refused = 0;
  const auto alone = [&](const std::vector<std::uint64_t>& keys) {
    return 1e9 / kPackets * seconds([&] {
             std::uint32_t sum = 0;
             for (const std::uint64_t key : keys) sum += filter.refuses(key) ? 1 : 0;
             refused = sum;
           });
  };
  constexpr std::uint32_t kBytes = 4096, kPayload = 64;
  flow::Clop clop({.name = "units",
                   .buffer_count = 256,
                   .buffer_bytes = kBytes,
                   .index_capacity = engine::Assembler::index_capacity(kBytes),
                   .huge_pages = true,
                   .locked = false});
  flow::CompletionQueue queue(512);
  engine::Assembler assembler({.streams_max = 64, .units_open = 2}, clop, queue);
  const std::vector<std::byte> payload(kPayload);
  std::uint64_t turn = 0;
  const double take_s = seconds([&] {
    for (std::uint32_t k = 0; k < kPackets; ++k) {
      const std::uint64_t stream = turns[k];
      if (k % streams == 0) ++turn;
      if (filter.refuses(stream)) continue;
      assembler.take(
          {.stream = stream, .unit = turn / 64, .place = turn % 64 * kPayload, .unit_bytes = kBytes, .payload_bytes = kPayload},
          payload, 1000 * turn);
      while (queue.peek() != nullptr) {
        queue.pop();
        clop.release();
      }
    }
  });
  return {alone(turns), alone(mixed), alone(foreign), 1e9 / kPackets * take_s};
}

// --- over a socket ---

constexpr std::uint32_t kHeadBytes = 20;  // place, length of the unit, unit

struct Decoder {
  engine::Inspection decode(std::span<const std::byte> packet, engine::UnitFacts& facts) {
    if (packet.size() < kHeadBytes) return {false, flow::Counter::packets_bad_length};
    std::uint32_t place = 0, unit_bytes = 0;
    std::memcpy(&place, packet.data(), sizeof place);
    std::memcpy(&unit_bytes, packet.data() + 4, sizeof unit_bytes);
    std::memcpy(&facts.unit, packet.data() + 8, sizeof facts.unit);
    facts.place = place;
    facts.unit_bytes = unit_bytes;
    facts.payload_offset = kHeadBytes;
    facts.payload_bytes = static_cast<std::uint32_t>(packet.size() - kHeadBytes);
    return {true, flow::Counter::packets_accepted};
  }
};

// Sends units one after the other until it is told to stop.
class Sender {
 public:
  Sender(const link::Endpoint& to, std::uint32_t packet_bytes) : link_({.destinations = {to}}), packet_bytes_(packet_bytes) {
    thread_ = std::thread([this] { run(); });
  }
  ~Sender() {
    stop_ = true;
    thread_.join();
  }

 private:
  void run() {
    const std::uint32_t payload_bytes = packet_bytes_ - kHeadBytes;
    const std::uint32_t count = kUnitBytes / payload_bytes;
    const std::uint32_t unit_bytes = count * payload_bytes;
    std::vector<std::byte> bytes(std::size_t{count} * packet_bytes_);
    std::vector<link::TxPacket> packets;
    for (std::uint32_t k = 0; k < count; ++k) {
      std::byte* const packet = bytes.data() + std::size_t{k} * packet_bytes_;
      const std::uint32_t head[2] = {k * payload_bytes, unit_bytes};
      std::memcpy(packet, head, sizeof head);
      packets.push_back({packet, packet_bytes_, 0});
    }
    for (std::uint64_t unit = 0; !stop_; ++unit) {
      for (std::uint32_t k = 0; k < count; ++k) std::memcpy(bytes.data() + std::size_t{k} * packet_bytes_ + 8, &unit, sizeof unit);
      link_.send(packets, 0);
    }
  }

  link::UdpLink link_;
  const std::uint32_t packet_bytes_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

double thread_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

link::UdpConfig listening(std::uint32_t packet_bytes) {
  link::UdpConfig config;
  config.listen = link::parse_endpoint("udp://127.0.0.1:0");
  config.packet_bytes_max = packet_bytes;
  return config;
}

// Packets that poll() takes from a link in a second of processor time.
double packets_per_cpu_s(link::UdpLink& link, std::uint32_t packet_bytes, double seconds, const auto& poll) {
  const Sender sender(link.local(), packet_bytes);
  std::uint64_t packets = 0;
  const double start_s = thread_cpu_s();
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) packets += poll();
  return static_cast<double>(packets) / (thread_cpu_s() - start_s);
}

double by_link(std::uint32_t packet_bytes, double seconds) {
  link::UdpLink link(listening(packet_bytes));
  std::vector<std::byte> room(256 * 1024);
  std::vector<link::RxPacket> packets(512);
  volatile std::uint64_t sum = 0;
  return packets_per_cpu_s(link, packet_bytes, seconds, [&] {
    const link::RxBatch batch = link.receive(room, packets, 0);
    for (std::uint32_t k = 0; k < batch.packet_count; ++k) {
      std::uint64_t head = 0;
      std::memcpy(&head, room.data() + packets[k].offset, sizeof head);
      sum = sum + head;
    }
    return batch.packet_count;
  });
}

double by_assembler(std::uint32_t packet_bytes, double seconds, double& complete_share) {
  link::UdpLink link(listening(packet_bytes));
  flow::Clop clop({.name = "units",
                   .buffer_count = 32,
                   .buffer_bytes = kUnitBytes,
                   .index_capacity = engine::Assembler::index_capacity(kUnitBytes),
                   .huge_pages = true,
                   .locked = false});
  flow::CompletionQueue queue(64);
  engine::AssemblingReceiver<Decoder> receiver(
      {}, {.batch_size = 512, .assemble = engine::AssembleConfig{}},
      {.link = link, .clop = clop, .queue = queue, .router = flow::Router({}), .source_count = 1});
  std::uint64_t now_ns = 1;
  const double rate = packets_per_cpu_s(link, packet_bytes, seconds, [&] {
    const std::uint32_t packets = receiver.poll(now_ns += 1000);
    while (queue.peek() != nullptr) {
      queue.pop();
      clop.release();
    }
    return packets;
  });
  const auto count = [&](flow::Counter counter) { return static_cast<double>(receiver.source_counters(0).value(counter)); };
  complete_share = count(flow::Counter::units_complete) / std::max(1.0, count(flow::Counter::units_begun));
  return rate;
}

}  // namespace

int main(int argc, char** argv) {
  std::ofstream csv;
  double duration_s = 1;
  for (int k = 1; k < argc; k += 2) {
    const std::string option = argv[k];
    if (k + 1 < argc && option == "--csv") {
      csv.open(argv[k + 1]);
    } else if (k + 1 < argc && option == "--seconds") {
      duration_s = std::atof(argv[k + 1]);
    } else {
      std::fprintf(stderr, "usage: bench_assembler [--csv FILE] [--seconds S]\n");
      return 2;
    }
  }
  csv << "payload_bytes,order,ns_per_packet,copy_ns_per_packet,gbit_per_s\n";
  std::printf("units of 1 MiB\n%8s  %-14s %10s %10s %8s\n", "payload", "order", "ns/packet", "copy", "Gbit/s");
  for (const std::uint32_t payload_bytes : {1408u, 8192u}) {
    for (const Order order : {Order::ascending, Order::pairs, Order::shuffled}) {
      const auto [ns, copy_ns] = measure(payload_bytes, order);
      const char* const name = kOrderNames[static_cast<int>(order)];
      std::printf("%8u  %-14s %10.1f %10.1f %8.1f\n", payload_bytes, name, ns, copy_ns, 8 * payload_bytes / ns);
      csv << payload_bytes << ',' << name << ',' << ns << ',' << copy_ns << ',' << 8 * payload_bytes / ns << '\n';
    }
  }
  std::printf("\nlist of streams, ns a packet\n%8s  %10s %10s %10s %18s\n", "ranges", "in turns", "mixed", "of none",
              "with assembler");
  for (const std::uint32_t count : {0u, 1u, 16u, 64u}) {
    const auto [turns_ns, mixed_ns, foreign_ns, take_ns] = measure_filter(count);
    std::printf("%8u  %10.1f %10.1f %10.1f %18.1f\n", count, turns_ns, mixed_ns, foreign_ns, take_ns);
  }
  std::printf("\nover a socket\n%8s  %20s %20s %8s %10s\n", "packet", "link [Mpacket/cpu s]", "units [Mpacket/cpu s]", "ratio",
              "complete");
  for (const std::uint32_t packet_bytes : {1428u, 8212u}) {
    double complete_share = 0;
    const double alone = by_link(packet_bytes, duration_s);
    const double units = by_assembler(packet_bytes, duration_s, complete_share);
    std::printf("%8u  %20.3f %20.3f %8.2f %9.0f%%\n", packet_bytes, alone / 1e6, units / 1e6, units / alone, 100 * complete_share);
  }
  return 0;
}
