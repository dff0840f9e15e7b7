// SPDX-License-Identifier: Apache-2.0
// The link through the simulated NIC: over a wire made of memory, and in a whole engine beside the link over plain sockets.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <random>

#include "../engine/sockets.hpp"
#include "../engine/support.hpp"
#include "link/gateware/gateware_link.hpp"
#include "nanet/engine/engine.hpp"
#include "nanet/link/fault_injector.hpp"
#include "nanet/link/recorder.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

using engine::test::Bytes;
using engine::test::MemoryLink;

Bytes random_bytes(std::mt19937_64& random, std::size_t count) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

struct LinkTest : ::testing::Test {
  GatewareLink make(GatewareConfig config = {}) {
    std::vector<std::unique_ptr<Link>> links(config.merge ? config.merge->ports : 1);
    for (auto& link : links) {
      auto own = std::make_unique<MemoryLink>();
      own->room_bytes = 1 << 16;
      wires.push_back(own.get());
      link = std::move(own);
    }
    wire = wires.front();
    return {std::move(links), config};
  }
  std::vector<MemoryLink*> wires;
  MemoryLink* wire = nullptr;  // the first
};

struct LinkAtLine : LinkTest, ::testing::WithParamInterface<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Gbps, LinkAtLine, ::testing::Values(10u, 1u));

