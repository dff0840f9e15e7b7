// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/receiver.hpp"
#include "na62/protocols.hpp"

#include <gtest/gtest.h>

#include "nanet/setup_error.hpp"
#include "support.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;
using test::Bytes;

class ReceiverTest : public ::testing::Test {
 protected:
  void make(ReceiverConfig config = {.batch_size = 32, .timeout_ns = 0}, std::uint32_t buffer_count = 4,
            const Protocol& protocol = na62::kMgp) {
    clop = std::make_unique<flow::Clop>(flow::ClopConfig{
        .name = "test", .id = 3, .buffer_count = buffer_count, .buffer_bytes = 65536, .huge_pages = false, .locked = false});
    queue = std::make_unique<flow::CompletionQueue>(16);
    flow::Router router({{.source_id = 0x1C, .source_sub_id = 0, .source = 0, .clop = 3},
                         {.source_id = 0x1C, .source_sub_id = 1, .source = 1, .clop = 3}});
    receiver = protocol.make_receiver(config, {link, *clop, *queue, router, 2});
  }
  void give(Bytes payload, std::uint16_t flags = 0) { link.incoming.push_back({std::move(payload), flags}); }
  std::uint64_t source(Counter counter, std::size_t s = 0) const { return receiver->source_counters(s).value(counter); }
  std::uint64_t refused(Counter counter) const { return receiver->link_counters().value(counter); }

  test::MemoryLink link;
  std::unique_ptr<flow::Clop> clop;
  std::unique_ptr<flow::CompletionQueue> queue;
  std::unique_ptr<Receiver> receiver;
  std::vector<test::TestEvent> events = test::make_events(64, 1);
};

TEST_F(ReceiverTest, HandsOverABatchWithItsIndex) {
  make();
  give(test::make_packet(std::span(events).first(16), 0));
  give(test::make_packet(std::span(events).subspan(16, 16), 1));
  EXPECT_EQ(receiver->poll(1000), 2u);
  const Completion* completion = queue->peek();
  ASSERT_NE(completion, nullptr);
  EXPECT_EQ(completion->sequence, 1u);
  EXPECT_EQ(completion->kind, CompletionKind::buffer_filled);
  EXPECT_EQ(completion->clop, 3u);
  EXPECT_EQ(completion->packet_count, 2u);
  EXPECT_EQ(completion->event_count, 32u);
  EXPECT_EQ(completion->bytes, 2u * 1168);
  EXPECT_EQ(completion->stride_bytes, 1168u);
  EXPECT_EQ(completion->status, status::timeout);
  EXPECT_EQ(completion->first_packet_ns, 1000u);
  const auto index = clop->packet_index(completion->buffer_index);
  EXPECT_EQ(index[1].offset, 1168u);
  EXPECT_EQ(index[1].bytes, 1168u);
  EXPECT_EQ(index[1].source, 0u);
  const Bytes expected = test::make_packet(std::span(events).subspan(16, 16), 1);
  const auto buffer = clop->buffer(completion->buffer_index).subspan(1168, 1168);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), buffer.begin()));
}

TEST_F(ReceiverTest, WaitsForTheTimeOut) {
  make({.batch_size = 32, .timeout_ns = 500});
  give(test::make_packet(std::span(events).first(16), 0));
  receiver->poll(1000);
  EXPECT_EQ(queue->peek(), nullptr);
  receiver->poll(1499);
  EXPECT_EQ(queue->peek(), nullptr);
  give(test::make_packet(std::span(events).subspan(16, 16), 1));
  receiver->poll(1500);
  ASSERT_NE(queue->peek(), nullptr);
  EXPECT_EQ(queue->peek()->packet_count, 2u);
  EXPECT_EQ(queue->peek()->first_packet_ns, 1000u);
  EXPECT_EQ(queue->peek()->last_packet_ns, 1500u);
}

