// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/transmitter.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

namespace nanet::engine {
namespace {

class SendLink final : public link::Link {
 public:
  std::size_t min_room_bytes() const override { return 64; }
  link::RxBatch receive(std::span<std::byte>, std::span<link::RxPacket>, std::uint64_t) override { return {}; }
  void send(std::span<const link::TxPacket> packets, std::uint64_t) override {
    ++calls;
    for (const link::TxPacket& packet : packets) sent.push_back({packet.destination, std::to_integer<int>(packet.data[0])});
  }
  void wait(std::uint64_t) override {}
  link::Endpoint local() const override { return {}; }
  std::string path() const override { return "memory"; }
  std::vector<std::string> notes() const override { return {}; }
  link::LinkStats stats() const override { return {}; }

  int calls = 0;
  std::vector<std::pair<std::uint32_t, int>> sent;  // destination, first byte
};

void post(flow::TxRing& ring, int first_byte) {
  ring.slot()[0] = static_cast<std::byte>(first_byte);
  ring.post(8, 0, 5);
}

TEST(Transmitter, EachPacketGoesToEveryDestinationAndComesBackOnce) {
  SendLink link;
  flow::TxRing ring({.capacity = 8, .slot_bytes = 64, .locked = false});
  flow::CompletionQueue sent(16);
  Transmitter transmitter(ring, link, sent, 3);
  post(ring, 10);
  post(ring, 11);
  EXPECT_EQ(transmitter.poll(1), 0u);  // no doorbell yet
  ring.ring_doorbell();
  EXPECT_EQ(transmitter.poll(1), 2u);
  EXPECT_EQ(link.calls, 1);
  // Packets for one destination lie together.
  const std::vector<std::pair<std::uint32_t, int>> expected{{0, 10}, {0, 11}, {1, 10}, {1, 11}, {2, 10}, {2, 11}};
  EXPECT_EQ(link.sent, expected);
  for (int i = 0; i < 2; ++i) {
    ASSERT_NE(sent.peek(), nullptr);
    EXPECT_EQ(sent.peek()->kind, CompletionKind::packet_sent);
    EXPECT_EQ(sent.peek()->packet_count, 1u);
    sent.pop();
  }
  EXPECT_EQ(sent.peek(), nullptr);
  EXPECT_EQ(ring.in_use(), 0u);
  EXPECT_EQ(transmitter.residence_ns().count(), 2u);
}

TEST(Transmitter, ADescriptorOfNothingIsGivenBackAndNothingIsSent) {
  SendLink link;
  flow::TxRing ring({.capacity = 8, .slot_bytes = 64, .locked = false});
  flow::CompletionQueue sent(16);
  Transmitter transmitter(ring, link, sent, 1);
  ring.post(0, 0, 5);
  ring.ring_doorbell();
  EXPECT_EQ(transmitter.poll(1), 1u);
  EXPECT_EQ(link.calls, 0);
  EXPECT_EQ(sent.peek(), nullptr);
  ring.post(0, 0, 5);
  post(ring, 12);
  ring.ring_doorbell();
  EXPECT_EQ(transmitter.poll(1), 2u);
  const std::vector<std::pair<std::uint32_t, int>> expected{{0, 12}};
  EXPECT_EQ(link.sent, expected);
  ASSERT_NE(sent.peek(), nullptr);
  EXPECT_EQ(sent.peek()->bytes, 8u);
  sent.pop();
  EXPECT_EQ(sent.peek(), nullptr);
  EXPECT_EQ(ring.in_use(), 0u);
  EXPECT_EQ(transmitter.residence_ns().count(), 1u);
}

}  // namespace
}  // namespace nanet::engine
