// SPDX-License-Identifier: Apache-2.0
#include "nanet/event/merger.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "nanet/setup_error.hpp"

namespace nanet::event {
namespace {

constexpr std::uint64_t kSecond_ns = 1'000'000'000;

// A merger and a tally of what came out of it.
struct Bench {
  explicit Bench(const MergerConfig& config) : merger(config) {}

  PartResult add(std::uint32_t source, std::uint64_t key, const std::vector<std::uint16_t>& hits = {1}) {
    return merger.add_part(source, key, hits.data(), static_cast<std::uint32_t>(hits.size()), now_ns);
  }

  // All parts of `count` events whose keys start at `first`, `step` apart, from the sources in turn.
  void add_complete(std::uint64_t first, std::uint32_t count, std::uint64_t step, std::uint32_t source_count) {
    for (std::uint32_t source = 0; source < source_count; ++source) {
      for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(add(source, first + i * step), PartResult::merged);
    }
    take();
  }

  void take() {
    for (const MergedEvent* event : merger.ready()) delivered.push_back(*event);
    merger.clear_ready();
  }

  void expect_books() {
    const MergerStats& s = merger.stats();
    EXPECT_EQ(s.events_opened, s.events_complete + s.events_missing_parts + s.events_overflow + merger.open_count());
  }

