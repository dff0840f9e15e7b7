// SPDX-License-Identifier: Apache-2.0
#include "emulate/answer_book.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "emulate/schedule.hpp"

namespace nanet::emulate {
namespace {

constexpr std::uint64_t kWireMask = (std::uint64_t{1} << 40) - 1;

// A book with a schedule beside it, and the wire keys of everything sent.
class Fixture {
 public:
  Fixture(std::uint32_t events_per_packet, std::uint64_t window, std::uint32_t first_timestamp = 0)
      : schedule_({.events_per_packet = events_per_packet}, poisson_arrivals(events_per_packet * 16, 1e7, 11)),
        first_timestamp_(first_timestamp),
        book(schedule_.pool_keys(), events_per_packet, window, first_timestamp) {}

  void send(std::uint64_t packets) {
    for (; packets > 0; --packets, ++sent_) {
      const Schedule::Packet packet = schedule_.packet(sent_);
      book.sent(sent_, packet.pool_packet, packet.shift_units, 1000 + sent_);
    }
  }

  std::uint64_t wire_key(std::uint64_t event) const {
    const std::uint32_t per_packet = schedule_.events_per_packet();
    const Schedule::Packet packet = schedule_.packet(event / per_packet);
    const std::uint64_t pool_key = schedule_.pool_keys()[packet.pool_packet * per_packet + event % per_packet];
    return ((std::uint64_t{first_timestamp_} + packet.shift_units) * 256 + pool_key) & kWireMask;
  }

 private:
  Schedule schedule_;
  std::uint32_t first_timestamp_;
  std::uint64_t sent_ = 0;

 public:
  AnswerBook book;
};

TEST(AnswerBook, InOrderAnswersAreAllMatched) {
  Fixture f(16, 64);
  for (std::uint64_t turn = 0; turn < 100; ++turn) {
    f.send(5);
    for (std::uint64_t event = turn * 80; event < (turn + 1) * 80; ++event) {
      const AnswerBook::Answer answer = f.book.answer(f.wire_key(event));
      ASSERT_EQ(answer.match, Match::answered);
      ASSERT_EQ(answer.packet, event / 16);
      ASSERT_EQ(answer.in_packet, event % 16);
      ASSERT_EQ(f.book.send_ns(answer.packet), 1000 + event / 16);
      ASSERT_EQ(f.book.pool_event(answer.packet, answer.in_packet), event % 256);
    }
  }
}

TEST(AnswerBook, FindingClaimsNothingWhereverItBegins) {
  Fixture f(16, 64);
  f.send(200);  // 136..199 are remembered
  std::mt19937_64 random(4);
  for (int i = 0; i < 5'000; ++i) {
    const std::uint64_t event = random() % (200 * 16);
    const AnswerBook::Answer found = f.book.find(f.wire_key(event), random() % 220);
    if (event < 136 * 16) {
      ASSERT_EQ(found.match, Match::stale);
      continue;
    }
    ASSERT_EQ(found.match, Match::answered);
    ASSERT_EQ(found.packet * 16 + found.in_packet, event);
  }
  EXPECT_EQ(f.book.answer(f.wire_key(199 * 16)).match, Match::answered);
  EXPECT_EQ(f.book.find(f.wire_key(199 * 16 + 15) + 1, 0).match, Match::unknown);
}

TEST(AnswerBook, AnyOrderIsMatchedOnceEach) {
  for (const std::uint32_t per_packet : {1u, 16u, 100u, 255u}) {
    Fixture f(per_packet, 64);
    f.send(60);
    std::vector<std::uint64_t> events(60 * per_packet);
    for (std::size_t i = 0; i < events.size(); ++i) events[i] = i;
    std::shuffle(events.begin(), events.end(), std::mt19937_64(1));
    for (const std::uint64_t event : events) {
      const AnswerBook::Answer answer = f.book.answer(f.wire_key(event));
      ASSERT_EQ(answer.match, Match::answered);
      ASSERT_EQ(answer.packet * per_packet + answer.in_packet, event);
    }
    for (const std::uint64_t event : events) ASSERT_EQ(f.book.answer(f.wire_key(event)).match, Match::duplicate);
  }
}

TEST(AnswerBook, SmallDisorderAndLosses) {
  Fixture f(16, 256);
  f.send(200);
  std::mt19937_64 random(5);
  std::vector<std::uint64_t> events;
  for (std::uint64_t event = 0; event < 3200; ++event) {
    if (random() % 10 != 0) events.push_back(event);
  }
  for (std::size_t i = 0; i + 8 < events.size(); i += 3) std::swap(events[i], events[i + random() % 8]);
  for (const std::uint64_t event : events) {
    const AnswerBook::Answer answer = f.book.answer(f.wire_key(event));
    ASSERT_EQ(answer.match, Match::answered);
    ASSERT_EQ(answer.packet * 16 + answer.in_packet, event);
  }
}

TEST(AnswerBook, NeverSentIsUnknown) {
  Fixture f(16, 64);
  EXPECT_EQ(f.book.answer(f.wire_key(0)).match, Match::unknown);  // nothing sent yet
  f.send(10);
  EXPECT_EQ(f.book.answer(f.wire_key(160)).match, Match::unknown);  // comes later
  std::vector<std::uint64_t> keys;
  for (std::uint64_t event = 0; event < 160; ++event) keys.push_back(f.wire_key(event));
  for (std::uint64_t key = keys[20]; key < keys[60]; ++key) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      ASSERT_EQ(f.book.answer(key).match, Match::unknown);
    }
  }
  EXPECT_EQ(f.book.answer(kWireMask).match, Match::unknown);
  for (std::uint64_t event = 0; event < 160; ++event) {  // and nothing was taken away by that
    ASSERT_EQ(f.book.answer(f.wire_key(event)).match, Match::answered);
  }
}

TEST(AnswerBook, OlderThanTheWindowIsStale) {
  Fixture f(16, 64);
  f.send(100);
  EXPECT_EQ(f.book.answer(f.wire_key(36 * 16 - 1)).match, Match::stale);
  EXPECT_EQ(f.book.answer(f.wire_key(36 * 16)).match, Match::answered);
  EXPECT_EQ(f.book.answer(f.wire_key(0)).match, Match::stale);
}

TEST(AnswerBook, WindowMayOverrunTheCursor) {
  Fixture f(16, 4);
  f.send(2);
  ASSERT_EQ(f.book.answer(f.wire_key(0)).match, Match::answered);
  f.send(1000);
  for (std::uint64_t event = 998 * 16; event < 1002 * 16; ++event) {
    ASSERT_EQ(f.book.answer(f.wire_key(event)).match, Match::answered);
  }
}

TEST(AnswerBook, TimestampsMayWrap) {
  Fixture f(16, 64, 0xFFFFFFF0u);  // the 32-bit timestamp wraps after 16 units, inside the first packet
  f.send(64);
  ASSERT_LT(f.wire_key(1023), f.wire_key(0));
  std::uint64_t event = 1024;
  while (event-- > 0) ASSERT_EQ(f.book.answer(f.wire_key(event)).match, Match::answered);
}

TEST(AnswerBook, LaterPartMovesTheSendTime) {
  Fixture f(16, 64);
  f.send(3);
  f.book.resent(1, 5000);
  EXPECT_EQ(f.book.send_ns(0), 1000u);
  EXPECT_EQ(f.book.send_ns(1), 5000u);
  EXPECT_EQ(f.book.answer(f.wire_key(16)).match, Match::answered);
}

}  // namespace
}  // namespace nanet::emulate
