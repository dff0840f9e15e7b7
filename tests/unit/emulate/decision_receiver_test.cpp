// SPDX-License-Identifier: Apache-2.0
#include "emulate/decision_receiver.hpp"

#include <gtest/gtest.h>

#include "emulate/schedule.hpp"
#include "fake_link.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {
namespace {

// Ten packets of 16 events in a book that remembers four, packet p sent at 1000 p; and a receiver of decisions on them.
class DecisionReceiverTest : public testing::Test {
 protected:
  DecisionReceiverTest() {
    for (std::uint64_t p = 0; p < 10; ++p) {
      const Schedule::Packet packet = schedule_.packet(p);
      book_.sent(p, packet.pool_packet, packet.shift_units, 1'000 * p);
    }
  }

  wire::L0DecisionEntry entry(std::uint64_t event, std::uint8_t matched_kind = 1) const {
    const Schedule::Packet packet = schedule_.packet(event / 16);
    const std::uint64_t ticks = packet.shift_units * 256 + schedule_.pool_keys()[packet.pool_packet * 16 + event % 16];
    return {wire::timestamp_of(ticks), wire::fine_time_of(ticks), matched_kind, 1};
  }

  void receive(std::uint64_t first_number, const std::vector<wire::L0DecisionEntry>& entries, std::uint64_t now_ns) {
    std::vector<std::byte> room(wire::kL0DecisionBytesMax);
    wire::L0DecisionWriter writer(room);
    writer.begin(0, first_number);
    for (const auto& one : entries) ASSERT_TRUE(writer.add(one));
    room.resize(writer.finish().size());
    receive(room, now_ns);
  }
  void receive(const std::vector<std::byte>& payload, std::uint64_t now_ns) {
    link_.to_receive.push_back(payload);
    ASSERT_EQ(receiver_.receive(now_ns), 1u);
    receiver_.check(now_ns);
  }

  Schedule schedule_{{.events_per_packet = 16}, poisson_arrivals(160, 1e6, 5)};
  AnswerBook book_{schedule_.pool_keys(), 16, 4, 0};
  FakeLink link_;
  DecisionReceiver receiver_{book_, link_};
};

TEST_F(DecisionReceiverTest, LatencyIsFromTheSendTimeOfTheEvent) {
  receive(0, {entry(6 * 16), entry(6 * 16 + 3), entry(9 * 16 + 15)}, 9'500);
  receive(3, {entry(7 * 16, 0x81)}, 10'000);
  const DecisionCounts counts = receiver_.counts();
  EXPECT_EQ(counts.packets, 2u);
  EXPECT_EQ(counts.physics, 3u);
  EXPECT_EQ(counts.calibration, 1u);
  EXPECT_EQ(counts.unknown + counts.stale + counts.missing + counts.out_of_order, 0u);
  EXPECT_EQ(receiver_.latency().count(), 4u);
  EXPECT_EQ(receiver_.latency().min(), 500u);
  EXPECT_EQ(receiver_.latency().max(), 3'500u);
}

TEST_F(DecisionReceiverTest, ADecisionClaimsNothing) {
  receive(0, {entry(7 * 16 + 2), entry(7 * 16 + 2)}, 9'000);
  EXPECT_EQ(receiver_.latency().count(), 2u);
  const wire::L0DecisionEntry one = entry(7 * 16 + 2);
  EXPECT_EQ(book_.answer(wire::ticks(one.timestamp, one.fine_time)).match, Match::answered);
}

TEST_F(DecisionReceiverTest, StrangersAndOldEventsHaveNoLatency) {
  wire::L0DecisionEntry strange = entry(8 * 16);
  ++strange.fine_time;
  wire::L0DecisionEntry future = entry(9 * 16 + 15);
  future.timestamp += 100'000;
  receive(0, {strange, future, entry(3)}, 9'000);
  const DecisionCounts counts = receiver_.counts();
  EXPECT_EQ(counts.physics, 3u);
  EXPECT_EQ(counts.unknown, 2u);
  EXPECT_EQ(counts.stale, 1u);
  EXPECT_EQ(receiver_.latency().count(), 0u);
}

TEST_F(DecisionReceiverTest, NumbersTellWhatIsMissing) {
  receive(5, {entry(100), entry(101)}, 9'000);  // 0 to 4 never came
  receive(7, {entry(102)}, 9'000);
  receive(6, {entry(101)}, 9'000);  // once more
  receive(10, {entry(103)}, 9'000);
  const DecisionCounts counts = receiver_.counts();
  EXPECT_EQ(counts.missing, 5u + 2u);
  EXPECT_EQ(counts.out_of_order, 1u);
}

TEST_F(DecisionReceiverTest, WhatIsNoDecisionPacketIsCounted) {
  receive(std::vector<std::byte>(13), 9'000);
  std::vector<std::byte> mtp(8);
  mtp[3] = std::byte{0x1C};
  mtp[4] = std::byte{8};
  receive(mtp, 9'000);
  const DecisionCounts counts = receiver_.counts();
  EXPECT_EQ(counts.packets, 2u);
  EXPECT_EQ(counts.packets_bad_length, 1u);
  EXPECT_EQ(counts.packets_bad_format, 1u);
  EXPECT_EQ(counts.physics, 0u);
}

}  // namespace
}  // namespace nanet::emulate
