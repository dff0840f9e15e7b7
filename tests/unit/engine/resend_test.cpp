// SPDX-License-Identifier: Apache-2.0
// What is asked for again, when, how often, and what the books say of it.
#include "nanet/engine/resend.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "nanet/engine/assembler.hpp"
#include "nanet/engine/kinds.hpp"
#include "nanet/setup_error.hpp"
#include "pieces.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;

constexpr std::uint32_t kPiece = 100;
constexpr std::uint64_t kUs = 1000;

struct Asked final : Requester {
  void ask(const MissingPart& part) override { parts.push_back(part); }
  void flush() override { ++flushes; }

  std::vector<MissingPart> parts;
  int flushes = 0;
};

// Units of 10 payloads of 100 B, counted in packets, as those of a camera.
class ResendTest : public ::testing::Test {
 protected:
  void make(ResendConfig resend = {.after_us = 10, .again_us = 100, .tries_max = 3, .packets_max = 8}) {
    clop = std::make_unique<flow::Clop>(flow::ClopConfig{.name = "units",
                                                         .buffer_count = 4,
                                                         .buffer_bytes = 4096,
                                                         .index_capacity = Assembler::index_capacity(4096),
                                                         .huge_pages = false,
                                                         .locked = false});
    queue = std::make_unique<flow::CompletionQueue>(8);
    assembler = std::make_unique<Assembler>(
        AssembleConfig{.streams_max = 2, .units_open = 2, .timeout_us = 1000, .resend = std::move(resend)}, *clop, *queue);
  }
  void packet(std::uint64_t unit, std::uint64_t index, std::uint32_t bytes = kPiece) {
    const std::vector<std::byte> payload(bytes, std::byte{1});
    assembler->take({.unit = unit, .place = index, .payload_offset = 8, .payload_bytes = bytes, .place_is_index = true}, payload,
                    now_ns);
  }
  void packets(std::uint64_t unit, std::initializer_list<std::uint64_t> indices) {
    for (const std::uint64_t index : indices) packet(unit, index);
  }
  void trailer(std::uint64_t unit, std::uint64_t count = 10) {
    assembler->take({.unit = unit, .payload_offset = 8, .unit_packets = count, .place_is_index = true}, {}, now_ns);
  }
  // What is asked for at that time: pairs of first packet and count.
  using Parts = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  Parts look(std::uint64_t at_us, Assembler::Rest rest = Assembler::Rest::none) {
    now_ns = at_us * kUs;
    asked.parts.clear();
    assembler->expire(now_ns, rest);
    assembler->ask_for_missing(asked, now_ns, rest);
    Parts parts;
    for (const MissingPart& part : asked.parts) parts.emplace_back(part.first_packet(), part.packet_count());
    return parts;
  }
  std::uint64_t count(Counter counter) const { return assembler->counters().value(counter); }

  std::unique_ptr<flow::Clop> clop;
  std::unique_ptr<flow::CompletionQueue> queue;
  std::unique_ptr<Assembler> assembler;
  Asked asked;
  std::uint64_t now_ns = kUs;
};

TEST_F(ResendTest, AHoleIsAskedForWhenItIsOldEnough) {
  make();
  packets(5, {0, 1, 4});
  EXPECT_EQ(look(1), Parts{}) << "just seen";
  packets(5, {5, 7});
  EXPECT_EQ(look(10), Parts{}) << "too early to look";
  EXPECT_EQ(look(11), (Parts{{2, 2}})) << "the one before 7 is younger";
  EXPECT_EQ(asked.parts[0].unit, 5u);
  EXPECT_EQ(asked.parts[0].header_bytes, 8u);
  EXPECT_EQ(asked.parts[0].piece_bytes, kPiece);
  EXPECT_FALSE(asked.parts[0].open_end);
  EXPECT_EQ(look(21), (Parts{{6, 1}}));
  EXPECT_EQ(look(31), Parts{}) << "asked for once";
  packets(5, {2, 3, 6, 8, 9});
  trailer(5);
  EXPECT_EQ(count(Counter::units_complete), 1u);
  EXPECT_EQ(count(Counter::resends_asked), 3u);
  EXPECT_EQ(count(Counter::resends_came), 3u);
  EXPECT_EQ(count(Counter::resends_not_came), 0u);
  EXPECT_EQ(count(Counter::resend_requests), 2u);
}

