// SPDX-License-Identifier: Apache-2.0
// Cost of the engine without the kernel: nanoseconds an event for check (receiver), fit, decision and answer, from packets in memory.
//
//   bench_processor [--seconds S] [--csv FILE]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "emulate/monte_carlo.hpp"
#include "na62/protocols.hpp"
#include "na62/rich_trigger.hpp"
#include "nanet/engine/event_builder.hpp"
#include "nanet/engine/receiver.hpp"
#include "nanet/engine/transmitter.hpp"
#include "nanet/wire/mgp.hpp"

namespace {

using namespace nanet;

constexpr std::size_t kPackets = 56;  // of one super-packet
constexpr std::size_t kEvents = kPackets * wire::kMgpEventsMax;

// Gives the same packets again and again, with the next sequence numbers; takes answers and forgets them.
class ReplayLink final : public link::Link {
 public:
  explicit ReplayLink(double mean_hits) : payloads_(kPackets * wire::kMgpPaddedBytes) {
    emulate::MonteCarloConfig config;
    config.mean_hits = mean_hits;
    emulate::MonteCarlo monte_carlo(config);
    for (std::size_t p = 0; p < kPackets; ++p) {
      wire::MgpBuilder builder(packet(p));
      builder.begin(wire::MgpLayout::padded);
      for (std::size_t e = 0; e < wire::kMgpEventsMax; ++e) {
        const emulate::McEvent event = monte_carlo.next();
        const auto number = p * wire::kMgpEventsMax + e;
        builder.add_event({.timestamp = static_cast<std::uint32_t>(4 * number), .event_number = static_cast<std::uint16_t>(number)},
                          std::span(event.hits).first(event.hit_count));
      }
      builder.finish({.source_id = 0x1C, .sequence = static_cast<std::uint32_t>(p)});
    }
  }
  std::size_t min_room_bytes() const override { return 65536; }
  link::RxBatch receive(std::span<std::byte> room, std::span<link::RxPacket> packets, std::uint64_t) override {
    std::memcpy(room.data(), payloads_.data(), payloads_.size());
    for (std::size_t p = 0; p < kPackets; ++p) {
      packets[p] = {.offset = static_cast<std::uint32_t>(p * wire::kMgpPaddedBytes), .bytes = wire::kMgpPaddedBytes};
    }
    return {.packet_count = kPackets, .bytes_used = static_cast<std::uint32_t>(payloads_.size())};
  }
  void send(std::span<const link::TxPacket>, std::uint64_t) override {}
  void wait(std::uint64_t) override {}
  link::Endpoint local() const override { return {}; }
  std::string path() const override { return "memory"; }
  std::vector<std::string> notes() const override { return {}; }
  link::LinkStats stats() const override { return {}; }
  void next_lap() {
    for (std::size_t p = 0; p < kPackets; ++p) {
      wire::set_header(packet(p), sequence_++, 0);
      wire::seal(packet(p));
    }
  }

 private:
  std::span<std::byte> packet(std::size_t p) {
    return std::span(payloads_).subspan(p * wire::kMgpPaddedBytes, wire::kMgpPaddedBytes);
  }
  std::vector<std::byte> payloads_;
  std::uint32_t sequence_ = 0;
};

struct Cost {
  double receive_ns;
  double process_ns;
};

Cost measure(double mean_hits, double seconds) {
  ReplayLink link(mean_hits);
  flow::Clop clop({.buffer_count = 4, .buffer_bytes = 1 << 17});
  flow::CompletionQueue queue(8);
  flow::TxRing ring({.capacity = 64, .slot_bytes = 1472});
  flow::CompletionQueue sent(128);
  flow::Counters counters;
  na62::RingMonitor monitor;
  na62::ChannelMonitor channels;
  engine::Transmitter transmitter(ring, link, sent);
  auto receiver = na62::kMgp.make_receiver({.batch_size = 64}, {link, clop, queue, flow::Router({{0x1C, 0, 0, 0}}), 1});
  engine::EventBuilder builder(
      queue, {{.clop = &clop, .protocol = &na62::kMgp, .first_source = 0}}, 1, std::nullopt,
      std::make_unique<na62::RichTrigger>(na62::RichConfig{}, na62::AnswerWriter(ring, sent, {}, counters, &transmitter), counters,
                                          monitor, channels),
      counters);
  using Clock = std::chrono::steady_clock;
  std::vector<double> receive_ns;
  std::vector<double> process_ns;
  for (const auto end = Clock::now() + std::chrono::duration<double>(seconds); Clock::now() < end;) {
    link.next_lap();
    const auto begin = Clock::now();
    receiver->poll(1);
    const auto received = Clock::now();
    builder.poll(1, 1);
    transmitter.poll(1);
    const auto processed = Clock::now();
    receive_ns.push_back(std::chrono::duration<double, std::nano>(received - begin).count() / kEvents);
    process_ns.push_back(std::chrono::duration<double, std::nano>(processed - received).count() / kEvents);
  }
  const auto median = [](std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
  };
  return {median(receive_ns), median(process_ns)};
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 1.0;
  std::ofstream csv;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--seconds") seconds = std::atof(argv[i + 1]);
    if (std::string(argv[i]) == "--csv") csv.open(argv[i + 1]);
  }
  std::printf("%10s %24s %34s\n", "mean hits", "copy + check [ns/event]", "fit + decision + answer [ns/event]");
  if (csv.is_open()) csv << "mean_hits,receive_ns_per_event,process_ns_per_event\n";
  for (const double hits : {12.0, 20.0}) {
    const Cost cost = measure(hits, seconds);
    std::printf("%10.0f %24.2f %34.2f\n", hits, cost.receive_ns, cost.process_ns);
    if (csv.is_open()) csv << hits << ',' << cost.receive_ns << ',' << cost.process_ns << '\n';
  }
  return 0;
}
