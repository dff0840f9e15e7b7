// SPDX-License-Identifier: Apache-2.0
// What the merger remembers of closed events, and what it makes of keys that cannot be true.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "merger_rig.hpp"

namespace nanet::event {
namespace {

TEST(MergerMemory, AnEventStillOpenWhenTheMemoryIsFullIsForcedOut) {
  Rig rig({.source_count = 2, .open_events_max = 4});
  ASSERT_EQ(rig.merger.memory_events(), 1024u);
  rig.add(0, 1);
  for (std::uint64_t key = 2; key <= 1024; ++key) rig.add_complete(key, 1, 1, 2);
  EXPECT_EQ(rig.merger.stats().events_overflow, 0u);
  rig.add_complete(1025, 1, 1, 2);
  EXPECT_EQ(rig.merger.stats().events_overflow, 1u);
  EXPECT_EQ(rig.merger.open_count(), 0u);
  rig.expect_books();
}

TEST(MergerMemory, OnlyFortyBitsOfTheKeyCount) {
  Rig rig({.source_count = 2});
  EXPECT_EQ(rig.add(0, 0xab'0000000001), PartResult::merged);
  EXPECT_EQ(rig.add(1, 0xcd'0000000001), PartResult::merged);
  rig.take();
  ASSERT_EQ(rig.delivered.size(), 1u);
  EXPECT_EQ(rig.delivered[0].key, 1u);
}

TEST(MergerMemory, TheKeyMayWrap) {
  Rig rig({.source_count = 2, .open_events_max = 16});
  const std::uint64_t first = kKeyMask - 5'000'000;
  for (std::uint64_t i = 0; i < 10'000; ++i) rig.add_complete(first + i * 1000, 1, 1, 2);
  EXPECT_EQ(rig.merger.stats().events_complete, 10'000u);
  EXPECT_EQ(rig.merger.stats().parts_late, 0u);
  EXPECT_EQ(rig.delivered[9'999].key, (first + 9'999'000) & kKeyMask);
  EXPECT_EQ(rig.add(1, first + 500), PartResult::late);  // before the horizon, on the other side of the wrap
  EXPECT_EQ(rig.add(1, first), PartResult::late);
}

TEST(MergerMemory, WhatIsOlderThanTheMemoryIsLate) {
  Rig rig({.source_count = 4, .open_events_max = 16});
  for (std::uint64_t i = 0; i < 3000; ++i) rig.add_complete(1000 + i * 100, 1, 1, 4);
  EXPECT_EQ(rig.add(0, 1000), PartResult::late);
  EXPECT_EQ(rig.add(0, 1050), PartResult::late);                     // such an event never was; it is too old all the same
  EXPECT_EQ(rig.add(0, 1000 + 2990 * 100), PartResult::duplicate);   // in memory
  EXPECT_EQ(rig.add(0, 1000 + 2990 * 100 + 1), PartResult::merged);  // after the horizon: an event of its own
}

TEST(MergerMemory, HalfTheCircleAwayIsBeforeTheHorizon) {
  Rig rig({.source_count = 4, .open_events_max = 16});
  for (std::uint64_t i = 0; i < 3000; ++i) rig.add_complete(1000 + i * 100, 1, 1, 4);
  const std::uint64_t horizon = 1000 + (31 * 64 - 1) * 100;  // of 3000 events, 1024 fit; they are forgotten by 64
  const std::uint64_t half = std::uint64_t{1} << 39;
  EXPECT_EQ(rig.add(0, horizon + half), PartResult::late);
  EXPECT_EQ(rig.add(0, horizon + half - 1), PartResult::merged);
}

TEST(MergerMemory, AWildTimestampHarmsNobodyElse) {
  Rig rig({.source_count = 4, .window_ns = 1'000, .open_events_max = 16});
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const std::uint64_t wild = (std::uint64_t{1} << 38) + i * 7'000'003;  // a board with a broken clock, in each event
    EXPECT_EQ(rig.add(0, wild), PartResult::merged);
    for (std::uint32_t source = 1; source < 4; ++source) EXPECT_EQ(rig.add(source, i * 100), PartResult::merged);
    rig.now_ns += 1'000;
    rig.merger.expire(rig.now_ns);
    rig.take();
  }
  EXPECT_EQ(rig.merger.stats().parts_late, 0u);
  EXPECT_EQ(rig.merger.stats().events_missing_parts, 10'000u);
  EXPECT_EQ(rig.delivered.size(), 10'000u);
}

TEST(MergerMemory, AWildPacketOfAnOnlySourceHarmsNobodyElse) {
  Rig rig({.source_count = 1, .open_events_max = 16});
  for (std::uint64_t i = 0; i < 3000; ++i) {
    EXPECT_EQ(rig.add(0, i * 100), PartResult::merged);
    rig.take();
  }
  for (std::uint64_t i = 0; i < 255; ++i) {
    EXPECT_EQ(rig.add(0, 1'000'000'000'000 / 2 + i), PartResult::merged);
    rig.take();
  }
  for (std::uint64_t i = 3000; i < 9000; ++i) {
    EXPECT_EQ(rig.add(0, i * 100), PartResult::merged);
    rig.take();
  }
  EXPECT_EQ(rig.merger.stats().parts_late, 0u);
  EXPECT_EQ(rig.add(0, 5), PartResult::late);  // and the horizon is back
}

TEST(MergerMemory, ASourceFarAheadDoesNotSplitEvents) {
  // One board's packets come so early that its events are forgotten before the others' parts: these are late, and the
  // events are not delivered a second time.
  Rig rig({.source_count = 4, .open_events_max = 16});
  for (std::uint64_t i = 0; i < 5000; ++i) {
    EXPECT_EQ(rig.add(0, i * 100), PartResult::merged);
    rig.take();
  }
  for (std::uint64_t i = 0; i < 3000; ++i) {
    for (std::uint32_t source = 1; source < 4; ++source) EXPECT_EQ(rig.add(source, i * 100), PartResult::late);
  }
  EXPECT_EQ(rig.merger.stats().events_opened, 5000u);
}

TEST(MergerMemory, FlushStartsANewRunAtOnce) {
  Rig rig({.source_count = 4, .open_events_max = 16});
  for (int run = 0; run < 3; ++run) {
    for (std::uint64_t i = 0; i < 3000; ++i) rig.add_complete(i * 100, 1, 1, 4);
    EXPECT_EQ(rig.add(2, 300'000), PartResult::merged);
    rig.merger.flush();
    rig.take();
    EXPECT_EQ(rig.delivered.back().closed_by, CloseReason::flush);
    EXPECT_EQ(rig.merger.open_count(), 0u);
  }
  EXPECT_EQ(rig.merger.stats().events_complete, 9000u);
  EXPECT_EQ(rig.merger.stats().events_missing_parts, 3u);
  EXPECT_EQ(rig.merger.stats().parts_late, 0u);
  rig.expect_books();
}

TEST(MergerMemory, DrainRemembers) {
  Rig rig({.source_count = 2});
  rig.add(0, 10);
  rig.merger.drain(rig.now_ns);
  rig.take();
  ASSERT_EQ(rig.delivered.size(), 1u);
  EXPECT_EQ(rig.add(1, 10), PartResult::late);
  EXPECT_EQ(rig.add(0, 10), PartResult::duplicate);
}

TEST(MergerMemory, ARestartWithoutFlushHealsWithinAboutASecond) {
  Rig rig({.source_count = 4, .open_events_max = 16});
  const std::uint64_t start = std::uint64_t{1} << 36;
  for (std::uint64_t i = 0; i < 3000; ++i) rig.add_complete(start + i * 100, 1, 1, 4);
  EXPECT_EQ(rig.add(0, 0), PartResult::late);
  rig.now_ns += 2 * kSecond_ns;
  rig.delivered.clear();
  for (std::uint64_t i = 0; i < 3000; ++i) rig.add_complete(i * 100, 1, 1, 4);
  EXPECT_EQ(rig.delivered.size(), 3000u);
}

TEST(MergerMemory, ARestartInFullFlowHealsToo) {
  // No pause: when the new run starts, the memory is full of fresh events of the old one.
  Rig rig({.source_count = 4, .open_events_max = 16});
  const std::uint64_t start = std::uint64_t{1} << 36;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    rig.add_complete(start + i * 100, 1, 1, 4);
    rig.now_ns += 10'000;
  }
  std::uint64_t late = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    for (std::uint32_t source = 0; source < 4; ++source) late += rig.add(source, i * 100) == PartResult::late;
    rig.merger.clear_ready();
    rig.now_ns += 10'000;
  }
  EXPECT_GE(late, 4u * 100'000);  // 1 s at 10 us an event
  EXPECT_LE(late, 4u * 130'000);
  EXPECT_EQ(rig.merger.stats().events_complete, 3000 + 200'000 - late / 4);
}

TEST(MergerMemory, AKeyThatComesRoundAgainIsANewEvent) {
  Rig rig({.source_count = 2});
  rig.add_complete(42, 1, 1, 2);
  rig.now_ns += kSecond_ns;  // still remembered
  EXPECT_EQ(rig.add(0, 42), PartResult::duplicate);
  rig.now_ns += 106 * kSecond_ns;
  rig.add_complete(42, 1, 1, 2);
  EXPECT_EQ(rig.delivered.size(), 2u);
  EXPECT_EQ(rig.add(0, 42), PartResult::duplicate);
}

TEST(MergerMemory, KeysWithOneHashAreTold) {
  // The hash is a product modulo 2^64, of which bits 63..59 and some from bit 32 on are used; keys that agree in them
  // are found by search.
  std::vector<std::uint64_t> same;
  for (std::uint64_t key = 0; same.size() < 40; ++key) {
    const std::uint64_t hash = key * 0x9E3779B97F4A7C15u;
    if ((hash >> 32 & 1023) == 7 && hash >> 59 == 3) same.push_back(key);
  }
  Rig rig({.source_count = 2, .open_events_max = 64});
  for (const auto key : same) EXPECT_EQ(rig.add(0, key), PartResult::merged);
  for (auto key = same.rbegin(); key != same.rend(); ++key) EXPECT_EQ(rig.add(1, *key), PartResult::merged);
  EXPECT_EQ(rig.merger.stats().events_complete, 40u);
  for (const auto key : same) EXPECT_EQ(rig.add(0, key), PartResult::duplicate);
}

TEST(MergerMemory, AnOlderOpenEventExpiresAlsoIfExpireWasNotCalledForLong) {
  Rig rig({.source_count = 2, .window_ns = 1'000, .open_events_max = 16});
  for (std::uint64_t i = 0; i < 1023; ++i) rig.add_complete(i, 1, 1, 2);
  rig.add(0, 5000);
  for (std::uint64_t i = 0; i < 6; ++i) rig.add_complete(6000 + i, 1, 1, 2);
  rig.now_ns += 1'000;
  rig.add(0, 7000);  // lies where the very first event lay
  rig.merger.expire(rig.now_ns);
  rig.take();
  EXPECT_EQ(rig.delivered.back().key, 5000u);
  EXPECT_EQ(rig.delivered.back().closed_by, CloseReason::window);
  EXPECT_EQ(rig.merger.open_count(), 1u);
}

TEST(MergerMemory, OneSourceIsTrustedAfter512EventsInARow) {
  Rig rig({.source_count = 1, .open_events_max = 16});
  // After 1024 + 7 * 64 events the last 1024 are in memory and 448 were forgotten.
  for (std::uint64_t i = 0; i < 1024 + 7 * 64; ++i) rig.add_complete(100 + i * 10, 1, 1, 1);
  EXPECT_EQ(rig.add(0, 99), PartResult::merged);  // forgets the next 64; up to the event of key 100 + 511 * 10
  EXPECT_EQ(rig.add(0, 100 + 511 * 10), PartResult::late);
  EXPECT_EQ(rig.add(0, 101 + 511 * 10), PartResult::merged);
}

}  // namespace
}  // namespace nanet::event