  std::uint64_t now_ns = kSecond_ns;
  Merger merger;
  std::vector<MergedEvent> delivered;
};

TEST(Merger, PutsFourPartsTogetherInOrderOfArrival) {
  Bench bench({.source_count = 4});
  const std::uint64_t key = event_key(0x12345678, 0x9a);
  EXPECT_EQ(key, 0x123456789aU);
  EXPECT_EQ(bench.add(2, key, {20, 21}), PartResult::merged);
  bench.now_ns += 5;
  EXPECT_EQ(bench.add(0, key, {}), PartResult::merged);
  EXPECT_EQ(bench.add(3, key, {30}), PartResult::merged);
  EXPECT_TRUE(bench.merger.ready().empty());
  EXPECT_EQ(bench.add(1, key, {10, 11, 12}), PartResult::merged);
  ASSERT_EQ(bench.merger.ready().size(), 1u);
  const MergedEvent& event = *bench.merger.ready()[0];
  EXPECT_EQ(event.key, key);
  EXPECT_EQ(key_timestamp(event.key), 0x12345678u);
  EXPECT_EQ(key_fine_time(event.key), 0x9a);
  EXPECT_EQ(event.first_part_ns, kSecond_ns);
  EXPECT_EQ(event.parts_mask, 0xf);
  EXPECT_EQ(event.closed_by, CloseReason::complete);
  EXPECT_EQ(event.hits_cut, 0);
  const auto hits = event.hit_span();
  EXPECT_EQ(std::vector<std::uint16_t>(hits.begin(), hits.end()), (std::vector<std::uint16_t>{20, 21, 30, 10, 11, 12}));
  EXPECT_EQ(bench.merger.stats().parts_merged, 4u);
  EXPECT_EQ(bench.merger.stats().events_complete, 1u);
  bench.merger.clear_ready();
  EXPECT_TRUE(bench.merger.ready().empty());
}

TEST(Merger, CopiesEveryHitCountExactlyBothWays) {
  for (std::uint32_t count = 0; count <= kHitsMax; ++count) {
    std::vector<std::uint16_t> exact(count);  // of its own, so that a sanitizer sees a read behind it
    std::vector<std::uint16_t> padded(std::max(8u, (count + 7) / 8 * 8), 0xeeee);
    for (std::uint32_t i = 0; i < count; ++i) exact[i] = padded[i] = static_cast<std::uint16_t>(1000 + i);
    Bench bench({.source_count = 2});
    EXPECT_EQ(bench.merger.add_part(0, 1, exact.data(), count, 0), PartResult::merged);
    EXPECT_EQ(bench.merger.add_part(1, 1, nullptr, 0, 0), PartResult::merged);
    EXPECT_EQ(bench.merger.add_padded_part(0, 2, padded.data(), count, 0), PartResult::merged);
    EXPECT_EQ(bench.merger.add_part(1, 2, nullptr, 0, 0), PartResult::merged);
    bench.take();
    ASSERT_EQ(bench.delivered.size(), 2u);
    for (const MergedEvent& event : bench.delivered) {
      const auto hits = event.hit_span();
      EXPECT_EQ(std::vector<std::uint16_t>(hits.begin(), hits.end()), exact);
    }
  }
}

TEST(Merger, FindsEventsInAnyOrderOfBoardsAndEvents) {
  Bench bench({.source_count = 4});
  const std::uint32_t sources[] = {3, 0, 2, 1};
  std::uint64_t multiplier = 1;
  for (const std::uint32_t source : sources) {
    multiplier *= 37;  // coprime to 257: another permutation of the 257 events for each source
    for (std::uint64_t i = 0; i < 257; ++i) {
      EXPECT_EQ(bench.add(source, 1000 * (i * multiplier % 257)), PartResult::merged);
    }
  }
  bench.take();
  ASSERT_EQ(bench.delivered.size(), 257u);
  std::map<std::uint64_t, int> seen;
  for (const auto& event : bench.delivered) ++seen[event.key];
  EXPECT_EQ(seen.size(), 257u);
  EXPECT_EQ(bench.merger.stats().events_complete, 257u);
}

TEST(Merger, OneSourceNeedsNoWait) {
  Bench bench({.source_count = 1});
  EXPECT_EQ(bench.add(0, 5), PartResult::merged);
  EXPECT_EQ(bench.merger.ready().size(), 1u);
  EXPECT_EQ(bench.add(0, 5), PartResult::duplicate);
  EXPECT_EQ(bench.merger.ready().size(), 1u);
}

TEST(Merger, EightSources) {
  Bench bench({.source_count = 8});
  bench.add_complete(77, 3, 1, 8);
  ASSERT_EQ(bench.delivered.size(), 3u);
  EXPECT_EQ(bench.delivered[0].parts_mask, 0xff);
  EXPECT_EQ(bench.add(7, 77), PartResult::duplicate);
}

TEST(Merger, LossOfEachPartClosesTheEventByItsWindow) {
  for (std::uint32_t lost = 0; lost < 4; ++lost) {
    Bench bench({.source_count = 4, .window_ns = 10'000});
    for (std::uint32_t source = 0; source < 4; ++source) {
      if (source != lost) {
        EXPECT_EQ(bench.add(source, 900), PartResult::merged);
      }
    }
    bench.merger.expire(bench.now_ns + 9'999);
    EXPECT_TRUE(bench.merger.ready().empty());
    bench.merger.expire(bench.now_ns + 10'000);
    ASSERT_EQ(bench.merger.ready().size(), 1u);
    EXPECT_EQ(bench.merger.ready()[0]->parts_mask, 0xf & ~(1u << lost));
    EXPECT_EQ(bench.merger.ready()[0]->closed_by, CloseReason::window);
    EXPECT_EQ(bench.merger.stats().events_missing_parts, 1u);
    EXPECT_EQ(bench.add(lost, 900), PartResult::late);
    EXPECT_EQ(bench.add((lost + 1) % 4, 900), PartResult::duplicate);
    bench.expect_books();
  }
}

TEST(Merger, ExpiryStopsAtTheFirstYoungEvent) {
  Bench bench({.source_count = 2, .window_ns = 1'000});
  for (std::uint64_t i = 0; i < 10; ++i) {
    bench.add(0, i);
    bench.now_ns += 100;
  }
  bench.add(1, 3);  // complete: not to be closed twice
  bench.take();
  bench.merger.expire(bench.now_ns + 450);  // opened at 0..900, now 1450: those of 0..400
  bench.take();
  ASSERT_EQ(bench.delivered.size(), 5u);
  EXPECT_EQ(bench.delivered[0].key, 3u);
  EXPECT_EQ(bench.delivered[4].key, 4u);
  EXPECT_EQ(bench.merger.open_count(), 5u);
  bench.expect_books();
}

TEST(Merger, EveryPartTwiceGivesEveryEventOnce) {
  Bench bench({.source_count = 4});
  for (std::uint32_t source = 0; source < 4; ++source) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      for (std::uint64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(bench.add(source, i * 17), repeat == 0 ? PartResult::merged : PartResult::duplicate);
      }
    }
  }
  bench.take();
  EXPECT_EQ(bench.delivered.size(), 100u);
  EXPECT_EQ(bench.merger.stats().parts_duplicate, 400u);
  for (const auto& event : bench.delivered) EXPECT_EQ(event.hit_count, 4);
}

TEST(Merger, TooManyOpenEventsForceOutTheOldest) {
  Bench bench({.source_count = 2, .open_events_max = 4});
  for (std::uint64_t key = 0; key < 6; ++key) EXPECT_EQ(bench.add(0, key), PartResult::merged);
  ASSERT_EQ(bench.merger.ready().size(), 2u);
  EXPECT_EQ(bench.merger.ready()[0]->key, 0u);
  EXPECT_EQ(bench.merger.ready()[1]->key, 1u);
  EXPECT_EQ(bench.merger.ready()[1]->closed_by, CloseReason::overflow);
  EXPECT_EQ(bench.merger.ready()[1]->hit_count, 1);
  EXPECT_EQ(bench.merger.stats().events_overflow, 2u);
  EXPECT_EQ(bench.merger.open_count(), 4u);
  EXPECT_EQ(bench.add(1, 0), PartResult::late);
  EXPECT_EQ(bench.add(1, 2), PartResult::merged);
  bench.expect_books();
}

TEST(Merger, AnEventStillOpenWhenTheMemoryIsFullIsForcedOut) {
  Bench bench({.source_count = 2, .open_events_max = 4});
  ASSERT_EQ(bench.merger.memory_events(), 1024u);
  bench.add(0, 1);
  for (std::uint64_t key = 2; key <= 1024; ++key) bench.add_complete(key, 1, 1, 2);
  EXPECT_EQ(bench.merger.stats().events_overflow, 0u);
  bench.add_complete(1025, 1, 1, 2);
  EXPECT_EQ(bench.merger.stats().events_overflow, 1u);
  EXPECT_EQ(bench.merger.open_count(), 0u);
  bench.expect_books();
}

TEST(Merger, PartsAreRefusedWhenReadyEventsAreNeverCleared) {
  Bench bench({.source_count = 1, .open_events_max = 512});
  for (std::uint64_t key = 0; key < 1024; ++key) EXPECT_EQ(bench.add(0, key), PartResult::merged);
  EXPECT_EQ(bench.add(0, 1024), PartResult::no_room);
  EXPECT_EQ(bench.add(0, 1), PartResult::duplicate);
  EXPECT_EQ(bench.merger.stats().parts_no_room, 1u);
  for (std::uint64_t i = 0; i < 1024; ++i) ASSERT_EQ(bench.merger.ready()[i]->key, i);  // none was overwritten
  bench.merger.clear_ready();
  EXPECT_EQ(bench.add(0, 1024), PartResult::merged);
}

TEST(Merger, PartsAreRefusedAlsoWithoutPressureOnTheMemory) {
  Bench bench({.source_count = 1, .open_events_max = 16});
  for (std::uint64_t key = 0; key < 272; ++key) EXPECT_EQ(bench.add(0, key), PartResult::merged);
  EXPECT_EQ(bench.add(0, 272), PartResult::no_room);
  bench.merger.clear_ready();
  EXPECT_EQ(bench.add(0, 272), PartResult::merged);
}

TEST(Merger, OnceAPacketIsOftenEnoughToClear) {
  Bench bench({.source_count = 2, .open_events_max = 1});
  for (std::uint64_t packet = 0; packet < 100; ++packet) {
    for (std::uint64_t i = 0; i < 255; ++i) ASSERT_EQ(bench.add(0, packet * 255 + i), PartResult::merged);
    bench.take();
  }
  EXPECT_EQ(bench.merger.stats().events_overflow, 25'499u);
  EXPECT_EQ(bench.merger.stats().parts_no_room, 0u);
}

TEST(Merger, HitsThatHaveNoRoomAreCutAndSaid) {
  Bench bench({.source_count = 4, .hits_max = 10});
  EXPECT_EQ(bench.add(0, 1, {0, 1, 2, 3, 4, 5, 6}), PartResult::merged);
  EXPECT_EQ(bench.add(1, 1, {7, 8, 9, 10, 11}), PartResult::merged_cut);
  EXPECT_EQ(bench.add(2, 1, {12}), PartResult::merged_cut);
  EXPECT_EQ(bench.add(3, 1, {}), PartResult::merged);
  bench.take();
  ASSERT_EQ(bench.delivered.size(), 1u);
  EXPECT_EQ(bench.delivered[0].hit_count, 10);
  EXPECT_EQ(bench.delivered[0].hits[9], 9);
  EXPECT_EQ(bench.delivered[0].hits_cut, 3);
  EXPECT_EQ(bench.merger.stats().parts_overflow_hits, 2u);
  EXPECT_EQ(bench.merger.stats().parts_merged, 4u);
}

TEST(Merger, CutHitsSaturate) {
  Bench bench({.source_count = 2, .hits_max = 1});
  const std::vector<std::uint16_t> many(70'000, 5);
  EXPECT_EQ(bench.add(0, 1, many), PartResult::merged_cut);
  EXPECT_EQ(bench.add(1, 1, many), PartResult::merged_cut);
  bench.take();
  EXPECT_EQ(bench.delivered[0].hits_cut, 65535);
  EXPECT_EQ(bench.delivered[0].hit_count, 1);
}

TEST(Merger, OnlyFortyBitsOfTheKeyCount) {
  Bench bench({.source_count = 2});
  EXPECT_EQ(bench.add(0, 0xab'0000000001), PartResult::merged);
  EXPECT_EQ(bench.add(1, 0xcd'0000000001), PartResult::merged);
  bench.take();
  ASSERT_EQ(bench.delivered.size(), 1u);
  EXPECT_EQ(bench.delivered[0].key, 1u);
}

TEST(Merger, TheKeyMayWrap) {
  Bench bench({.source_count = 2, .open_events_max = 16});
  const std::uint64_t first = kKeyMask - 5'000'000;
  for (std::uint64_t i = 0; i < 10'000; ++i) bench.add_complete(first + i * 1000, 1, 1, 2);
  EXPECT_EQ(bench.merger.stats().events_complete, 10'000u);
  EXPECT_EQ(bench.merger.stats().parts_late, 0u);
  EXPECT_EQ(bench.delivered[9'999].key, (first + 9'999'000) & kKeyMask);
  EXPECT_EQ(bench.add(1, first + 500), PartResult::late);  // before the horizon, on the other side of the wrap
  EXPECT_EQ(bench.add(1, first), PartResult::late);
}

TEST(Merger, WhatIsOlderThanTheMemoryIsLate) {
  Bench bench({.source_count = 4, .open_events_max = 16});
  for (std::uint64_t i = 0; i < 3000; ++i) bench.add_complete(1000 + i * 100, 1, 1, 4);
  EXPECT_EQ(bench.add(0, 1000), PartResult::late);
  EXPECT_EQ(bench.add(0, 1050), PartResult::late);       // such an event never was; it is too old all the same
  EXPECT_EQ(bench.add(0, 1000 + 2990 * 100), PartResult::duplicate);  // in memory
  EXPECT_EQ(bench.add(0, 1000 + 2990 * 100 + 1), PartResult::merged); // after the horizon: an event of its own
}

TEST(Merger, AWildTimestampHarmsNobodyElse) {
  Bench bench({.source_count = 4, .window_ns = 1'000, .open_events_max = 16});
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const std::uint64_t wild = (std::uint64_t{1} << 38) + i * 7'000'003;  // a board with a broken clock, in each event
    EXPECT_EQ(bench.add(0, wild), PartResult::merged);
    for (std::uint32_t source = 1; source < 4; ++source) EXPECT_EQ(bench.add(source, i * 100), PartResult::merged);
    bench.now_ns += 1'000;
    bench.merger.expire(bench.now_ns);
    bench.take();
  }
  EXPECT_EQ(bench.merger.stats().parts_late, 0u);
  EXPECT_EQ(bench.merger.stats().events_missing_parts, 10'000u);
  EXPECT_EQ(bench.delivered.size(), 10'000u);
}

TEST(Merger, AWildPacketOfAnOnlySourceHarmsNobodyElse) {
  Bench bench({.source_count = 1, .open_events_max = 16});
  for (std::uint64_t i = 0; i < 3000; ++i) {
    EXPECT_EQ(bench.add(0, i * 100), PartResult::merged);
    bench.take();
  }
  for (std::uint64_t i = 0; i < 255; ++i) {
    EXPECT_EQ(bench.add(0, 1'000'000'000'000 / 2 + i), PartResult::merged);
    bench.take();
  }
  for (std::uint64_t i = 3000; i < 9000; ++i) {
    EXPECT_EQ(bench.add(0, i * 100), PartResult::merged);
    bench.take();
  }
  EXPECT_EQ(bench.merger.stats().parts_late, 0u);
  EXPECT_EQ(bench.add(0, 5), PartResult::late);  // and the horizon is back
}

TEST(Merger, ASourceFarAheadDoesNotSplitEvents) {
  // One board's packets come so early that its events are forgotten before the others' parts: these are late, and the
  // events are not delivered a second time.
  Bench bench({.source_count = 4, .open_events_max = 16});
  for (std::uint64_t i = 0; i < 5000; ++i) {
    EXPECT_EQ(bench.add(0, i * 100), PartResult::merged);
    bench.take();
  }
  for (std::uint64_t i = 0; i < 3000; ++i) {
    for (std::uint32_t source = 1; source < 4; ++source) EXPECT_EQ(bench.add(source, i * 100), PartResult::late);
  }
  EXPECT_EQ(bench.merger.stats().events_opened, 5000u);
}

TEST(Merger, FlushStartsANewRunAtOnce) {
  Bench bench({.source_count = 4, .open_events_max = 16});
  for (int run = 0; run < 3; ++run) {
    for (std::uint64_t i = 0; i < 3000; ++i) bench.add_complete(i * 100, 1, 1, 4);
    EXPECT_EQ(bench.add(2, 300'000), PartResult::merged);
    bench.merger.flush();
    bench.take();
    EXPECT_EQ(bench.delivered.back().closed_by, CloseReason::flush);
    EXPECT_EQ(bench.merger.open_count(), 0u);
  }
  EXPECT_EQ(bench.merger.stats().events_complete, 9000u);
  EXPECT_EQ(bench.merger.stats().events_missing_parts, 3u);
  EXPECT_EQ(bench.merger.stats().parts_late, 0u);
  bench.expect_books();
}

TEST(Merger, DrainRemembers) {
  Bench bench({.source_count = 2});
  bench.add(0, 10);
  bench.merger.drain(bench.now_ns);
  bench.take();
  ASSERT_EQ(bench.delivered.size(), 1u);
  EXPECT_EQ(bench.add(1, 10), PartResult::late);
  EXPECT_EQ(bench.add(0, 10), PartResult::duplicate);
}

TEST(Merger, ARestartWithoutFlushHealsWithinAboutASecond) {
  Bench bench({.source_count = 4, .open_events_max = 16});
  const std::uint64_t start = std::uint64_t{1} << 36;
  for (std::uint64_t i = 0; i < 3000; ++i) bench.add_complete(start + i * 100, 1, 1, 4);
  EXPECT_EQ(bench.add(0, 0), PartResult::late);
  bench.now_ns += 2 * kSecond_ns;
  bench.delivered.clear();
  for (std::uint64_t i = 0; i < 3000; ++i) bench.add_complete(i * 100, 1, 1, 4);
  EXPECT_EQ(bench.delivered.size(), 3000u);
}

TEST(Merger, ARestartInFullFlowHealsToo) {
  // No pause: when the new run starts, the memory is full of fresh events of the old one.
  Bench bench({.source_count = 4, .open_events_max = 16});
  const std::uint64_t start = std::uint64_t{1} << 36;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    bench.add_complete(start + i * 100, 1, 1, 4);
    bench.now_ns += 10'000;
  }
  std::uint64_t late = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    for (std::uint32_t source = 0; source < 4; ++source) late += bench.add(source, i * 100) == PartResult::late;
    bench.merger.clear_ready();
    bench.now_ns += 10'000;
  }
  EXPECT_GE(late, 4u * 100'000);  // 1 s at 10 us an event
  EXPECT_LE(late, 4u * 130'000);
  EXPECT_EQ(bench.merger.stats().events_complete, 3000 + 200'000 - late / 4);
}

TEST(Merger, AKeyThatComesRoundAgainIsANewEvent) {
  Bench bench({.source_count = 2});
  bench.add_complete(42, 1, 1, 2);
  bench.now_ns += kSecond_ns;  // still remembered
  EXPECT_EQ(bench.add(0, 42), PartResult::duplicate);
  bench.now_ns += 106 * kSecond_ns;
  bench.add_complete(42, 1, 1, 2);
  EXPECT_EQ(bench.delivered.size(), 2u);
  EXPECT_EQ(bench.add(0, 42), PartResult::duplicate);
}

TEST(Merger, KeysWithOneHashAreTold) {
  // The hash is a product modulo 2^64, of which bits 63..59 and some from bit 32 on are used; keys that agree in them
  // are found by search.
  std::vector<std::uint64_t> same;
  for (std::uint64_t key = 0; same.size() < 40; ++key) {
    const std::uint64_t hash = key * 0x9E3779B97F4A7C15u;
    if ((hash >> 32 & 1023) == 7 && hash >> 59 == 3) same.push_back(key);
  }
  Bench bench({.source_count = 2, .open_events_max = 64});
  for (const auto key : same) EXPECT_EQ(bench.add(0, key), PartResult::merged);
  for (auto key = same.rbegin(); key != same.rend(); ++key) EXPECT_EQ(bench.add(1, *key), PartResult::merged);
  EXPECT_EQ(bench.merger.stats().events_complete, 40u);
  for (const auto key : same) EXPECT_EQ(bench.add(0, key), PartResult::duplicate);
}

TEST(Merger, BadConfigurationIsRefusedWithAReason) {
  const auto refused = [](const MergerConfig& config, const std::string& name) {
    try {
      Merger merger(config);
    } catch (const SetupError& error) {
      return std::string(error.what()).find(name) != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refused({.source_count = 0}, "source_count is 0"));
  EXPECT_TRUE(refused({.source_count = 9}, "source_count is 9"));
  EXPECT_TRUE(refused({.window_ns = 999}, "window_ns is 999"));
  EXPECT_TRUE(refused({.window_ns = 10'000'000'001}, "window_ns"));
  EXPECT_TRUE(refused({.open_events_max = 0}, "open_events_max is 0"));
  EXPECT_TRUE(refused({.open_events_max = 24}, "open_events_max is 24"));
  EXPECT_TRUE(refused({.open_events_max = 1u << 21}, "open_events_max"));
  EXPECT_TRUE(refused({.hits_max = 0}, "hits_max is 0"));
  EXPECT_TRUE(refused({.hits_max = 129}, "hits_max is 129"));
  EXPECT_FALSE(refused({}, ""));
}

}  // namespace
}  // namespace nanet::event
