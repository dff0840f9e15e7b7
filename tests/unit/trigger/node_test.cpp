// SPDX-License-Identifier: Apache-2.0
// The node over the loopback interface: what it decides is what the processor alone decides on the same datagrams, and the books balance.
#include "trigger/node.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <random>
#include <thread>

#include "../allocation_count.hpp"
#include "nanet/setup_error.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::trigger {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;

// No silence: what is decided depends on the datagrams and their order alone.
l0tp::Config processor_config() {
  l0tp::Config config;
  config.fine_time_bits = 1;
  config.read_lag_us = 20;
  config.silence_us = 0;
  config.masks = {{.name = "any"},
                  {.name = "two",  // ring of this kind, no CHOD
                   .bits = {{"RICH", "xxxx_0001_xxxx_xxxx"}, {"CHOD", "0000_0000_0000_0000"}},
                   .downscaling = 2}};
  return config;
}

NodeConfig node_config(const link::UdpLink* decisions) {
  NodeConfig config;
  config.processor = processor_config();
  config.listen = "udp://127.0.0.1:0";
  if (decisions != nullptr) config.decisions = link::to_string(decisions->local());
  config.waiting.spin = 10;
  config.source_sub_id = 7;
  return config;
}

std::unique_ptr<link::UdpLink> listener() {
  link::UdpConfig config;
  config.listen = link::parse_endpoint("udp://127.0.0.1:0");
  return std::make_unique<link::UdpLink>(config);
}

Bytes packet(std::uint8_t source_id, std::uint64_t ticks, const std::vector<wire::Primitive>& primitives) {
  Bytes room(wire::kMtpBytesMax);
  wire::MtpWriter writer(room);
  writer.begin(source_id, 0, wire::timestamp_of(ticks));
  for (const wire::Primitive& primitive : primitives) EXPECT_TRUE(writer.add(primitive));
  room.resize(writer.finish().size());
  return room;
}

wire::Primitive at(std::uint64_t ticks, std::uint16_t id) { return {wire::timestamp_of(ticks), wire::fine_time_of(ticks), id}; }

