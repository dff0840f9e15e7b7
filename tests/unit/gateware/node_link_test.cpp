// SPDX-License-Identifier: Apache-2.0
// The link through the simulated node, over wires made of memory: boards' packets in, merged events out; and the rounds in which frames go onto its wires.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "../engine/support.hpp"
#include "link/gateware/gateware_link.hpp"
#include "link/gateware/rounds.hpp"
#include "nanet/setup_error.hpp"
#include "nanet/wire/m2egp.hpp"

namespace nanet::link::gateware {
namespace {

using engine::test::Bytes;
using engine::test::MemoryLink;
using engine::test::TestEvent;

constexpr std::uint64_t kMs = 1'000'000;

using Counts = std::map<std::tuple<std::string, int, std::string>, std::uint64_t>;  // group, port or -1, counter

struct NodeLinkTest : ::testing::Test {
  void open(GatewareConfig config = {}) {
    std::vector<std::unique_ptr<Link>> links;
    for (std::uint32_t port = 0; port < config.merge.value_or(GatewareMerge{}).ports; ++port) {
      auto own = std::make_unique<MemoryLink>();
      own->room_bytes = 1 << 16;
      wires.push_back(own.get());
      links.push_back(std::move(own));
    }
    if (!config.merge) config.merge.emplace();
    config.merge->source_id = 0x1C;
    config.merge->source_sub_id = 7;
    link = std::make_unique<GatewareLink>(std::move(links), config);
  }

  // Packet `number` of each board in `boards`, of 16 events.
  void send(const std::vector<TestEvent>& events, std::size_t number, std::vector<unsigned> boards = {0, 1, 2, 3}) {
    for (const unsigned board : boards) {
      std::vector<TestEvent> parts;
      for (std::size_t e = 16 * number; e < 16 * (number + 1); ++e) parts.push_back(engine::test::part_of(events[e], board));
      wires[board]->incoming.push_back(
          {.payload = engine::test::make_packet(parts, static_cast<std::uint32_t>(number), static_cast<std::uint8_t>(board))});
    }
  }

  void receive(std::size_t events, int calls = 3000) {
    Bytes room(1 << 16);
    std::vector<RxPacket> packets(16);
    for (int call = 0; call < calls && found.size() < events; ++call) {
      const RxBatch batch = link->receive(room, packets, now_ns += kMs);
      for (std::uint32_t p = 0; p < batch.packet_count; ++p) take(std::span(room).subspan(packets[p].offset, packets[p].bytes));
    }
  }

  void take(std::span<const std::byte> payload) {
    wire::M2egpView view;
    ASSERT_EQ(wire::M2egpView::parse(payload, view), wire::ParseError::none);
    EXPECT_EQ(view.header().source_id, 0x1C);
    EXPECT_EQ(view.header().source_sub_id, 7);
    EXPECT_EQ(view.header().sequence, packets_++);
    wire::M2egpCursor cursor(view);
    TestEvent event;
    const std::uint16_t* hits = nullptr;
    while (cursor.next(event.time, hits)) {
      event.hits.assign(hits, hits + event.time.hit_count);
      found.push_back(event);
    }
  }

  // What leaves when all parts came: hits in the order of the boards.
  static std::vector<std::uint16_t> merged(const TestEvent& event, const std::vector<unsigned>& boards = {0, 1, 2, 3}) {
    std::vector<std::uint16_t> hits;
    for (const unsigned board : boards) {
      const TestEvent part = engine::test::part_of(event, board);
      hits.insert(hits.end(), part.hits.begin(), part.hits.end());
    }
    return hits;
  }

  void expect_found(std::span<const TestEvent> events, const std::vector<unsigned>& boards = {0, 1, 2, 3}) {
    ASSERT_EQ(found.size(), events.size());
    for (std::size_t e = 0; e < events.size(); ++e) {
      ASSERT_EQ(found[e].time.timestamp, events[e].time.timestamp) << e;
      EXPECT_EQ(found[e].time.fine_time, events[e].time.fine_time) << e;
      EXPECT_EQ(found[e].hits, merged(events[e], boards)) << e;
    }
  }

  Counts counts() const {
    Counts all;
    for (const NicCounts& group : link->nic_counts()) {
      for (const auto& [name, count] : group.counts) {
        all[{group.name, group.port ? static_cast<int>(*group.port) : -1, name}] = count;
      }
    }
    return all;
  }