TEST_F(ResendTest, WhatIsMerelyReorderedIsNotAskedFor) {
  make();
  packets(1, {1});
  EXPECT_EQ(look(1), Parts{});
  packets(1, {0, 3});
  EXPECT_EQ(look(11), Parts{});
  packets(1, {2, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(look(21), Parts{});
  EXPECT_EQ(count(Counter::resend_requests), 0u);
}

TEST_F(ResendTest, WhatDoesNotComeIsAskedForAgainButNotForever) {
  make();
  packets(1, {0, 2, 4});
  trailer(1);
  look(1);
  EXPECT_EQ(look(11), (Parts{{1, 1}, {3, 1}}));
  EXPECT_EQ(look(100), Parts{});
  packets(1, {3, 5});
  EXPECT_EQ(look(111), (Parts{{1, 1}})) << "a second time";
  EXPECT_EQ(look(150), Parts{});
  packets(1, {6});
  EXPECT_EQ(look(211), (Parts{{1, 1}})) << "a third one";
  packets(1, {7, 8, 9});
  EXPECT_EQ(look(311), Parts{});
  EXPECT_EQ(look(999), Parts{});
  EXPECT_EQ(count(Counter::resends_came), 0u) << "the unit is open";
  look(1001);
  EXPECT_EQ(count(Counter::units_timed_out), 1u);
  EXPECT_EQ(count(Counter::resends_asked), 2u);
  EXPECT_EQ(count(Counter::resends_came), 1u);
  EXPECT_EQ(count(Counter::resends_not_came), 1u);
  EXPECT_EQ(count(Counter::packets_lost_network), 1u);
}

TEST_F(ResendTest, AUnitAsksForSoManyPacketsAtMost) {
  make();
  packets(1, {5, 9});
  trailer(1);
  look(1);
  EXPECT_EQ(look(11), (Parts{{0, 5}, {6, 3}})) << "eight";
  packets(2, {0, 10});
  look(21);
  EXPECT_EQ(look(31), (Parts{{1, 8}})) << "of nine";
  EXPECT_EQ(look(41), Parts{});
  EXPECT_EQ(look(231, Assembler::Rest::at_hand), (Parts{{0, 5}, {6, 3}, {1, 8}})) << "again";
  packets(2, {9});
  assembler->flush();
  EXPECT_EQ(count(Counter::resends_asked), 16u);
  EXPECT_EQ(count(Counter::resends_not_came), 16u) << "the one that came was not asked for";
}

TEST_F(ResendTest, TheEndIsAskedForWhenNothingComes) {
  make();
  packets(1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  look(1);
  EXPECT_EQ(look(100), Parts{}) << "it may still come";
  EXPECT_EQ(look(111), (Parts{{10, 0}})) << "only a trailer can be missing";
  EXPECT_TRUE(asked.parts[0].open_end);
  EXPECT_EQ(look(121), Parts{});
  EXPECT_EQ(look(211), (Parts{{10, 0}}));
  trailer(1);
  EXPECT_EQ(count(Counter::units_complete), 1u);
  EXPECT_EQ(count(Counter::resends_asked), 0u) << "no payload was missing";
  packets(2, {0, 1, 2, 3, 4, 5, 6});
  look(221);
  EXPECT_EQ(look(321, Assembler::Rest::at_hand), Parts{}) << "more is at hand";
  EXPECT_EQ(look(331), (Parts{{7, 3}})) << "as long as the last unit";
  EXPECT_TRUE(asked.parts[0].open_end);
  packets(2, {7, 8});
  EXPECT_EQ(look(431), (Parts{{9, 1}}));
  EXPECT_TRUE(asked.parts[0].open_end);
  packets(2, {9});
  trailer(2);
  EXPECT_EQ(count(Counter::units_complete), 2u);
  EXPECT_EQ(count(Counter::resends_came), 3u);
}

TEST_F(ResendTest, ALeaderAloneAsksForAUnitLikeTheLast) {
  make();
  assembler->take({.unit = 1, .payload_offset = 8, .place_is_index = true}, {}, now_ns);
  EXPECT_EQ(look(500), Parts{}) << "a leader begins no unit";
  packets(1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  trailer(1);
  trailer(2);
  look(510);
  EXPECT_EQ(look(620), (Parts{{0, 8}})) << "a trailer does; packets_max";
  EXPECT_FALSE(asked.parts[0].open_end);
}

TEST_F(ResendTest, NoOneIsAskedForWhatIsUnknown) {
  make();
  trailer(1);
  EXPECT_EQ(look(500), Parts{}) << "how long packets are, no one has said yet";
}

// A sender that answers most requests: whatever it does, the books balance and only holes are asked for.
TEST_F(ResendTest, BooksBalanceWhateverIsLost) {
  std::uint64_t state = 7;
  const auto random = [&](std::uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>((state >> 33) % below);
  };
  make({.after_us = 10, .again_us = 30, .tries_max = 4, .packets_max = 6});
  std::uint64_t time_us = 1, unanswered = 0;
  for (std::uint64_t unit = 1; unit < 3000; ++unit) {
    std::vector<bool> came(10);
    bool trailer_came = false;
    for (std::uint64_t k = 0; k < 10; ++k) {
      if (random(5) == 0) continue;
      packet(unit, k);
      came[k] = true;
    }
    if (random(5) != 0) {
      trailer(unit);
      trailer_came = true;
    }
    std::uint64_t requests = 0;
    for (int step = 0; step < 12; ++step) {
      look(time_us += 10);
      for (const MissingPart& part : asked.parts) {
        if (part.unit != unit) continue;
        ASSERT_LE(part.end, 1000u);
        requests += part.packet_count();
        for (std::uint32_t k = part.first_packet(); k < part.first_packet() + part.packet_count(); ++k) {
          ASSERT_FALSE(came[k]) << "unit " << unit << " packet " << k;
          if (random(3) == 0) {
            ++unanswered;
            continue;
          }
          packet(unit, k);
          came[k] = true;
        }
        if (part.open_end && !trailer_came) {
          trailer(unit);
          trailer_came = true;
        }
      }
    }
    ASSERT_LE(requests, 24u);
    while (queue->peek() != nullptr) {
      queue->pop();
      clop->release();
    }
  }
  assembler->flush();
  EXPECT_EQ(count(Counter::resends_asked), count(Counter::resends_came) + count(Counter::resends_not_came));
  EXPECT_GT(count(Counter::resends_came), 1000u);
  EXPECT_GT(count(Counter::resends_not_came), 10u);
  EXPECT_GT(unanswered, 100u);
  EXPECT_EQ(count(Counter::packets_duplicate), 0u);
  EXPECT_GT(count(Counter::units_complete), 2500u);
}

// Bytes by hand; tests/integration/test_resend.py has Wireshark read them.
TEST(GvcpResend, NamesBlockAndPackets) {
  const auto bytes_of = [](const MissingPart& part, std::uint16_t id) {
    std::array<std::byte, kGvcpResendBytesMax> out{};
    const std::size_t size = write_gvcp_resend(out, part, id);
    std::string text;
    for (std::size_t k = 0; k < size; ++k) {
      static constexpr char kDigits[] = "0123456789abcdef";
      text += kDigits[std::to_integer<unsigned>(out[k]) >> 4];
      text += kDigits[std::to_integer<unsigned>(out[k]) & 15];
    }
    return text;
  };
  MissingPart part{.stream = 0, .unit = 0x1234, .begin = 800, .end = 1100, .piece_bytes = 100, .header_bytes = 8, .open_end = false};
  EXPECT_EQ(bytes_of(part, 7),
            "42000040000c0007"
            "00001234"
            "00000009"
            "0000000b");
  part.end = 1050;  // the last packet is shorter
  part.open_end = true;
  EXPECT_EQ(bytes_of(part, 7),
            "42000040000c0007"
            "00001234"
            "00000009"
            "0000000c");
  part.begin = part.end = 1100;
  EXPECT_EQ(bytes_of(part, 0xFFFF),
            "42000040000cffff"
            "00001234"
            "0000000c"
            "0000000c");
  part = {.stream = 0, .unit = 0x123456789ABCDEF0, .begin = 0, .end = 1, .piece_bytes = 100, .header_bytes = 20, .open_end = false};
  EXPECT_EQ(bytes_of(part, 1),
            "4210004000140001"
            "00000000"
            "00000001"
            "00000001"
            "123456789abcdef0");
  part = {.stream = 0, .unit = 1, .begin = 1 << 29, .end = 1 << 30, .piece_bytes = 1, .header_bytes = 8, .open_end = false};
  EXPECT_EQ(bytes_of(part, 1),
            "42000040000c0001"
            "00000001"
            "00ffffff"
            "00ffffff")
      << "24 bits";
}

TEST(ResendConfig, ItsRules) {
  const ResendConfig camera{.endpoint = "udp://127.0.0.1:3956"};
  EXPECT_FALSE((AssembleConfig{.resend = camera}.check()));
  EXPECT_EQ((AssembleConfig{.timeout_us = 1000, .resend = camera}.check().value().key), "resend")
      << "closed before it is asked for";
  EXPECT_EQ((AssembleConfig{.merge = StreamMergeConfig{.streams = {1}, .part_bytes = 5}, .resend = camera}.check().value().key),
            "resend");
  EXPECT_THROW(make_requester({.endpoint = "camera"}, "link"), SetupError);
}

// Of a format whose packets name a place, not a number, and have a time.
TEST(ResendConfig, NeedsNumberedPacketsAndSomeoneWhoSends) {
  LinkConfig link{.name = "camera", .endpoint = "udp://127.0.0.1:0", .assemble = AssembleConfig{}, .protocol = &test::kPieces};
  link.assemble->resend = ResendConfig{.endpoint = "udp://127.0.0.1:3956"};
  EXPECT_EQ(broken_rule(link).value().why, "packets of protocol pieces have no numbers that a request could name");
  Protocol counted = test::kPieces;
  counted.units = [](const Protocol&) { return UnitTraits{.counts_packets = true}; };
  link.protocol = &counted;
  EXPECT_FALSE(broken_rule(link));
  link.endpoint = "pcap://it.pcap";
  EXPECT_EQ(broken_rule(link).value().why, "no one sends what pcap plays");
}

TEST(StreamMergeConfig, WhatIsMergedByTimeHasOne) {
  LinkConfig link{.name = "tiles", .endpoint = "udp://127.0.0.1:0", .assemble = AssembleConfig{}, .protocol = &test::kPieces};
  link.assemble->merge = StreamMergeConfig{.streams = {1, 2}, .part_bytes = 8, .by = MergeBy::time};
  EXPECT_FALSE(broken_rule(link));
  Protocol timeless = test::kPieces;
  timeless.units = nullptr;
  link.protocol = &timeless;
  EXPECT_EQ(broken_rule(link).value().problem, "link 'tiles': units cannot be merged by time");
  link.assemble->merge->by.reset();
  EXPECT_FALSE(broken_rule(link)) << "by unit, then";
}

}  // namespace
}  // namespace nanet::engine
