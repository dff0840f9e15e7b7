// SPDX-License-Identifier: Apache-2.0
// ARP and ICMP echo through the verilated NIC: an unmodified sender finds and pings it, and payloads do not suffer.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "wire_rig.hpp"

namespace nanet::link::gateware::wire {
namespace {

Bytes filled(Bytes frame) {
  frame.resize(std::max<std::size_t>(frame.size(), 60));
  return frame;
}

Bytes arp_answer() {
  return filled(ethernet(arp_packet(2, kMac, kAddress, kPeerMac, kPeer), {.to = kPeerMac, .from = kMac, .type = kArp}));
}

// The answer to echo_request(data).
Bytes echo_answer(std::span<const std::byte> data) {
  Bytes packet = ipv4(icmp(0, data), {.protocol = kIcmpProtocol, .ttl = 64});
  std::swap_ranges(packet.begin() + 12, packet.begin() + 16, packet.begin() + 16);
  return filled(ethernet(packet, {.to = kPeerMac, .from = kMac}));
}

class ReplierTest : public WireRig {};

TEST_F(ReplierTest, AnArpRequestIsAnswered) {
  start();
  push(arp_request());
  push(ethernet(arp_packet(1, kPeerMac, kPeer, {}, kAddress), {.to = kMac, .type = kArp, .tags = {7}}));  // as asked again, in a VLAN
  run_dry();
  EXPECT_EQ(left(), (std::vector<Bytes>{arp_answer(), arp_answer()}));
  EXPECT_EQ(reply_count(reply::answered_arp), 2u);
  expect_balanced(0);
}

TEST_F(ReplierTest, EchoRequestsOfAllSizesAreAnswered) {
  start();
  std::mt19937_64 random(1);
  std::vector<Bytes> answers;
  for (std::size_t bytes = 0; bytes <= 1472; bytes += bytes < 70 || bytes == 1471 ? 1 : 467) {
    const Bytes data = random_bytes(random, bytes);
    push(echo_request(data));
    answers.push_back(echo_answer(data));
    run_dry();
  }
  const std::vector<Bytes> seen = left();
  EXPECT_TRUE(seen == answers) << seen.size() << " answers, not " << answers.size();
  EXPECT_EQ(reply_count(reply::answered_echo), answers.size());
  push(echo_request(Bytes(1473)));
  run_dry();
  EXPECT_EQ(left(), std::vector<Bytes>{});
  EXPECT_EQ(reply_count(reply::echo_large), 1u);
  expect_balanced(0);
}

TEST_F(ReplierTest, WithoutItsAddressesTheNicIsSilent) {
  start();
  model->write(0x028, 0);
  push(arp_request(0));
  run_dry();
  EXPECT_EQ(left(), std::vector<Bytes>{});
  EXPECT_EQ(reply_count(reply::arp_other), 1u);
  expect_balanced(0);
}

// Payloads and requests come back to back while the NIC sends as fast as it can: each payload arrives, in both directions, and every request is
// answered or counted as too many.
TEST_F(ReplierTest, RequestsAmongPayloadsAtLineRateCostNone) {
  start({.seed = 5}, {.clops = {{.buffer_bytes = 128 << 10, .packets_per_buffer = 256}}, .tx_entries = 64});
  std::mt19937_64 random(5);
  constexpr std::size_t kPayloads = 3000, kSent = 1500;
  std::vector<Bytes> payloads, sent, answers, seen, seen_answers;
  for (std::size_t k = 0; k < kPayloads; ++k) {
    payloads.push_back(random_bytes(random, 1 + random() % (k % 2 == 0 ? 30 : 500)));
    push(udp_frame(payloads.back()));
    if (k % 3 == 0) push(arp_request());
    if (k % 5 == 0) push(echo_request(random_bytes(random, random() % 200)));
  }
  for (int k = 0; k < 1'000'000 && (received.size() < kPayloads || driver->under_way() != 0); ++k) {
    take();
    while (driver->poll_sent() != nullptr) {
    }
    if (sent.size() == kSent) continue;
    Bytes payload = random_bytes(random, 1 + random() % 400);
    if (driver->send(payload, 2, 0)) sent.push_back(std::move(payload));
  }
  run_dry();
  EXPECT_TRUE(received == payloads) << received.size() << " payloads, not " << payloads.size();
  std::size_t others = 0;
  for (const Bytes& frame : left()) {
    UdpView view;
    if (read_udp_frame(frame, view) == FrameError::none)
      seen.emplace_back(view.payload.begin(), view.payload.end());
    else
      ++others;
  }
  EXPECT_TRUE(seen == sent) << seen.size() << " packets sent, not " << sent.size();
  EXPECT_EQ(sent.size(), kSent);
  EXPECT_EQ(others, reply_count(reply::replied));
  EXPECT_EQ(reply_count(reply::answered_arp) + reply_count(reply::answered_echo) + reply_count(reply::busy),
            kPayloads / 3 + kPayloads / 5);
  EXPECT_GT(reply_count(reply::answered_echo), 100u);
  EXPECT_EQ(tx_count(tx::underrun), 0u);
  expect_balanced(kSent);
}

// Cycles from the last byte of a frame to the last write of its payload, one number for each lane on which a frame begins: alone, and among requests.
TEST_F(ReplierTest, RequestsDoNotChangeTheLatencyOfPayloads) {
  constexpr std::size_t kPayloads = 1000, kBytes = 256;  // a write of its own, which no page cuts
  std::array<std::set<std::pair<unsigned, std::uint64_t>>, 2> seen;
  for (const bool asks : {false, true}) {
    start({}, {.clops = {{.buffer_bytes = 512 << 10, .packets_per_buffer = kPayloads, .timeout_ns = 0}}});
    model->wire_in().keep_sent(true);
    model->bus().keep_writes(true);
    for (std::size_t k = 0; k < kPayloads; ++k) {
      push(udp_frame(Bytes(kBytes - k % 2, std::byte{1})));
      for (std::size_t n = asks ? k % 3 : 0; n > 0; --n) push(k % 2 == 0 ? arp_request() : echo_request(Bytes(k)));
    }
    run_dry();
    std::vector<std::uint64_t> ends;
    for (const auto& write : model->bus().writes()) {
      if (write.bytes + 1 >= kBytes) ends.push_back(write.last_cycle);
    }
    ASSERT_EQ(ends.size(), kPayloads);
    std::size_t frame = 0;
    for (std::size_t k = 0; k < kPayloads; ++k) {
      const auto& sent = model->wire_in().sent_frames()[frame];
      seen[asks].insert({sent.start_lane, ends[k] - sent.last_byte_cycle});
      frame += 1 + (asks ? k % 3 : 0);
    }
    EXPECT_EQ(asks, reply_count(reply::replied) > 200);
    model->bus().keep_writes(false);
    TearDown();
  }
  EXPECT_EQ(seen[0], seen[1]);
  for (const auto& [lane, cycles] : seen[1]) EXPECT_LE(cycles, 31u) << "lane " << lane;
  EXPECT_LE(seen[1].size(), 4u);  // two sizes, two lanes
}

// The wire out is slower than requests come in when both are as long and payloads want half of it.
TEST_F(ReplierTest, WhoAsksTooMuchIsDroppedAndCounted) {
  start({}, {.tx_entries = 64});
  for (int k = 0; k < 64; ++k) ASSERT_TRUE(driver->send(Bytes(1400, std::byte{1}), 2, 0));
  const Bytes data(1400, std::byte{2});
  for (int k = 0; k < 40; ++k) push(echo_request(data));
  while (driver->under_way() != 0) {
    take();
    driver->poll_sent();
  }
  run_dry();
  const std::uint64_t answered = reply_count(reply::answered_echo);
  EXPECT_GT(reply_count(reply::busy), 0u);
  EXPECT_EQ(answered + reply_count(reply::busy), 40u);
  const std::vector<Bytes> seen = left();
  EXPECT_EQ(seen.size(), 64 + answered);
  EXPECT_EQ(static_cast<std::uint64_t>(std::count(seen.begin(), seen.end(), echo_answer(data))), answered);
  push(arp_request());
  run_dry();
  EXPECT_TRUE(left() == std::vector<Bytes>{arp_answer()});
  expect_balanced(64);
}

TEST_F(ReplierTest, AResetAmongAnswersLeavesNothingBehind) {
  start();
  for (std::uint64_t cycles = 60; cycles < 600; cycles += 37) {
    for (int k = 0; k < 4; ++k) push(echo_request(Bytes(300, std::byte{1})));
    model->step(cycles);
    model->reset();
    while (model->wire_in().waiting() != 0) model->step();
    model->step(400);
    model->wire_out().frames().clear();  // the one that was cut is the sink's to refuse
    drive();
    push(arp_request());
    run_dry();
    ASSERT_EQ(model->wire_out().frames().size(), 1u) << "reset after " << cycles;
    EXPECT_EQ(model->wire_out().frames()[0].bytes, arp_answer());
    EXPECT_EQ(reply_count(reply::answered_arp), 1u);
  }
}

}  // namespace
}  // namespace nanet::link::gateware::wire