TEST_P(LinkAtLine, GivesWhatCameFromTheWireInOrderAndKnowsTheSenders) {
  GatewareLink link = make({.line_gbps = GetParam()});
  std::mt19937_64 random(1);
  std::vector<Bytes> sent;
  std::vector<std::uint32_t> senders;
  for (int k = 0; k < 300; ++k) {
    sent.push_back(random_bytes(random, 1 + random() % 1472));
    senders.push_back(0x0A00'0100 + static_cast<std::uint32_t>(random() % 20));
    wire->incoming.push_back({.payload = sent.back(), .from = senders.back()});
  }
  std::vector<Bytes> found;
  Bytes room(4096);  // less than a buffer of the NIC: it is handed on in several calls
  std::vector<RxPacket> packets(7);
  std::size_t known = 0;
  for (int call = 0; call < 100'000 && found.size() < sent.size(); ++call) {
    const RxBatch batch = link.receive(room, packets, 0);
    for (std::uint32_t p = 0; p < batch.packet_count; ++p) {
      const auto payload = std::span(room).subspan(packets[p].offset, packets[p].bytes);
      if (packets[p].peer_address != 0) {
        EXPECT_EQ(packets[p].peer_address, senders[found.size()]);
        ++known;
      }
      found.emplace_back(payload.begin(), payload.end());
    }
  }
  EXPECT_TRUE(found == sent) << found.size() << " payloads, not " << sent.size();
  EXPECT_GT(known, 150u);  // 15 of 20 senders have an entry of the match table
  EXPECT_LT(known, 300u);
  const LinkStats stats = link.stats();
  EXPECT_EQ(stats.rx_packets, 300u);
  EXPECT_EQ(stats.rx_kernel_dropped + stats.rx_foreign + stats.rx_malformed + stats.rx_truncated, 0u);
  EXPECT_EQ(link.stray_count(), 0u);
  EXPECT_EQ(link.nic_times().value().cycle_ns, GetParam() == 1 ? 8.0 : 6.4);
}

// Receives until so many packets are there or nothing comes.
std::size_t receive_all(Link& link, std::size_t count) {
  Bytes room(1 << 16);
  std::vector<RxPacket> packets(16);
  std::size_t found = 0;
  for (int call = 0; call < 20'000 && found < count; ++call) found += link.receive(room, packets, 0).packet_count;
  return found;
}

TEST_F(LinkTest, SaysHowLongPacketsTookInTheNic) {
  GatewareLink link = make();
  for (std::size_t k = 0; k < 90; ++k) wire->incoming.push_back({.payload = Bytes(100)});
  ASSERT_EQ(receive_all(link, 90), 90u);
  const NicTimes times = link.nic_times().value();
  EXPECT_EQ(times.clock, "RTL, simulated");
  EXPECT_EQ(times.cycle_ns, 6.4);
  ASSERT_EQ(times.stages.size(), 5u);
  const NicStageTimes& parsed = times.stages[0];
  EXPECT_EQ(parsed.name, "parsed");
  EXPECT_EQ(parsed.sample, "packet");
  EXPECT_EQ(parsed.count, 90u);
  EXPECT_EQ(parsed.min_cycles, 16u);
  EXPECT_EQ(parsed.max_cycles, 16u);
  EXPECT_EQ(parsed.sum_cycles, 90u * 16);
  ASSERT_EQ(parsed.bins.size(), 1u);
  EXPECT_EQ(parsed.bins[0].from_cycles, 16u);
  EXPECT_EQ(parsed.bins[0].to_cycles, 16u);
  EXPECT_EQ(parsed.bins[0].count, 90u);
  const NicStageTimes& oldest = times.stages[4];
  EXPECT_EQ(oldest.name, "completed_oldest");
  EXPECT_EQ(oldest.sample, "buffer");
  EXPECT_EQ(oldest.count, times.stages[3].count);
  EXPECT_GT(oldest.max_cycles, times.stages[3].max_cycles);
  std::uint64_t in_bins = 0;
  for (const NicTimesBin& bin : oldest.bins) {
    EXPECT_LE(bin.from_cycles, bin.to_cycles);
    EXPECT_GT(bin.count, 0u);
    in_bins += bin.count;
  }
  EXPECT_EQ(in_bins, oldest.count);
  EXPECT_LE(oldest.bins.front().from_cycles, oldest.min_cycles);
  EXPECT_GE(oldest.bins.front().to_cycles, oldest.min_cycles);
  EXPECT_LE(oldest.bins.back().from_cycles, oldest.max_cycles);
  EXPECT_GE(oldest.bins.back().to_cycles, oldest.max_cycles);
}

// The NIC's time goes on while it is asked, for longer than a packet is in flight: whichever frames come in just then, all arrive.
TEST_F(LinkTest, MayBeAskedForTimesAtAnyMoment) {
  GatewareLink link = make({.cycles_per_call = 32});
  Bytes room(1 << 16);
  std::vector<RxPacket> packets(64);
  std::size_t sent = 0, found = 0;
  for (std::size_t bytes = 100; bytes < 200; ++bytes) {
    for (int k = 0; k < 64; ++k) wire->incoming.push_back({.payload = Bytes(bytes)});
    sent += 64;
    found += link.receive(room, packets, 0).packet_count;
    EXPECT_GE(link.nic_times()->stages[2].count, found);
    for (int call = 0; call < 1000 && found < sent; ++call) found += link.receive(room, packets, 0).packet_count;
    ASSERT_EQ(found, sent) << "of " << bytes << " bytes";
  }
  const NicTimes times = link.nic_times().value();
  for (std::size_t stage = 0; stage < 3; ++stage) EXPECT_EQ(times.stages[stage].count, sent) << "once each, in whatever period";
  EXPECT_EQ(link.stats().rx_kernel_dropped, 0u);
}

// Reading takes time of the NIC: it must not count for time in which something is on its way, or the link would never be at rest.
TEST_F(LinkTest, ComesToRestHoweverOftenItIsRead) {
  GatewareLink link = make({.cycles_per_call = 32});
  wire->ends = true;
  for (std::size_t k = 0; k < 20; ++k) wire->incoming.push_back({.payload = Bytes(100)});
  Bytes room(1 << 16);
  std::vector<RxPacket> packets(64);
  std::size_t found = 0;
  for (int call = 0; call < 1000 && !link.finished(); ++call) {
    found += link.receive(room, packets, 0).packet_count;
    link.nic_times();
    link.stats();
  }
  EXPECT_TRUE(link.finished());
  EXPECT_EQ(found, 20u);
}

TEST_F(LinkTest, WhatWrapsItHandsTheTimesOn) {
  const std::string file = testing::TempDir() + "nic_times.pcap";
  std::vector<std::unique_ptr<Link>> links(1);
  auto own = std::make_unique<MemoryLink>();
  own->room_bytes = 1 << 16;
  own->incoming.push_back({.payload = Bytes(100)});
  links[0] = std::move(own);
  auto nic = std::make_unique<GatewareLink>(std::move(links), GatewareConfig{});
  auto recorder = std::make_unique<Recorder>(std::move(nic), RecorderConfig{.path = file});
  FaultInjector link(std::move(recorder), {});
  EXPECT_EQ(receive_all(link, 1), 1u);
  ASSERT_TRUE(link.nic_times().has_value());
  EXPECT_EQ(link.nic_times()->stages[0].count, 1u);
  std::filesystem::remove(file);
  EXPECT_FALSE(FaultInjector(std::make_unique<MemoryLink>(), {}).nic_times().has_value());
}

TEST_F(LinkTest, CountsWhatNoNicWouldTake) {
  GatewareLink link = make();
  wire->incoming.push_back({.payload = {}});
  wire->incoming.push_back({.payload = Bytes(9500)});
  wire->incoming.push_back({.payload = Bytes(10, std::byte{3})});
  Bytes room(4096);
  std::vector<RxPacket> packets(4);
  std::uint32_t found = 0;
  for (int call = 0; call < 100 && found == 0; ++call) found = link.receive(room, packets, 0).packet_count;
  EXPECT_EQ(found, 1u);
  EXPECT_EQ(packets[0].bytes, 10);
  EXPECT_EQ(packets[0].flags, 0);
  EXPECT_EQ(link.stats().rx_malformed, 1u);
  EXPECT_EQ(link.stats().rx_truncated, 1u);
}

TEST_F(LinkTest, CutsWhatIsLongerThanItsRoom) {
  GatewareLink link = make();
  wire->incoming.push_back({.payload = Bytes(4000, std::byte{3})});
  Bytes room(link.min_room_bytes());
  std::vector<RxPacket> packets(4);
  std::uint32_t found = 0;
  for (int call = 0; call < 100 && found == 0; ++call) found = link.receive(room, packets, 0).packet_count;
  ASSERT_EQ(found, 1u);
  EXPECT_EQ(packets[0].bytes, 1472);
  EXPECT_EQ(packets[0].flags, RxPacket::truncated);
  EXPECT_EQ(link.stats().rx_truncated, 1u);
  EXPECT_EQ(link.stats().rx_packets, 1u);
}

TEST_P(LinkAtLine, SendsByWayOfTheNic) {
  GatewareConfig config;
  for (std::uint16_t k = 0; k < 3; ++k) config.destinations.push_back({"udp", 0x0A00'0002, static_cast<std::uint16_t>(5000 + k)});
  GatewareLink link = make(config);
  std::mt19937_64 random(2);
  std::vector<Bytes> payloads;
  for (int k = 0; k < 100; ++k) payloads.push_back(random_bytes(random, 1 + random() % 1472));
  std::vector<TxPacket> packets;
  for (const Bytes& payload : payloads) packets.push_back({payload.data(), static_cast<std::uint32_t>(payload.size()), 1});
  std::array<bool, 3> dropped{};
  packets.back().dropped = &dropped[0];
  packets.push_back({payloads[0].data(), 0, 1, &dropped[1]});
  packets.push_back({payloads[0].data(), 10, 3, &dropped[2]});
  link.send(packets, 0);
  EXPECT_EQ(dropped, (std::array{false, true, true}));
  EXPECT_TRUE(wire->outgoing == payloads) << wire->outgoing.size() << " payloads";
  EXPECT_EQ(link.stats().tx_dropped, 2u);
  EXPECT_EQ(link.stray_count(), 0u);
}

TEST_F(LinkTest, RefusesWhatTheNicCannotDo) {
  EXPECT_THROW(make({.packet_bytes_max = 9000}), SetupError);
  EXPECT_THROW(make({.destinations = std::vector<Endpoint>(17)}), SetupError);
}

// Answers of an engine, packet by packet, to the same packets of events.
std::vector<Bytes> answers_by(const std::string& scheme, const std::vector<Bytes>& packets) {
  engine::test::PlainSocket l0tp;
  engine::test::PlainSocket board;
  const std::uint16_t port = engine::test::free_port();
  engine::test::NodeConfig config = engine::test::config_for(port, l0tp.port(), engine::Topology::run_to_completion);
  config.links[0].endpoint = scheme + "://127.0.0.1:" + std::to_string(port);
  if (scheme != "udp") config.links[0].socket_buffer_bytes = engine::LinkConfig{}.socket_buffer_bytes;  // it has none
  config.send->via = "boards";  // so that they leave by the NIC too
  engine::Engine engine(config.made());
  engine.start();
  std::vector<Bytes> answers;
  Bytes room(2048);
  for (const Bytes& packet : packets) {
    board.send(port, packet);
    const std::size_t bytes = l0tp.receive(room, 20'000);
    EXPECT_GT(bytes, 0u) << scheme;
    answers.emplace_back(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(bytes));
    EXPECT_EQ(l0tp.from_port(), port);
  }
  engine.stop();
  EXPECT_EQ(engine.total(flow::Counter::packets_accepted), packets.size());
  if (scheme == "gateware") {
    const Link& link = *engine.inputs().front().link;
    EXPECT_EQ(link.path().substr(0, 13), "simulated NIC");
    EXPECT_EQ(link.nic_times()->stages[0].count, packets.size());
  }
  return answers;
}

TEST(GatewareEngine, AnswersAreThoseOfPlainSocketsBitForBit) {
  const auto events = engine::test::make_events(16 * 40, 21);
  std::vector<Bytes> packets;
  for (std::uint32_t p = 0; p < 40; ++p) packets.push_back(engine::test::make_packet(std::span(events).subspan(16 * p, 16), p));
  const std::vector<Bytes> by_sockets = answers_by("udp", packets);
  EXPECT_TRUE(answers_by("gateware", packets) == by_sockets);
}

}  // namespace
}  // namespace nanet::link::gateware