// Packets of all detectors and some that are none, a few primitives each; some come late, some are calibrations. Never ends of 65536 ticks
// apart, so nothing is out of range.
std::vector<Bytes> stream(std::uint32_t packets, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::array sources{wire::kSourceRich, wire::kSourceRich, wire::kSourceChod, wire::kSourceMuv3, wire::kSourceLkr};
  std::vector<Bytes> all;
  std::uint64_t time = 1'000'000'000;
  for (std::uint32_t i = 0; i < packets; ++i) {
    std::vector<std::uint64_t> times;
    for (std::uint64_t n = random() % 20; n > 0; --n) times.push_back(time + random() % 60'000);
    if (random() % 50 == 0) times.push_back(time - 300'000);
    std::vector<wire::Primitive> primitives;
    for (const std::uint64_t one : times) {
      primitives.push_back(at(one, static_cast<std::uint16_t>(0x0100 | (random() & (random() % 40 == 0 ? 0xFFFF : 0x0FFF)))));
    }
    all.push_back(packet(random() % 60 == 0 ? wire::kSourceGtk : sources[random() % sources.size()], time, primitives));
    if (random() % 40 == 0) all.back().resize(random() % all.back().size());
    if (random() % 40 == 0 && all.back().size() > 8) all.back()[6] = static_cast<std::byte>(99);
    time += 20'000;
  }
  return all;
}

// In small pieces, so that no buffer of the sender overflows.
void send_to(const link::Endpoint& endpoint, const std::vector<Bytes>& datagrams) {
  link::UdpConfig config;
  config.destinations = {endpoint};
  config.gso = link::Coalesce::off;
  link::UdpLink sender(config);
  for (std::size_t i = 0; i < datagrams.size(); ++i) {
    const link::TxPacket one{datagrams[i].data(), static_cast<std::uint32_t>(datagrams[i].size()), 0};
    sender.send({&one, 1}, 0);
    if (i % 100 == 99) std::this_thread::sleep_for(1ms);
  }
}

void wait_for_packets(const TriggerNode& node, std::uint64_t count) {
  for (int i = 0; i < 20'000 && node.snapshot().stats.packets < count; ++i) std::this_thread::sleep_for(1ms);
}

struct Received {
  std::vector<wire::L0DecisionEntry> entries;
  std::uint64_t packets = 0;
};

// All decision packets that wait in the socket; their numbers must follow one another.
Received receive_all(link::UdpLink& link) {
  Received all;
  std::vector<std::byte> room(1 << 20);
  std::array<link::RxPacket, 512> packets;
  for (link::RxBatch batch = link.receive(room, packets, 0); batch.packet_count > 0; batch = link.receive(room, packets, 0)) {
    for (std::uint32_t i = 0; i < batch.packet_count; ++i) {
      wire::L0DecisionView view;
      EXPECT_EQ(wire::L0DecisionView::parse(std::span(room).subspan(packets[i].offset, packets[i].bytes), view),
                wire::ParseError::none);
      EXPECT_EQ(view.source_sub_id(), 7);
      EXPECT_EQ(view.first_trigger_number(), all.entries.size() & wire::kL0TriggerNumberMask);
      for (std::uint32_t e = 0; e < view.entry_count(); ++e) all.entries.push_back(view.entry(e));
      ++all.packets;
    }
  }
  return all;
}

// What a processor decides that is given the same datagrams by hand.
std::vector<wire::L0DecisionEntry> expected(const std::vector<Bytes>& datagrams, std::uint64_t* decided) {
  l0tp::TriggerProcessor processor(processor_config());
  std::vector<l0tp::Decision> room(100'000);
  std::vector<wire::L0DecisionEntry> entries;
  const auto keep = [&](std::size_t count) {
    ASSERT_LT(count, room.size());
    for (const l0tp::Decision& d : std::span(room).first(count)) {
      const unsigned kind = d.kind == l0tp::DecisionKind::calibration ? 0x80u : 0u;
      if (d.is_trigger()) {
        entries.push_back({d.timestamp, d.fine_time, static_cast<std::uint8_t>(d.matched_inputs | kind), d.trigger_word});
      }
    }
  };
  for (const Bytes& datagram : datagrams) {
    processor.take(datagram, 0);
    keep(processor.decide(0, room));
  }
  keep(processor.flush(room));
  *decided = processor.stats().decided;
  return entries;
}

void check_books(const NodeSnapshot& s, std::uint64_t datagrams) {
  EXPECT_EQ(s.link.rx_packets, datagrams);
  EXPECT_EQ(s.stats.packets, datagrams);
  EXPECT_EQ(s.stats.packets,
            s.stats.packets_good + s.stats.packets_bad_length + s.stats.packets_bad_format + s.stats.packets_unknown_source);
  for (const l0tp::InputStats& i : s.inputs) {
    EXPECT_EQ(i.primitives, i.stored + i.calibrations + i.late + i.out_of_range + i.duplicates + i.calibrations_no_room);
  }
  EXPECT_EQ(s.pending, 0u);
  EXPECT_EQ(s.inputs[0].stored, s.inputs[0].overwritten + s.stats.decided);
  EXPECT_EQ(s.latency.count(), s.stats.triggers_physics + s.stats.triggers_calibration);
  EXPECT_EQ(s.decision_packets, s.link.tx_packets + s.link.tx_dropped);
}

TEST(TriggerNode, DecidesAndSendsWhatTheProcessorAloneDoes) {
  const auto decisions = listener();
  TriggerNode node(node_config(decisions.get()));
  const std::vector<Bytes> datagrams = stream(3'000, 1);
  node.start();
  send_to(node.local(), datagrams);
  wait_for_packets(node, datagrams.size());
  node.stop();
  const NodeSnapshot snapshot = node.snapshot();
  check_books(snapshot, datagrams.size());
  std::uint64_t decided = 0;
  const auto entries = expected(datagrams, &decided);
  const Received received = receive_all(*decisions);
  EXPECT_EQ(received.entries, entries);
  EXPECT_GT(entries.size(), 5'000u);
  EXPECT_EQ(snapshot.stats.decided, decided);
  EXPECT_EQ(snapshot.triggers_sent, entries.size());
  EXPECT_EQ(snapshot.triggers_sent, snapshot.stats.triggers_physics + snapshot.stats.triggers_calibration);
  EXPECT_EQ(snapshot.decision_packets, received.packets);
  EXPECT_GT(snapshot.inputs[0].late, 0u);
  EXPECT_GT(snapshot.stats.packets_bad_length, 0u);
  EXPECT_GT(snapshot.stats.packets_unknown_source, 0u);
}

TEST(TriggerNode, WithoutADestinationTriggersAreCounted) {
  TriggerNode node(node_config(nullptr));
  const std::vector<Bytes> datagrams = stream(300, 2);
  node.start();
  send_to(node.local(), datagrams);
  wait_for_packets(node, datagrams.size());
  node.stop();
  const NodeSnapshot snapshot = node.snapshot();
  check_books(snapshot, datagrams.size());
  EXPECT_GT(snapshot.stats.triggers_physics, 0u);
  EXPECT_EQ(snapshot.triggers_sent, 0u);
}

// The only packet's primitive is decided though no later one comes; time goes on by the clock.
TEST(TriggerNode, SilenceDecidesWhatWaits) {
  const auto decisions = listener();
  NodeConfig config = node_config(decisions.get());
  config.processor.silence_us = 1'000;
  config.waiting.gather_us = 1;
  TriggerNode node(config);
  node.start();
  send_to(node.local(), {packet(wire::kSourceRich, 5'000'000, {at(5'000'123, 0x4000)})});
  Received received;
  for (int i = 0; i < 2'000 && received.entries.empty(); ++i) {
    decisions->wait(10'000'000);
    received = receive_all(*decisions);
  }
  EXPECT_TRUE(node.running());
  ASSERT_EQ(received.entries.size(), 1u);
  const wire::L0DecisionEntry entry{wire::timestamp_of(5'000'123), wire::fine_time_of(5'000'123), 1, 1};
  EXPECT_EQ(received.entries[0], entry);
  node.stop();
  EXPECT_FALSE(node.running());
  EXPECT_GE(node.snapshot().latency.min(), 1'000'000u);
}

// A detector that the machine held up: all of its packets come after all of the RICH's, far beyond what the alignment memory holds.
TEST(TriggerNode, PatienceWaitsForADetectorThatIsFarBehind) {
  constexpr std::uint64_t kEvents = 400;
  std::vector<Bytes> datagrams;
  for (const std::uint8_t source : {wire::kSourceRich, wire::kSourceChod}) {
    for (std::uint64_t e = 0; e < kEvents; ++e) {
      const std::uint64_t ticks = 1'000'000'000 + 100'000 * e;
      datagrams.push_back(packet(source, ticks, {at(ticks + 7, 0x4000)}));
    }
  }
  const auto matched_by_two = [&](std::uint64_t patience_ms) {
    const auto decisions = listener();
    NodeConfig config = node_config(decisions.get());
    config.patience_ms = patience_ms;
    TriggerNode node(config);
    node.start();
    send_to(node.local(), datagrams);
    wait_for_packets(node, datagrams.size());
    node.stop();  // decides all that waits
    check_books(node.snapshot(), datagrams.size());
    const Received received = receive_all(*decisions);
    return std::count_if(received.entries.begin(), received.entries.end(),
                         [](const wire::L0DecisionEntry& entry) { return std::popcount(entry.matched_kind) == 2; });
  };
  EXPECT_EQ(matched_by_two(60'000), kEvents);
  EXPECT_EQ(matched_by_two(0), 0);
}

TEST(TriggerNode, NothingIsAllocatedAfterTheStart) {
  const auto decisions = listener();
  TriggerNode node(node_config(decisions.get()));
  const std::vector<Bytes> datagrams = stream(500, 3);
  link::UdpConfig config;
  config.destinations = {node.local()};
  link::UdpLink sender(config);
  node.start();
  std::this_thread::sleep_for(20ms);  // the thread has read its scheduling statistics
  const std::uint64_t before = nanet::test::allocation_count.load();
  for (const Bytes& datagram : datagrams) {
    const link::TxPacket one{datagram.data(), static_cast<std::uint32_t>(datagram.size()), 0};
    sender.send({&one, 1}, 0);
  }
  for (int i = 0; i < 200 && decisions->stats().rx_packets == 0; ++i) {
    std::this_thread::sleep_for(1ms);
    std::array<std::byte, 65536> room;
    std::array<link::RxPacket, 16> packets;
    decisions->receive(room, packets, 0);
  }
  EXPECT_EQ(nanet::test::allocation_count.load(), before);
  wait_for_packets(node, datagrams.size());
  node.stop();
  EXPECT_GT(node.snapshot().triggers_sent, 0u);
}

TEST(TriggerNode, WhatCannotWorkIsRefused) {
  TriggerNode node(node_config(nullptr));
  node.start();
  EXPECT_THROW(node.start(), SetupError);
  node.stop();
  EXPECT_THROW(node.start(), SetupError);

  NodeConfig own = node_config(nullptr);
  own.listen = link::to_string(node.local());
  own.decisions = own.listen;
  EXPECT_THROW(TriggerNode{own}, SetupError);

  NodeConfig core = node_config(nullptr);
  core.cpu_core = 100'000;
  TriggerNode pinned(core);
  EXPECT_THROW(pinned.start(), SetupError);
  EXPECT_FALSE(pinned.running());

  NodeConfig many = node_config(nullptr);
  many.processor.masks.resize(17);
  EXPECT_THROW(TriggerNode{many}, SetupError);
}

}  // namespace
}  // namespace nanet::trigger