  std::vector<MemoryLink*> wires;
  std::unique_ptr<GatewareLink> link;
  std::vector<TestEvent> found;
  std::uint64_t now_ns = 1;
  std::uint32_t packets_ = 0;
};

TEST_F(NodeLinkTest, MergesWhatBoardsSend) {
  open();
  const auto events = engine::test::make_events(16 * 100, 3);
  for (std::size_t number = 0; number < 100; ++number) send(events, number);
  receive(events.size());
  expect_found(events);
  const LinkStats stats = link->stats();
  EXPECT_EQ(stats.rx_packets, packets_);
  EXPECT_EQ(stats.rx_kernel_dropped + stats.rx_foreign + stats.rx_malformed + stats.rx_truncated, 0u);
  const Counts all = counts();
  for (int port = 0; port < 4; ++port) {
    EXPECT_EQ(all.at({"wire", port, "frames"}), 100u);
    EXPECT_EQ(all.at({"rx", port, "parsed"}), 100u);
    EXPECT_EQ(all.at({"port", port, "to_events"}), 100u);
    EXPECT_EQ(all.at({"merge", port, "packet"}), 100u);
    EXPECT_EQ(all.at({"merge", port, "part"}), 1600u);
  }
  EXPECT_EQ(all.at({"events", -1, "complete"}), 1600u);
  EXPECT_EQ(all.at({"given", -1, "events"}), 1600u);
  EXPECT_EQ(all.at({"events", -1, "packet"}), packets_);
  EXPECT_EQ(all.at({"host", -1, "stored"}), packets_);
  EXPECT_EQ(link->path(), "simulated node that merges 4 ports at 10 Gb/s, frames from: memory");
  EXPECT_EQ(link->stray_count(), 0u);
}

// However unevenly sockets bring them, boards send in step.
TEST_F(NodeLinkTest, TakesNothingForLateThatOneBoardsSocketBringsFirst) {
  open();
  const auto events = engine::test::make_events(16 * 60, 4);
  for (std::size_t number = 0; number < 60; ++number) send(events, number, {2});
  receive(1, 100);
  EXPECT_TRUE(found.empty());
  for (std::size_t number = 0; number < 60; ++number) send(events, number, {0, 1, 3});
  receive(events.size());
  expect_found(events);
  EXPECT_EQ(counts().at({"events", -1, "missing"}), 0u);
}

TEST_F(NodeLinkTest, WaitsForABoardThatIsSilentOnceAndGoesOnWithoutIt) {
  open({.merge = GatewareMerge{.window_us = 10, .complete_only = false}});
  const auto events = engine::test::make_events(16 * 40, 5);
  for (std::size_t number = 0; number < 40; ++number) send(events, number, {0, 1, 2});
  receive(events.size());
  expect_found(events, {0, 1, 2});
  EXPECT_LT(now_ns, 1000 * kMs) << "it waited for each packet";
  const Counts all = counts();
  EXPECT_EQ(all.at({"events", -1, "missing"}) + all.at({"events", -1, "overflow"}), 640u);
  EXPECT_EQ(all.at({"wire", 3, "frames"}), 0u);
}

TEST_F(NodeLinkTest, DropsWhatLacksAPart) {
  open({.merge = GatewareMerge{.window_us = 10}});
  const auto events = engine::test::make_events(16 * 3, 6);
  send(events, 0);
  send(events, 1, {0, 1, 3});
  receive(33, 700);
  send(events, 2);
  receive(33, 300);
  std::vector<TestEvent> left(events.begin(), events.begin() + 16);
  left.insert(left.end(), events.begin() + 32, events.end());
  expect_found(left);
  const Counts all = counts();
  EXPECT_EQ(all.at({"events", -1, "missing"}), 16u);
  EXPECT_EQ(all.at({"events", -1, "incomplete"}), 16u);
}

TEST_F(NodeLinkTest, NamesWhatAPortRefuses) {
  open({.merge = GatewareMerge{.window_us = 10}});
  const auto events = engine::test::make_events(16 * 3, 7);
  send(events, 0);
  wires[1]->incoming.back().payload[40] ^= std::byte{1};  // the checksum is wrong
  send(events, 1);
  wires[3]->incoming.back().payload.pop_back();
  wires[0]->incoming.push_back({.payload = Bytes(9500)});
  receive(17, 1000);
  EXPECT_TRUE(found.empty());
  const Counts all = counts();
  EXPECT_EQ(all.at({"merge", 1, "checksum"}), 1u);
  EXPECT_EQ(all.at({"merge", 3, "length"}), 1u);
  const LinkStats stats = link->stats();
  EXPECT_EQ(stats.rx_malformed, 2u);
  EXPECT_EQ(stats.rx_truncated, 1u);
}

TEST_F(NodeLinkTest, BeginsAgainWithARun) {
  open();
  const auto events = engine::test::make_events(16 * 8, 8);
  for (std::size_t number = 0; number < 8; ++number) send(events, number);
  receive(events.size());
  for (unsigned board = 0; board < 4; ++board) {
    wires[board]->incoming.push_back({.payload = engine::test::make_end_marker(8, 128, static_cast<std::uint8_t>(board))});
  }
  receive(events.size() + 1, 100);
  for (std::size_t number = 0; number < 8; ++number) send(events, number);  // the same times
  receive(2 * events.size());
  ASSERT_EQ(found.size(), 2 * events.size()) << "after a marker";
  receive(2 * events.size() + 1, 1200);  // longer than a lapse
  for (std::size_t number = 0; number < 8; ++number) send(events, number);
  receive(3 * events.size());
  EXPECT_EQ(found.size(), 3 * events.size()) << "after a pause";
  const Counts all = counts();
  for (int port = 0; port < 4; ++port) {
    EXPECT_EQ(all.at({"merge", port, "marker"}), 1u);
    EXPECT_EQ(all.at({"merge", port, "late"}), 0u);
  }
}

TEST_F(NodeLinkTest, RefusesWhatTheNodeCannotDo) {
  EXPECT_THROW(open({.packet_bytes_max = 1000, .merge = GatewareMerge{}}), SetupError);
  EXPECT_THROW(open({.merge = GatewareMerge{.ports = 5}}), SetupError);
  EXPECT_THROW(open({.merge = GatewareMerge{}, .line_gbps = 1}), SetupError);
}

struct RoundsTest : ::testing::Test {
  std::size_t on_wire(std::size_t wire) { return model.wire_in(wire).waiting(); }
  nanet::gateware::Model model{{}, nanet::gateware::Line::gbps_10, nanet::gateware::Design::node};
  Rounds rounds{4};
};

TEST_F(RoundsTest, FramesOfARoundBeginTogetherWhateverTheirLengths) {
  for (std::size_t wire = 0; wire < 4; ++wire) {
    model.wire_in(wire).keep_sent(true);
    for (int k = 0; k < 5; ++k) rounds.add(wire, Bytes(64 + 300 * wire));
  }
  EXPECT_TRUE(rounds.give(model, 1));
  EXPECT_TRUE(rounds.empty());
  model.step(5 * 140);
  for (std::size_t k = 0; k < 5; ++k) {
    for (std::size_t wire = 0; wire < 4; ++wire) {
      const auto& frames = model.wire_in(wire).sent_frames();
      ASSERT_EQ(frames.size(), 5u);
      EXPECT_EQ(frames[k].first_byte_cycle, model.wire_in(0).sent_frames()[k].first_byte_cycle);
    }
  }
}

TEST_F(RoundsTest, ARoundWaitsForAWireAndThenNotAgainUntilItHasAFrame) {
  const auto add = [&](std::initializer_list<std::size_t> wires) {
    for (const std::size_t wire : wires) rounds.add(wire, Bytes(64));
  };
  constexpr std::uint64_t kLong = Rounds::kPatienceNs;
  EXPECT_FALSE(rounds.give(model, 1));
  add({0, 1, 3});
  EXPECT_FALSE(rounds.give(model, 1));
  EXPECT_FALSE(rounds.give(model, kLong));
  EXPECT_TRUE(rounds.give(model, kLong + 1));
  EXPECT_EQ(on_wire(2), 0u);
  EXPECT_EQ(on_wire(3), 1u);
  add({0, 1, 3});
  EXPECT_TRUE(rounds.give(model, kLong + 2)) << "it is known to be silent";
  add({2});
  EXPECT_FALSE(rounds.give(model, kLong + 3)) << "the others are not";
  add({0, 1, 3});
  EXPECT_TRUE(rounds.give(model, kLong + 4));
  add({0, 1, 3});
  EXPECT_FALSE(rounds.give(model, kLong + 5)) << "it has spoken again";
  EXPECT_FALSE(rounds.give(model, 2 * kLong + 4));
  EXPECT_TRUE(rounds.give(model, 2 * kLong + 5));
}

}  // namespace
}  // namespace nanet::link::gateware
