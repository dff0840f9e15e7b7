// SPDX-License-Identifier: Apache-2.0
#include "trigger/decision_sender.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace nanet::trigger {
namespace {

class KeepingLink final : public link::Link {
 public:
  std::size_t min_room_bytes() const override { return 0; }
  link::RxBatch receive(std::span<std::byte>, std::span<link::RxPacket>, std::uint64_t) override { return {}; }
  void send(std::span<const link::TxPacket> packets, std::uint64_t) override {
    ++calls;
    for (const link::TxPacket& packet : packets) {
      EXPECT_EQ(packet.destination, 0u);
      payloads.emplace_back(packet.data, packet.data + packet.bytes);
    }
  }
  void wait(std::uint64_t) override {}
  link::Endpoint local() const override { return {}; }
  std::string path() const override { return "memory"; }
  std::vector<std::string> notes() const override { return {}; }
  link::LinkStats stats() const override { return {}; }

  int calls = 0;
  std::vector<std::vector<std::byte>> payloads;
};

l0tp::Decision trigger(std::uint64_t number, std::uint64_t arrived_ns) {
  l0tp::Decision decision;
  decision.timestamp = static_cast<std::uint32_t>(number);
  decision.matched_inputs = 3;
  decision.trigger_word = 5;
  decision.trigger_number = number;
  decision.arrived_ns = arrived_ns;
  return decision;
}

TEST(DecisionSender, FillsPacketsAndSaysWhenThereIsNoRoom) {
  constexpr std::uint64_t kRoom = DecisionSender::kPacketsMax * wire::kL0DecisionEntriesMax;
  KeepingLink link;
  DecisionSender sender(link, Destination::link, 9);
  std::uint64_t now_ns = 1'000;
  const auto clock = [&] { return now_ns; };
  sender.send(clock);
  EXPECT_EQ(link.calls, 0);
  const std::uint64_t first = (1u << 24) - 10;  // the number on the wire has 24 bits
  for (std::uint64_t i = 0; i < kRoom; ++i) ASSERT_TRUE(sender.add(trigger(first + i, 500)));
  EXPECT_FALSE(sender.add(trigger(first + kRoom, 500)));
  sender.send(clock);
  EXPECT_TRUE(sender.add(trigger(first + kRoom, 600)));
  now_ns = 2'000;
  sender.send(clock);
  EXPECT_EQ(link.calls, 2);
  ASSERT_EQ(link.payloads.size(), DecisionSender::kPacketsMax + 1u);
  std::uint64_t number = first;
  for (const auto& payload : link.payloads) {
    wire::L0DecisionView view;
    ASSERT_EQ(wire::L0DecisionView::parse(payload, view), wire::ParseError::none);
    EXPECT_EQ(view.first_trigger_number(), number & wire::kL0TriggerNumberMask);
    for (std::uint32_t e = 0; e < view.entry_count(); ++e, ++number) {
      ASSERT_EQ(view.entry(e).timestamp, static_cast<std::uint32_t>(number));
      ASSERT_EQ(view.entry(e).matched_kind, 3);
    }
  }
  EXPECT_EQ(number, first + kRoom + 1);
  EXPECT_EQ(sender.triggers_sent(), kRoom + 1);
  EXPECT_EQ(sender.packets_sent(), DecisionSender::kPacketsMax + 1u);
  EXPECT_EQ(sender.latency().count(), kRoom + 1);
  EXPECT_EQ(sender.latency().min(), 500u);
  EXPECT_EQ(sender.latency().max(), 1'400u);
}

TEST(DecisionSender, EveryTriggerHasItsOwnLatencyAndCalibrationsAreMarked) {
  KeepingLink link;
  DecisionSender sender(link, Destination::link, 0);
  std::uint64_t added = 0;
  while (sender.add(trigger(added, 1'000 + added))) ++added;  // each came at another time
  EXPECT_EQ(added, 1024u);
  l0tp::Decision calibration = trigger(added, 0);
  calibration.kind = l0tp::DecisionKind::calibration;
  sender.send([] { return std::uint64_t{3'000}; });
  EXPECT_EQ(sender.latency().min(), 3'000u - 2'023u);
  EXPECT_EQ(sender.latency().max(), 2'000u);
  ASSERT_TRUE(sender.add(calibration));
  sender.send([] { return std::uint64_t{3'000}; });
  wire::L0DecisionView view;
  ASSERT_EQ(wire::L0DecisionView::parse(link.payloads.back(), view), wire::ParseError::none);
  EXPECT_EQ(view.entry(0).matched_kind, 0x83);
}

TEST(DecisionSender, WithoutADestinationNothingIsSent) {
  KeepingLink link;
  DecisionSender sender(link, Destination::none, 0);
  EXPECT_TRUE(sender.add(trigger(0, 10)));
  sender.send([] { return std::uint64_t{25}; });
  EXPECT_EQ(link.calls, 0);
  EXPECT_EQ(sender.triggers_sent(), 0u);
  EXPECT_EQ(sender.latency().max(), 15u);
}

}  // namespace
}  // namespace nanet::trigger
