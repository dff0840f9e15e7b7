// SPDX-License-Identifier: Apache-2.0
#include "nanet/event/merger.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "merger_rig.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::event {
namespace {

TEST(Merger, PutsFourPartsTogetherInOrderOfArrival) {
  Rig rig({.source_count = 4});
  const std::uint64_t key = event_key(0x12345678, 0x9a);
  EXPECT_EQ(key, 0x123456789aU);
  EXPECT_EQ(rig.add(2, key, {20, 21}), PartResult::merged);
  rig.now_ns += 5;
  EXPECT_EQ(rig.add(0, key, {}), PartResult::merged);
  EXPECT_EQ(rig.add(3, key, {30}), PartResult::merged);
  EXPECT_TRUE(rig.merger.ready().empty());
  EXPECT_EQ(rig.add(1, key, {10, 11, 12}), PartResult::merged);
  ASSERT_EQ(rig.merger.ready().size(), 1u);
  const MergedEvent& event = *rig.merger.ready()[0];
  EXPECT_EQ(event.key, key);
  EXPECT_EQ(key_timestamp(event.key), 0x12345678u);
  EXPECT_EQ(key_fine_time(event.key), 0x9a);
  EXPECT_EQ(event.first_part_ns, kSecond_ns);
  EXPECT_EQ(event.parts_mask, 0xf);
  EXPECT_EQ(event.closed_by, CloseReason::complete);
  EXPECT_EQ(event.hits_cut, 0);
  const auto hits = event.hit_span();
  EXPECT_EQ(std::vector<std::uint16_t>(hits.begin(), hits.end()), (std::vector<std::uint16_t>{20, 21, 30, 10, 11, 12}));
  EXPECT_EQ(rig.merger.stats().parts_merged, 4u);
  EXPECT_EQ(rig.merger.stats().events_complete, 1u);
  rig.merger.clear_ready();
  EXPECT_TRUE(rig.merger.ready().empty());
}

TEST(Merger, CopiesEveryHitCountExactlyBothWays) {
  for (std::uint32_t count = 0; count <= kHitsMax; ++count) {
    std::vector<std::uint16_t> exact(count);  // of its own, so that a sanitizer sees a read past it
    std::vector<std::uint16_t> padded(std::max(8u, (count + 7) / 8 * 8), 0xeeee);
    for (std::uint32_t i = 0; i < count; ++i) exact[i] = padded[i] = static_cast<std::uint16_t>(1000 + i);
    Rig rig({.source_count = 2});
    EXPECT_EQ(rig.merger.add_part(0, 1, exact.data(), count, 0), PartResult::merged);
    EXPECT_EQ(rig.merger.add_part(1, 1, nullptr, 0, 0), PartResult::merged);
    EXPECT_EQ(rig.merger.add_padded_part(0, 2, padded.data(), count, 0), PartResult::merged);
    EXPECT_EQ(rig.merger.add_part(1, 2, nullptr, 0, 0), PartResult::merged);
    rig.take();
    ASSERT_EQ(rig.delivered.size(), 2u);
    for (const MergedEvent& event : rig.delivered) {
      const auto hits = event.hit_span();
      EXPECT_EQ(std::vector<std::uint16_t>(hits.begin(), hits.end()), exact);
    }
  }
}

TEST(Merger, FindsEventsInAnyOrderOfBoardsAndEvents) {
  Rig rig({.source_count = 4});
  const std::uint32_t sources[] = {3, 0, 2, 1};
  std::uint64_t multiplier = 1;
  for (const std::uint32_t source : sources) {
    multiplier *= 37;  // coprime to 257: another permutation of the 257 events for each source
    for (std::uint64_t i = 0; i < 257; ++i) {
      EXPECT_EQ(rig.add(source, 1000 * (i * multiplier % 257)), PartResult::merged);
    }
  }
  rig.take();
  ASSERT_EQ(rig.delivered.size(), 257u);
  std::map<std::uint64_t, int> seen;
  for (const auto& event : rig.delivered) ++seen[event.key];
  EXPECT_EQ(seen.size(), 257u);
  EXPECT_EQ(rig.merger.stats().events_complete, 257u);
}

TEST(Merger, OneSourceNeedsNoWait) {
  Rig rig({.source_count = 1});
  EXPECT_EQ(rig.add(0, 5), PartResult::merged);
  EXPECT_EQ(rig.merger.ready().size(), 1u);
  EXPECT_EQ(rig.add(0, 5), PartResult::duplicate);
  EXPECT_EQ(rig.merger.ready().size(), 1u);
}

TEST(Merger, EightSources) {
  Rig rig({.source_count = 8});
  rig.add_complete(77, 3, 1, 8);
  ASSERT_EQ(rig.delivered.size(), 3u);
  EXPECT_EQ(rig.delivered[0].parts_mask, 0xff);
  EXPECT_EQ(rig.add(7, 77), PartResult::duplicate);
}

TEST(Merger, LossOfEachPartClosesTheEventByItsWindow) {
  for (std::uint32_t lost = 0; lost < 4; ++lost) {
    Rig rig({.source_count = 4, .window_ns = 10'000});
    for (std::uint32_t source = 0; source < 4; ++source) {
      if (source != lost) {
        EXPECT_EQ(rig.add(source, 900), PartResult::merged);
      }
    }
    rig.merger.expire(rig.now_ns + 9'999);
    EXPECT_TRUE(rig.merger.ready().empty());
    rig.merger.expire(rig.now_ns + 10'000);
    ASSERT_EQ(rig.merger.ready().size(), 1u);
    EXPECT_EQ(rig.merger.ready()[0]->parts_mask, 0xf & ~(1u << lost));
    EXPECT_EQ(rig.merger.ready()[0]->closed_by, CloseReason::window);
    EXPECT_EQ(rig.merger.stats().events_missing_parts, 1u);
    EXPECT_EQ(rig.add(lost, 900), PartResult::late);
    EXPECT_EQ(rig.add((lost + 1) % 4, 900), PartResult::duplicate);
    rig.expect_books();
  }
}

TEST(Merger, ExpiryStopsAtTheFirstYoungEvent) {
  Rig rig({.source_count = 2, .window_ns = 1'000});
  for (std::uint64_t i = 0; i < 10; ++i) {
    rig.add(0, i);
    rig.now_ns += 100;
  }
  rig.add(1, 3);  // complete: not to be closed twice
  rig.take();
  rig.merger.expire(rig.now_ns + 450);  // opened at 0..900, now 1450: those of 0..400
  rig.take();
  ASSERT_EQ(rig.delivered.size(), 5u);
  EXPECT_EQ(rig.delivered[0].key, 3u);
  EXPECT_EQ(rig.delivered[4].key, 4u);
  EXPECT_EQ(rig.merger.open_count(), 5u);
  rig.expect_books();
}

TEST(Merger, EveryPartTwiceGivesEveryEventOnce) {
  Rig rig({.source_count = 4});
  for (std::uint32_t source = 0; source < 4; ++source) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      for (std::uint64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(rig.add(source, i * 17), repeat == 0 ? PartResult::merged : PartResult::duplicate);
      }
    }
  }
  rig.take();
  EXPECT_EQ(rig.delivered.size(), 100u);
  EXPECT_EQ(rig.merger.stats().parts_duplicate, 400u);
  for (const auto& event : rig.delivered) EXPECT_EQ(event.hit_count, 4);
}

TEST(Merger, TooManyOpenEventsForceOutTheOldest) {
  Rig rig({.source_count = 2, .open_events_max = 4});
  for (std::uint64_t key = 0; key < 6; ++key) EXPECT_EQ(rig.add(0, key), PartResult::merged);
  ASSERT_EQ(rig.merger.ready().size(), 2u);
  EXPECT_EQ(rig.merger.ready()[0]->key, 0u);
  EXPECT_EQ(rig.merger.ready()[1]->key, 1u);
  EXPECT_EQ(rig.merger.ready()[1]->closed_by, CloseReason::overflow);
  EXPECT_EQ(rig.merger.ready()[1]->hit_count, 1);
  EXPECT_EQ(rig.merger.stats().events_overflow, 2u);
  EXPECT_EQ(rig.merger.open_count(), 4u);
  EXPECT_EQ(rig.add(1, 0), PartResult::late);
  EXPECT_EQ(rig.add(1, 2), PartResult::merged);
  rig.expect_books();
}

TEST(Merger, PartsAreRefusedWhenReadyEventsAreNeverCleared) {
  Rig rig({.source_count = 1, .open_events_max = 512});
  for (std::uint64_t key = 0; key < 1024; ++key) EXPECT_EQ(rig.add(0, key), PartResult::merged);
  EXPECT_EQ(rig.add(0, 1024), PartResult::no_room);
  EXPECT_EQ(rig.add(0, 1), PartResult::duplicate);
  EXPECT_EQ(rig.merger.stats().parts_no_room, 1u);
  for (std::uint64_t i = 0; i < 1024; ++i) ASSERT_EQ(rig.merger.ready()[i]->key, i);  // none was overwritten
  rig.merger.clear_ready();
  EXPECT_EQ(rig.add(0, 1024), PartResult::merged);
}

TEST(Merger, PartsAreRefusedAlsoWithoutPressureOnTheMemory) {
  Rig rig({.source_count = 1, .open_events_max = 16});
  for (std::uint64_t key = 0; key < 272; ++key) EXPECT_EQ(rig.add(0, key), PartResult::merged);
  EXPECT_EQ(rig.add(0, 272), PartResult::no_room);
  rig.merger.clear_ready();
  EXPECT_EQ(rig.add(0, 272), PartResult::merged);
}

TEST(Merger, OnceAPacketIsOftenEnoughToClear) {
  Rig rig({.source_count = 2, .open_events_max = 1});
  for (std::uint64_t packet = 0; packet < 100; ++packet) {
    for (std::uint64_t i = 0; i < 255; ++i) ASSERT_EQ(rig.add(0, packet * 255 + i), PartResult::merged);
    rig.take();
  }
  EXPECT_EQ(rig.merger.stats().events_overflow, 25'499u);
  EXPECT_EQ(rig.merger.stats().parts_no_room, 0u);
}

TEST(Merger, HitsThatHaveNoRoomAreCutAndSaid) {
  Rig rig({.source_count = 4, .hits_max = 10});
  EXPECT_EQ(rig.add(0, 1, {0, 1, 2, 3, 4, 5, 6}), PartResult::merged);
  EXPECT_EQ(rig.add(1, 1, {7, 8, 9, 10, 11}), PartResult::merged_cut);
  EXPECT_EQ(rig.add(2, 1, {12}), PartResult::merged_cut);
  EXPECT_EQ(rig.add(3, 1, {}), PartResult::merged);
  rig.take();
  ASSERT_EQ(rig.delivered.size(), 1u);
  EXPECT_EQ(rig.delivered[0].hit_count, 10);
  EXPECT_EQ(rig.delivered[0].hits[9], 9);
  EXPECT_EQ(rig.delivered[0].hits_cut, 3);
  EXPECT_EQ(rig.merger.stats().parts_overflow_hits, 2u);
  EXPECT_EQ(rig.merger.stats().parts_merged, 4u);
}

TEST(Merger, CutHitsSaturate) {
  Rig rig({.source_count = 2, .hits_max = 1});
  const std::vector<std::uint16_t> many(70'000, 5);
  EXPECT_EQ(rig.add(0, 1, many), PartResult::merged_cut);
  EXPECT_EQ(rig.add(1, 1, many), PartResult::merged_cut);
  rig.take();
  EXPECT_EQ(rig.delivered[0].hits_cut, 65535);
  EXPECT_EQ(rig.delivered[0].hit_count, 1);
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