TEST_F(ReceiverTest, ABusyConsumerGetsFullerBuffers) {
  make({.batch_size = 1, .timeout_ns = 0}, 4);
  const auto many = test::make_events(16 * 6, 2);
  for (std::uint32_t p = 0; p < 6; ++p) give(test::make_packet(std::span(many).subspan(16 * p, 16), p));
  while (receiver->poll(1000) > 0) {
  }
  EXPECT_EQ(clop->in_use(), 2u);  // one packet each; the other four wait in the third buffer
  EXPECT_TRUE(receiver->holds_packets());
  queue->pop();
  clop->release();
  receiver->poll(2000);  // nothing new comes
  EXPECT_EQ(clop->in_use(), 2u);
  EXPECT_FALSE(receiver->holds_packets());
  queue->pop();
  ASSERT_NE(queue->peek(), nullptr);
  EXPECT_EQ(queue->peek()->packet_count, 4u);
  EXPECT_EQ(source(Counter::packets_accepted), 6u);
}

TEST_F(ReceiverTest, FlushHandsOverWhatIsThere) {
  make({.batch_size = 32, .timeout_ns = 1'000'000});
  receiver->flush();
  EXPECT_EQ(queue->peek(), nullptr);
  give(test::make_packet(std::span(events).first(16), 0));
  receiver->poll(1000);
  receiver->flush();
  ASSERT_NE(queue->peek(), nullptr);
  EXPECT_EQ(queue->peek()->status, status::flush);
}

TEST_F(ReceiverTest, HandsOverAFullBuffer) {
  make({.batch_size = 8, .timeout_ns = 1'000'000});
  std::uint32_t sent = 0;
  while (queue->peek() == nullptr) {
    ASSERT_LT(sent, 100u);
    give(test::make_packet(std::span(events).first(16), sent++));
    receiver->poll(1000);
  }
  EXPECT_EQ(queue->peek()->status, status::full);
  EXPECT_EQ(queue->peek()->packet_count, sent);
  EXPECT_LT(65536 - queue->peek()->bytes, link.room_bytes);
}

TEST_F(ReceiverTest, RefusesBadPacketsByReasonAndKeepsTheGoodOnes) {
  make();
  Bytes corrupt = test::make_packet(std::span(events).first(16), 1);
  corrupt[100] ^= std::byte{4};
  Bytes format = test::make_packet(std::span(events).first(16), 1);
  format[2] = std::byte{0x0F};
  Bytes truncated = test::make_packet(std::span(events).first(16), 1);
  truncated.resize(600);
  give(test::make_packet(std::span(events).first(16), 0));
  give(corrupt);
  give(format);
  give(truncated);
  give({});
  give(test::make_packet(std::span(events).first(16), 0, 9));  // no such board
  give(test::make_packet(std::span(events).first(16), 1), link::RxPacket::truncated);
  give(test::make_packet(std::span(events).subspan(16, 16), 1));
  receiver->poll(1000);
  EXPECT_EQ(refused(Counter::packets_bad_checksum), 1u);
  EXPECT_EQ(refused(Counter::packets_bad_format), 1u);
  EXPECT_EQ(refused(Counter::packets_bad_length), 2u);
  EXPECT_EQ(refused(Counter::packets_unknown_source), 1u);
  EXPECT_EQ(refused(Counter::packets_truncated), 1u);
  EXPECT_EQ(source(Counter::packets_accepted), 2u);
  ASSERT_NE(queue->peek(), nullptr);
  EXPECT_EQ(queue->peek()->packet_count, 2u);
  EXPECT_EQ(queue->peek()->stride_bytes, 0u) << "refused packets leave holes, so the index is needed";
  EXPECT_EQ(queue->peek()->status, status::timeout | status::error | status::truncated);
}

TEST_F(ReceiverTest, ABufferOfBadPacketsIsUsedAgain) {
  make();
  for (int i = 0; i < 1000; ++i) give(Bytes(100));
  while (receiver->poll(1000) > 0) {
  }
  EXPECT_EQ(queue->peek(), nullptr);
  EXPECT_EQ(refused(Counter::packets_bad_length) + refused(Counter::packets_bad_format), 1000u);
}

