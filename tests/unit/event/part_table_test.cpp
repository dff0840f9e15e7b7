// SPDX-License-Identifier: Apache-2.0
// The rules of the part table, each by name.
#include "event/part_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "part_table_watch.hpp"

namespace nanet::event {
namespace {

constexpr std::uint64_t kSecond_ns = 1'000'000'000;

class Rig : public PartTableWatch {
 public:
  explicit Rig(const MergerConfig& config = {}, std::uint32_t first_position = 0u - 3u) : PartTableWatch(config, first_position) {}
  ~Rig() { EXPECT_EQ(failure(), ""); }

  PartResult add(std::uint32_t source, std::uint64_t key, const std::vector<std::uint16_t>& hits = {1}) {
    return add_part(source, key, hits, now_ns);
  }
  void add_complete(std::uint64_t key, std::uint32_t source_count = 4) {
    for (std::uint32_t source = 0; source < source_count; ++source) ASSERT_EQ(add(source, key), PartResult::merged) << key;
  }
  void expire_and_finish() {
    expire(now_ns);
    finish_round(now_ns);
  }

  std::uint64_t now_ns = kSecond_ns;
};

TEST(PartTable, PartsOfOneKeyAreOneEvent) {
  Rig rig;
  EXPECT_EQ(rig.add(2, 7, {1, 2}), PartResult::merged);
  EXPECT_EQ(rig.add(0, 7, {}), PartResult::merged);
  EXPECT_EQ(rig.add(1, 7, {3}), PartResult::merged);
  rig.finish_round(rig.now_ns);
  EXPECT_TRUE(rig.delivered.empty());
  EXPECT_EQ(rig.add(3, 7 + (std::uint64_t{5} << 40), {4}), PartResult::merged);  // 40 bits count
  rig.finish_round(rig.now_ns);
  ASSERT_EQ(rig.delivered.size(), 1u);
  EXPECT_EQ(rig.delivered[0].hits, (std::vector<std::uint16_t>{1, 2, 3, 4}));
  EXPECT_EQ(rig.delivered[0].closed_by, CloseReason::complete);
}

TEST(PartTable, OneSourceClosesAtOnce) {
  Rig rig({.source_count = 1});
  for (std::uint64_t key = 0; key < 100; ++key) rig.add_complete(key, 1);
  EXPECT_EQ(rig.add(0, 5), PartResult::duplicate);
  rig.finish_round(rig.now_ns);
  EXPECT_EQ(rig.delivered.size(), 100u);
}

TEST(PartTable, ASecondPartOfASourceIsADuplicateUntilForgotten) {
  Rig rig({.source_count = 2});
  rig.add(0, 7);
  EXPECT_EQ(rig.add(0, 7), PartResult::duplicate);
  rig.add(1, 7);
  EXPECT_EQ(rig.add(1, 7), PartResult::duplicate);  // ready
  rig.finish_round(rig.now_ns);
  EXPECT_EQ(rig.add(0, 7), PartResult::duplicate);  // closed
  EXPECT_EQ(rig.table.stats().parts_duplicate, 2u) << "the third is not yet committed";
  rig.finish_round(rig.now_ns);
  EXPECT_EQ(rig.table.stats().parts_duplicate, 3u);
}

TEST(PartTable, TheWindowClosesWhatIsIncompleteAndNothingElse) {
  Rig rig({.window_ns = 10'000});
  rig.add(0, 1);
  rig.now_ns += 6'000;
  rig.expire_and_finish();
  rig.add(0, 2);
  rig.now_ns += 3'999;
  rig.expire_and_finish();
  EXPECT_TRUE(rig.delivered.empty());
  rig.now_ns += 1;
  rig.expire_and_finish();
  ASSERT_EQ(rig.delivered.size(), 1u);
  EXPECT_EQ(rig.delivered[0].key, 1u);
  EXPECT_EQ(rig.delivered[0].closed_by, CloseReason::window);
  EXPECT_EQ(rig.add(1, 1), PartResult::late);
  EXPECT_EQ(rig.add(0, 1), PartResult::duplicate);
  EXPECT_EQ(rig.add(1, 2), PartResult::merged);
  rig.now_ns += 6'000;
  rig.expire_and_finish();
  EXPECT_EQ(rig.delivered.size(), 2u);
}

TEST(PartTable, NothingIsDueWhileNothingCanBeOver) {
  Rig rig({.window_ns = 10'000});
  rig.expire_and_finish();
  EXPECT_FALSE(rig.table.expire_due(rig.now_ns + kSecond_ns)) << "no event";
  rig.add(0, 1);
  rig.expire_and_finish();  // learns when the oldest event opened
  EXPECT_FALSE(rig.table.expire_due(rig.now_ns + 9'999));
  EXPECT_TRUE(rig.table.expire_due(rig.now_ns + 10'000));
}

TEST(PartTable, HitsBeyondTheMaximumAreCutAndCounted) {
  Rig rig({.source_count = 3, .hits_max = 5});
  EXPECT_EQ(rig.add(0, 7, {1, 2, 3}), PartResult::merged);
  EXPECT_EQ(rig.add(1, 7, {4, 5, 6, 7}), PartResult::merged_cut);
  EXPECT_EQ(rig.add(2, 7, std::vector<std::uint16_t>(255)), PartResult::merged_cut);
  rig.finish_round(rig.now_ns);
  ASSERT_EQ(rig.delivered.size(), 1u);
  EXPECT_EQ(rig.delivered[0].hits, (std::vector<std::uint16_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(rig.delivered[0].hits_cut, 257u);
  EXPECT_EQ(rig.table.stats().parts_overflow_hits, 2u);
}

TEST(PartTable, AKeyThatComesRoundAgainIsANewEvent) {
  Rig rig({.source_count = 2});
  for (int turn = 0; turn < 3; ++turn) {
    rig.add_complete(7, 2);
    rig.finish_round(rig.now_ns);
    rig.now_ns += kSecond_ns;
    EXPECT_EQ(rig.add(0, 7), PartResult::duplicate) << "still remembered";
    rig.now_ns += 106 * kSecond_ns;
  }
  EXPECT_EQ(rig.delivered.size(), 3u);
}

TEST(PartTable, KeysMayWrap) {
  Rig rig;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    rig.add_complete(kKeyMask - 1000 * 7 + i * 7);
    if (i % 16 == 0) rig.finish_round(rig.now_ns);
  }
  rig.finish_round(rig.now_ns);
  EXPECT_EQ(rig.delivered.size(), 2000u);
}

TEST(PartTable, DrainRemembersAndFlushForgets) {
  Rig rig;
  rig.add(0, 7);
  rig.drain(rig.now_ns);
  EXPECT_EQ(rig.add(1, 7), PartResult::late);
  rig.finish_round(rig.now_ns);
  EXPECT_EQ(rig.add(1, 7), PartResult::late);
  rig.add(0, 8);
  rig.add_complete(9);
  rig.flush();
  ASSERT_EQ(rig.add(1, 7), PartResult::merged);
  ASSERT_EQ(rig.add(0, 8), PartResult::merged) << "also while the old event is ready and not yet cleared";
  rig.add_complete(9);
  rig.drain(rig.now_ns);
  rig.finish_round(rig.now_ns);
  EXPECT_EQ(rig.delivered.size(), 6u);
  EXPECT_EQ(rig.add(2, 8), PartResult::late) << "the new run's event is remembered";
}

// As many late parts as events may be open are told from new events, even when all is done within one tick of the memory's clock.
TEST(PartTable, RemembersAsManyEventsAsMayBeOpen) {
  for (const std::uint32_t open_max : {64u, 1024u, 8192u}) {
    Rig rig({.source_count = 2, .open_events_max = open_max});
    const std::uint64_t events = 20 * open_max;
    const auto key = [](std::uint64_t i) { return i * 1027; };
    for (std::uint64_t i = 0; i < events; ++i) {
      rig.add_complete(key(i), 2);
      if (i % 64 == 63) rig.finish_round(rig.now_ns);
    }
    std::uint32_t remembered = 0;
    for (std::uint64_t i = events - open_max; i < events; ++i) remembered += rig.add(0, key(i)) == PartResult::duplicate;
    EXPECT_EQ(remembered, open_max);
    rig.flush();
    rig.finish_round(rig.now_ns);
  }
}

TEST(PartTable, WithTooManyOpenTheOldestGo) {
  constexpr std::uint32_t kOpenMax = 128;
  Rig rig({.window_ns = kSecond_ns, .open_events_max = kOpenMax});
  for (std::uint64_t i = 0; i < kOpenMax; ++i) rig.add(0, i);
  rig.expire_and_finish();
  EXPECT_EQ(rig.table.open_count(), kOpenMax);
  for (std::uint64_t i = 0; i < 5; ++i) rig.add(0, kOpenMax + i);
  rig.expire_and_finish();
  EXPECT_EQ(rig.table.open_count(), kOpenMax);
  ASSERT_EQ(rig.delivered.size(), 5u);
  for (const WatchedEvent& event : rig.delivered) {
    EXPECT_LT(event.key, 5u);
    EXPECT_EQ(event.closed_by, CloseReason::overflow);
  }
}

TEST(PartTable, AnEventLeftBehindByTooManyOthersGoes) {
  constexpr std::uint32_t kOpenMax = 128;
  Rig rig({.window_ns = kSecond_ns, .open_events_max = kOpenMax});
  rig.add(0, 1'000'000);
  for (std::uint64_t i = 0; i < 2 * kOpenMax; ++i) {
    EXPECT_TRUE(rig.delivered.size() == i) << "only complete events so far";
    rig.add_complete(i);
    rig.expire_and_finish();
  }
  ASSERT_EQ(rig.delivered.size(), 2 * kOpenMax + 1);
  EXPECT_EQ(rig.table.stats().events_overflow, 1u);
  EXPECT_EQ(rig.table.open_count(), 0u);
}

// Far more events in one round than the contract promises room for: the ring of openings is overrun, and the next expire() closes all.
TEST(PartTable, MoreEventsInARoundThanTheRingHolds) {
  Rig rig({.window_ns = kSecond_ns, .open_events_max = 64});
  rig.add(0, 5'000'000);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    rig.add_complete(i);
    if (i % 32 == 31) rig.finish_round(rig.now_ns);  // but no expire()
  }
  rig.add(1, 6'000'000);
  rig.expire_and_finish();
  EXPECT_EQ(rig.table.open_count(), 0u);
  EXPECT_EQ(rig.table.stats().events_overflow, 2u);
  rig.add_complete(2'000'000);
  rig.expire_and_finish();
  EXPECT_EQ(rig.delivered.size(), 1003u);
}

// The ring is overrun after an expire() of the same round, which then moves the ring's start past the events that it does not hold.
TEST(PartTable, EventsThatTheRingDoesNotHoldAreClosedInALaterRound) {
  Rig rig({.window_ns = 10'000, .open_events_max = 64});
  std::uint64_t key = 0;
  for (int i = 0; i < 250; ++i) {
    rig.add_complete(++key);
    rig.finish_round(rig.now_ns);
  }
  rig.now_ns += 10'000;
  rig.expire(rig.now_ns);
  for (int i = 0; i < 20; ++i) rig.add(0, ++key);
  rig.finish_round(rig.now_ns);
  EXPECT_EQ(rig.table.open_count(), 20u);
  rig.now_ns += 10'000;
  rig.expire_and_finish();
  EXPECT_EQ(rig.table.open_count(), 0u);
  EXPECT_EQ(rig.delivered.size(), 270u);
}

TEST(PartTable, WhatFindsNoRoomIsCounted) {
  Rig rig({.source_count = 2, .open_events_max = 64});
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) refused += rig.add(0, i) == PartResult::no_room;
  EXPECT_EQ(refused, 1000u - part_table_slots({.open_events_max = 64}));
  rig.expire_and_finish();
  EXPECT_EQ(rig.table.stats().parts_no_room, refused);
  EXPECT_EQ(rig.table.open_count(), 64u);
  EXPECT_EQ(rig.table.stats().events_overflow, 256u - 64u);
  EXPECT_EQ(rig.add(0, 5000), PartResult::merged);
  rig.flush();
  rig.finish_round(rig.now_ns);
}

// Shares of several workers, here one after the other, do together what one worker does.
TEST(PartTable, SharesCoverEverything) {
  for (const std::uint32_t worker_count : {1u, 3u, 32u, 1024u}) {
    PartTableWatch watch({.source_count = 2, .window_ns = 10'000, .open_events_max = 64}, 0u - 100u, worker_count);
    std::uint64_t now_ns = kSecond_ns;
    for (std::uint64_t i = 0; i < 500; ++i) {
      watch.add_part(0, i, {1, 2}, now_ns);
      if (i % 3 != 0) watch.add_part(1, i, {3}, now_ns);
      if (i % 16 != 15) continue;
      now_ns += 4'000;
      watch.expire(now_ns);
      watch.finish_round(now_ns);
    }
    watch.drain(now_ns);
    watch.finish_round(now_ns);
    EXPECT_EQ(watch.failure(), "");
    EXPECT_EQ(watch.delivered.size(), 500u);
    EXPECT_EQ(watch.table.stats().events_missing_parts, 167u);
    EXPECT_EQ(watch.table.stats().events_overflow, 0u);
  }
}

}  // namespace
}  // namespace nanet::event