TEST_F(ReceiverTest, CountsGapsByCause) {
  make();
  give(test::make_start_marker(0, 0));
  give(test::make_packet(std::span(events).subspan(16, 16), 1));                              // packet 0 missing
  give(test::make_packet(std::span(events).subspan(48, 16), 3), link::RxPacket::after_drop);  // packet 2 missing
  give(test::make_packet(std::span(events).subspan(48, 16), 3));                              // twice
  give(test::make_end_marker(5, 80));                                                         // packet 4 missing
  receiver->poll(1000);
  EXPECT_EQ(source(Counter::packets_lost_network), 2u);
  EXPECT_EQ(source(Counter::packets_lost_kernel), 1u);
  EXPECT_EQ(source(Counter::packets_duplicate), 1u);
  EXPECT_EQ(source(Counter::packets_marker), 2u);
  EXPECT_EQ(source(Counter::events_lost), 48u);
  EXPECT_EQ(source(Counter::events_received), 32u);
  ASSERT_NE(queue->peek(), nullptr);
  EXPECT_EQ(queue->peek()->packets_lost, 3u);
  EXPECT_EQ(queue->peek()->status & status::gap, status::gap);
}

TEST_F(ReceiverTest, MarksTheFirstPacketOfANewRun) {
  make();
  give(test::make_start_marker(0, 0));
  give(test::make_packet(std::span(events).first(16), 0));
  give(test::make_packet(std::span(events).subspan(16, 16), 1));
  give(test::make_end_marker(2, 32));
  give(test::make_start_marker(0, 0));
  give(test::make_packet(std::span(events).first(16), 0));
  receiver->poll(1000);
  ASSERT_NE(queue->peek(), nullptr);
  const auto index = clop->packet_index(queue->peek()->buffer_index);
  ASSERT_EQ(queue->peek()->packet_count, 3u);
  EXPECT_EQ(index[0].source, 0u);
  EXPECT_EQ(index[1].source, 0u);
  EXPECT_EQ(index[2].source, PacketRef::run_start);
  EXPECT_EQ(queue->peek()->status, status::timeout | status::run_start);
  give(test::make_packet(std::span(events).subspan(16, 16), 1));
  queue->pop();
  receiver->poll(2000);
  ASSERT_NE(queue->peek(), nullptr);
  EXPECT_EQ(queue->peek()->status, status::timeout);
  EXPECT_EQ(source(Counter::source_restarts), 1u);
}

TEST_F(ReceiverTest, FullClopDropsByNameAndRecovers) {
  make({.batch_size = 1, .timeout_ns = 0}, 2);
  const auto many = test::make_events(16 * 6, 2);
  give(test::make_start_marker(0, 0));
  for (std::uint32_t p = 0; p < 5; ++p) give(test::make_packet(std::span(many).subspan(16 * p, 16), p));
  while (receiver->poll(1000) > 0) {
  }
  EXPECT_EQ(source(Counter::packets_accepted), 2u);
  EXPECT_EQ(source(Counter::packets_clop_full), 3u);
  EXPECT_EQ(source(Counter::events_lost), 48u);
  EXPECT_EQ(source(Counter::packets_lost_network), 0u);
  queue->pop();
  clop->release();
  give(test::make_packet(std::span(many).subspan(80, 16), 5));
  receiver->poll(1000);
  EXPECT_EQ(source(Counter::packets_accepted), 3u);
  EXPECT_EQ(source(Counter::events_received), 48u);
  EXPECT_EQ(source(Counter::packets_lost_network), 0u);
}

TEST_F(ReceiverTest, RawTakesAnyDatagram) {
  make({.batch_size = 32, .timeout_ns = 0}, 4, kRaw);
  give(Bytes(7));
  give(Bytes(0));
  give(Bytes(24));
  receiver->poll(1000);
  EXPECT_EQ(source(Counter::packets_accepted), 3u);
  EXPECT_EQ(source(Counter::bytes_accepted), 31u);
  ASSERT_NE(queue->peek(), nullptr);
  EXPECT_EQ(queue->peek()->packet_count, 3u);
  EXPECT_EQ(queue->peek()->stride_bytes, 0u);
}

TEST_F(ReceiverTest, RefusesWhatIsLongerThanThePacketsMayBe) {
  make({.batch_size = 32, .timeout_ns = 0, .packet_bytes_max = 100}, 4, kRaw);
  for (const std::size_t bytes : {100u, 101u, 500u}) give(Bytes(bytes));
  receiver->poll(1000);
  ASSERT_NE(queue->peek(), nullptr);
  EXPECT_EQ(queue->peek()->packet_count, 1u);
  EXPECT_EQ(source(Counter::packets_accepted), 1u);
  EXPECT_EQ(refused(Counter::packets_truncated), 2u);
}

TEST_F(ReceiverTest, TakesPacketsOfConfiguredSendersOnly) {
  make({.batch_size = 32, .timeout_ns = 0, .senders = {{0x0A000100, 24}, {0xC0A80007, 32}}});  // 10.0.1.0/24 and 192.168.0.7
  std::uint32_t sequence = 0;
  for (const std::uint32_t from : {0x0A000105u, 0x0A000205u, 0xC0A80007u, 0xC0A80008u, 0u, 0x0A0001FFu}) {
    const bool known = from == 0x0A000105u || from == 0xC0A80007u || from == 0x0A0001FFu;
    link.incoming.push_back({test::make_packet(std::span(events).first(16), known ? sequence++ : 7), 0, from});
  }
  EXPECT_EQ(receiver->poll(1000), 6u);
  EXPECT_EQ(source(Counter::packets_accepted), 3u);
  EXPECT_EQ(refused(Counter::packets_unknown_sender), 3u);
  EXPECT_EQ(source(Counter::packets_lost_network), 0u);
}

TEST_F(ReceiverTest, TakesPacketsOfConfiguredIpv6SendersOnly) {
  make({.batch_size = 32, .timeout_ns = 0, .senders = sender_networks({"2001:db8:1::/48", "fd00::7", "10.0.0.0/8"})});
  const auto address = [](const char* text) { return link::parse_endpoint(std::string("udp://[") + text + "]:0").address; };
  const std::vector<std::pair<const char*, bool>> peers{
      {"2001:db8:1::5", true}, {"2001:db8:2::5", false}, {"fd00::7", true}, {"fd00::8", false}, {"::a00:1", false}};
  std::uint32_t sequence = 0;
  for (int turn = 0; turn < 2; ++turn) {  // an index stands for another sender in the next batch
    link.ipv6_peers.clear();
    for (const auto& [text, known] : peers) link.ipv6_peers.push_back(address(text));
    if (turn == 1) std::reverse(link.ipv6_peers.begin(), link.ipv6_peers.end());
    for (std::uint32_t from = 0; from < peers.size(); ++from) {
      const bool known = peers[turn == 0 ? from : peers.size() - 1 - from].second;
      link.incoming.push_back({test::make_packet(std::span(events).first(16), known ? sequence++ : 7), 0, from});
    }
    EXPECT_EQ(receiver->poll(1000), 5u);
  }
  EXPECT_EQ(source(Counter::packets_accepted), 4u);
  EXPECT_EQ(refused(Counter::packets_unknown_sender), 6u);
}

TEST(SenderNetwork, IsReadFromText) {
  EXPECT_TRUE(sender_networks({"10.0.0.7"})[0].is_single());
  EXPECT_TRUE(sender_networks({"fd00::7/128"})[0].is_single());
  EXPECT_FALSE(sender_networks({"fd00::/64"})[0].is_single());
  EXPECT_THROW(sender_networks({"10.0.0.0/33"}), SetupError);
  EXPECT_THROW(sender_networks({"fd00::/129"}), SetupError);
  EXPECT_THROW(sender_networks({"fd00::/64x"}), SetupError);
}

TEST(SenderNetwork, OfNoBitsHoldsEverybody) {
  EXPECT_TRUE((SenderNetwork{0, 0}).holds(0xFFFFFFFF));
  EXPECT_FALSE((SenderNetwork{0x0A000001, 32}).holds(0x0A000000));
}

}  // namespace
}  // namespace nanet::engine
