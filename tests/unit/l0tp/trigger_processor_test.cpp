// SPDX-License-Identifier: Apache-2.0
#include "l0tp/trigger_processor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "rig.hpp"

namespace nanet::l0tp {
namespace {

using test::any_mask;
using test::at;
using test::Rig;
using test::three_inputs;
using test::with_cells;

constexpr std::uint64_t kStart = 80 * 65'536;  // ticks; a header's time, and so the begin of a cell too

TEST(TriggerProcessor, DecidesAReferencePrimitiveOnceTimeHasGoneOnByTheLag) {
  Rig rig(three_inputs());
  rig.advance(0, kStart);
  rig.now_ns = 77;
  rig.send(0, {at(kStart + 70, 0x6F54)});
  rig.send(1, {at(kStart + 80, 0x0123)});
  rig.send(2, {at(kStart + 64 + 10'000)});
  EXPECT_TRUE(rig.decide().empty());
  rig.advance(2, kStart + 65'536);
  const auto decisions = rig.decide();
  ASSERT_EQ(decisions.size(), 1u);
  const Decision expected{.timestamp = (kStart + 70) >> 8,
                          .fine_time = (kStart + 70) & 255,
                          .matched_inputs = 0b011,
                          .trigger_word = 1,
                          .trigger_number = 0,
                          .arrived_ns = 77};
  EXPECT_EQ(decisions[0], expected);
  EXPECT_TRUE(decisions[0].is_trigger());
  EXPECT_EQ(rig.processor.pending_count(), 0u);
}

TEST(TriggerProcessor, AWholeCellIsReadAtATime) {
  Rig rig(three_inputs());
  rig.advance(0, kStart);
  rig.send(0, {at(kStart + 1)});
  rig.send(1, {at(kStart + 10'000 + 62)});
  EXPECT_TRUE(rig.decide().empty());
  rig.send(1, {at(kStart + 10'000 + 63)});
  EXPECT_TRUE(rig.decide().empty()) << "the last tick of the cell is not before newest - lag";
  rig.send(1, {at(kStart + 10'000 + 64)});
  EXPECT_EQ(rig.decide().size(), 1u);
}

// The match of input 1 when it has these primitives around a reference at `reference`.
std::uint8_t matched_of(std::uint64_t reference, std::vector<std::uint64_t> times, std::uint32_t cut_ticks, std::uint32_t bits = 2) {
  Config config = with_cells(three_inputs(), bits);
  config.inputs[1].time_cut_ns = cut_ticks * wire::kTickNs;
  Rig rig(config);
  rig.advance(0, kStart);
  rig.send(0, {at(reference)});
  for (const std::uint64_t time : times) rig.send(1, {at(time)});
  const auto decisions = rig.flush();
  return decisions.size() == 1 ? decisions[0].matched_inputs : std::uint8_t{0};
}

TEST(TriggerProcessor, MatchesUpToTheCutAndNoFurther) {
  for (const std::uint32_t cut : {0u, 1u, 30u, 50u, 64u}) {
    for (const std::uint64_t reference : {kStart, kStart + 20, kStart + 63}) {
      EXPECT_EQ(matched_of(reference, {reference + cut}, cut), 0b011);
      EXPECT_EQ(matched_of(reference, {reference - cut}, cut), 0b011);
      EXPECT_EQ(matched_of(reference, {reference + cut + 1}, cut), 0b001);
      EXPECT_EQ(matched_of(reference, {reference - cut - 1}, cut), 0b001);
    }
  }
}

TEST(TriggerProcessor, TheLargestCutReachesAsFarFromEveryPlaceInACell) {
  for (std::uint32_t bits = 0; bits <= kFineTimeBitsMax; ++bits) {
    const std::uint32_t cell = 256u >> bits;
    for (const std::uint64_t reference : {kStart, kStart + cell / 2, kStart + cell - 1}) {
      EXPECT_EQ(matched_of(reference, {reference + cell}, cell, bits), 0b011) << bits;
      EXPECT_EQ(matched_of(reference, {reference + cell + 1}, cell, bits), 0b001) << bits;
      EXPECT_EQ(matched_of(reference, {reference - cell}, cell, bits), 0b011) << bits;
      EXPECT_EQ(matched_of(reference, {reference - cell - 1}, cell, bits), 0b001) << bits;
    }
  }
}

TEST(TriggerProcessor, TheClosestMatchesAndAtEqualDistanceTheOwnCellThenTheOneBefore) {
  Config config = three_inputs();
  config.masks = {{.name = "first", .bits = {{"CHOD", "0001_0001_0001_0001"}}},
                  {.name = "second", .bits = {{"CHOD", "0010_0010_0010_0010"}}}};
  const auto word = [&](std::uint64_t reference, std::uint64_t first, std::uint64_t second) {
    Rig rig(config);
    rig.advance(0, kStart);
    rig.send(0, {at(reference)});
    rig.send(1, {at(first, 0x1111), at(second, 0x2222)});
    return rig.flush().at(0).trigger_word;
  };
  EXPECT_EQ(word(kStart + 32, kStart + 42, kStart - 3), 0b01);             // own cell 10 away, before 35
  EXPECT_EQ(word(kStart + 2, kStart + 32, kStart - 3), 0b10);              // own cell 30 away, before 5
  EXPECT_EQ(word(kStart + 62, kStart + 32, kStart + 65), 0b10);            // own cell 30 away, after 3
  EXPECT_EQ(word(kStart + 10, kStart + 30, kStart - 10), 0b01);            // both 20: own cell
  EXPECT_EQ(word(kStart + 32, kStart + 32 + 40, kStart + 32 - 40), 0b10);  // both 40: the cell before
}

TEST(TriggerProcessor, ALaterPrimitiveTakesTheCell) {
  Rig rig(three_inputs());
  rig.advance(0, kStart);
  rig.send(0, {at(kStart + 10, 0x4001)});
  rig.now_ns = 2'000;
  rig.send(0, {at(kStart + 5, 0x4002)});
  rig.send(1, {at(kStart + 5), at(kStart + 60)});
  const auto decisions = rig.flush();
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].fine_time, (kStart + 5) & 255);
  EXPECT_EQ(decisions[0].arrived_ns, 2'000u);
  EXPECT_EQ(decisions[0].matched_inputs, 0b001) << "at +60 it is 55 away; at +5 it was overwritten";
  EXPECT_EQ(rig.processor.input_stats(0).stored, 2u);
  EXPECT_EQ(rig.processor.input_stats(0).overwritten, 1u);
  EXPECT_EQ(rig.processor.input_stats(1).overwritten, 1u);
  EXPECT_EQ(rig.processor.stats().decided, 1u);
}

TEST(TriggerProcessor, ARepeatedReferencePrimitiveIsADuplicate) {
  Rig rig(three_inputs());
  rig.send(0, {at(kStart + 10, 0x4001), at(kStart + 10, 0x4001), at(kStart + 10, 0x4002)});
  EXPECT_EQ(rig.processor.input_stats(0).duplicates, 1u);
  EXPECT_EQ(rig.processor.input_stats(0).overwritten, 1u) << "the same time with another ID";
  EXPECT_EQ(rig.flush().size(), 1u);
}

TEST(TriggerProcessor, WhatAnEarlierTurnOfTheMemoryLeftNeverMatches) {
  for (std::uint32_t bits = 0; bits <= kFineTimeBitsMax; ++bits) {
    const Config config = with_cells(three_inputs(), bits);
    Rig rig(config);
    const std::uint64_t memory = config.memory_ticks();
    rig.send(1, {at(kStart)});
    for (std::uint64_t time = kStart; time <= kStart + memory; time += memory / 4) {
      rig.advance(0, time);
      EXPECT_TRUE(rig.decide().empty());
    }
    rig.send(0, {at(kStart + memory)});
    const auto decisions = rig.flush();
    ASSERT_EQ(decisions.size(), 1u);
    EXPECT_EQ(decisions[0].matched_inputs, 0b001);
    EXPECT_EQ(rig.processor.input_stats(1).overwritten, 0u);
  }
}

TEST(TriggerProcessor, ALateAndAFarPrimitiveAreCountedByName) {
  Rig rig(three_inputs());
  const std::uint64_t first_cell = kStart - 10'000;  // not a cell's begin: 9984 + 16 before
  rig.advance(0, kStart);
  const std::uint64_t window = (first_cell >> 6) << 6;
  rig.send(1, kStart >> 8, {at(window)});
  rig.send(1, kStart >> 8, {at(window - 1)});
  rig.send(1, kStart >> 8, {at(window - 16384 * 64)});
  EXPECT_EQ(rig.processor.input_stats(1).stored, 1u);
  EXPECT_EQ(rig.processor.input_stats(1).late, 2u);
  rig.send(1, kStart >> 8, {at(window - 16384 * 64 - 1), at(window + 16383 * 64), at(window + (std::uint64_t{1} << 39))});
  EXPECT_EQ(rig.processor.input_stats(1).out_of_range, 3u);
  rig.send(1, kStart >> 8, {at(window + 16383 * 64 - 1)});
  EXPECT_EQ(rig.processor.input_stats(1).stored, 2u);
}

TEST(TriggerProcessor, AReferenceThatComesAfterItsCellWasReadIsLate) {
  Rig rig(three_inputs());
  rig.advance(0, kStart);
  rig.advance(1, kStart + 65'536);
  rig.send(0, {at(kStart + 5'000)});
  EXPECT_EQ(rig.processor.input_stats(0).stored, 1u) << "nothing is read before decide()";
  EXPECT_EQ(rig.decide().size(), 1u);
  rig.send(0, {at(kStart + 5'001)});
  EXPECT_EQ(rig.processor.input_stats(0).late, 1u);
}

TEST(TriggerProcessor, DecidesInOrderOfTimeAcrossTheWrapAfter107Seconds) {
  Rig rig(three_inputs());
  const std::uint64_t wrap = std::uint64_t{1} << 40;
  rig.advance(0, wrap - 20'000);
  std::vector<std::uint64_t> times;
  for (std::uint64_t i = 0; i < 40; ++i) times.push_back((wrap - 10'000 + i * 500) & (wrap - 1));
  std::vector<std::uint64_t> shuffled = times;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(1));
  for (const std::uint64_t time : shuffled) {
    rig.send(0, {at(time)});
    rig.send(2, {at((time + 3) & (wrap - 1))});
  }
  rig.advance(1, 65'536);
  const auto decisions = rig.decide();
  ASSERT_EQ(decisions.size(), times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(wire::ticks(decisions[i].timestamp, decisions[i].fine_time), times[i]);
    EXPECT_EQ(decisions[i].matched_inputs, 0b101);
    EXPECT_EQ(decisions[i].trigger_number, i);
  }
}

TEST(TriggerProcessor, MasksHaveDontCareBitsAndVetoes) {
  Config config = three_inputs();
  config.masks = {
      {.name = "bit 0 of the reference", .bits = {{"RICH", "xxxx_xxxx_xxxx_xxx1"}}},
      {.name = "not bit 0 of the reference", .bits = {{"RICH", "xxxx_xxxx_xxxx_xxx0"}}},
      {.name = "second detector", .bits = {{"CHOD", "x1xx_xxxx_xxxx_xxxx"}}},
      {.name = "third detector is a veto", .bits = {{"MUV3", "0000_0000_0000_0000"}}},
      {.name = "off", .enabled = false},
      {.name = "all of it",
       .bits = {{"RICH", "0100_0000_0000_0001"}, {"CHOD", "0100_0000_0000_0000"}, {"MUV3", "0000_0001_0000_0000"}}},
  };
  Rig rig(config);
  rig.advance(0, kStart);
  rig.send(0, {at(kStart + 1000, 0x4001), at(kStart + 2000, 0x4000), at(kStart + 3000, 0x4001)});
  rig.send(1, {at(kStart + 1001, 0x4000), at(kStart + 3001, 0x4000)});
  rig.send(2, {at(kStart + 3000, 0x0100)});
  const auto decisions = rig.flush();
  ASSERT_EQ(decisions.size(), 3u);
  EXPECT_EQ(decisions[0].trigger_word, 0b001101);
  EXPECT_EQ(decisions[1].trigger_word, 0b001010);
  EXPECT_EQ(decisions[2].trigger_word, 0b100101);
  EXPECT_EQ(rig.processor.mask_stats()[4].matched, 0u);
}

TEST(TriggerProcessor, DownscalingFiresAtEveryNthMatchAndStartsAnewAfterFlush) {
  Config config = three_inputs();
  config.masks = {{.name = "every third", .downscaling = 3}, {.name = "every second", .downscaling = 2}};
  Rig rig(config);
  const auto words = [&] {
    rig.advance(0, kStart);
    for (std::uint64_t i = 0; i < 7; ++i) rig.send(0, {at(kStart + 100 * i)});
    std::vector<int> found;
    for (const Decision& decision : rig.flush()) found.push_back(decision.trigger_word);
    return found;
  };
  EXPECT_EQ(words(), (std::vector<int>{0, 2, 1, 2, 0, 3, 0}));
  EXPECT_EQ(words(), (std::vector<int>{0, 2, 1, 2, 0, 3, 0}));
  EXPECT_EQ(rig.processor.mask_stats()[0].matched, 14u);
  EXPECT_EQ(rig.processor.mask_stats()[0].fired, 4u);
  EXPECT_EQ(rig.processor.stats().decided, 14u);
  EXPECT_EQ(rig.processor.stats().triggers_physics, 8u);
}

TEST(TriggerProcessor, ACalibrationPrimitiveTriggersAloneAndAtOnce) {
  Rig rig(three_inputs());
  rig.now_ns = 42;
  rig.send(2, {at(kStart + 9, 0x8123)});
  rig.send(0, {at(kStart + 9, 0x9000), at(kStart + 9, 0x4000)});
  const auto decisions = rig.decide();
  ASSERT_EQ(decisions.size(), 2u);
  const Decision expected{.timestamp = (kStart + 9) >> 8,
                          .fine_time = (kStart + 9) & 255,
                          .kind = DecisionKind::calibration,
                          .matched_inputs = 0b100,
                          .trigger_word = 0x8123,
                          .trigger_number = 0,
                          .arrived_ns = 42};
  EXPECT_EQ(decisions[0], expected);
  EXPECT_EQ(decisions[1].trigger_word, 0x9000);
  const auto rest = rig.flush();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].matched_inputs, 0b001);
  EXPECT_EQ(rest[0].trigger_number, 2u);
}

TEST(TriggerProcessor, CalibrationsWithoutRoomAreCounted) {
  Rig rig(three_inputs());
  for (std::uint32_t i = 0; i < kCalibrationsMax + 5; ++i) rig.send(1, {at(kStart + i, 0x8000)});
  EXPECT_EQ(rig.processor.input_stats(1).calibrations, kCalibrationsMax);
  EXPECT_EQ(rig.processor.input_stats(1).calibrations_no_room, 5u);
  EXPECT_EQ(rig.processor.pending_calibrations(), kCalibrationsMax);
  EXPECT_EQ(rig.decide().size(), kCalibrationsMax);
}

TEST(TriggerProcessor, BadPacketsAreCountedAndChangeNothing) {
  Rig rig(three_inputs());
  const std::vector<std::byte> bad_length(12);
  rig.processor.take(bad_length, 1);
  rig.processor.take({}, 1);
  std::vector<std::byte> room(64);
  wire::MtpWriter writer(room);
  writer.begin(wire::kSourceGtk, 0, 0);
  ASSERT_TRUE(writer.add(at(5)));
  rig.processor.take(writer.finish(), 1);
  writer.begin(wire::kSourceRich, 0, 0);
  ASSERT_TRUE(writer.add(at(5)));
  std::vector<std::byte> wrong_count(writer.finish().begin(), writer.finish().end());
  wrong_count[6] = std::byte{2};
  rig.processor.take(wrong_count, 1);
  const Stats& stats = rig.processor.stats();
  EXPECT_EQ(stats.packets, 4u);
  EXPECT_EQ(stats.packets_bad_length, 2u);
  EXPECT_EQ(stats.packets_bad_format, 1u);
  EXPECT_EQ(stats.packets_unknown_source, 1u);
  EXPECT_EQ(stats.primitives_unknown_source, 1u);
  EXPECT_EQ(stats.packets_good, 0u);
  EXPECT_TRUE(rig.flush().empty());
  rig.check_books();
}

TEST(TriggerProcessor, SilenceLetsAllThatWaitsBeDecided) {
  Config config = three_inputs();
  config.silence_us = 1;
  Rig rig(config);
  rig.send(0, {at(kStart), at(kStart + 500)});
  rig.now_ns += 999;
  EXPECT_TRUE(rig.decide().empty());
  rig.now_ns += 1;
  EXPECT_EQ(rig.decide().size(), 2u);
  rig.send(0, {at(kStart + 400)});
  EXPECT_EQ(rig.processor.input_stats(0).late, 1u);
}

TEST(TriggerProcessor, ALongPauseCostsSomePacketsAndNoMore) {
  Rig rig(three_inputs());
  rig.send(0, {at(kStart)});
  const std::uint64_t later = kStart + (std::uint64_t{1} << 36);
  std::size_t decided = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    rig.send(static_cast<std::uint32_t>(i % 3), {at(later + 1'000 * i)});
    decided += rig.decide().size();
  }
  decided += rig.flush().size();
  EXPECT_EQ(rig.processor.stats().time_jumps, 1u);
  std::uint64_t out_of_range = 0;
  for (std::uint32_t i = 0; i < 3; ++i) out_of_range += rig.processor.input_stats(i).out_of_range;
  EXPECT_EQ(out_of_range, kJumpVotes);
  EXPECT_EQ(decided, 1u + 23u) << "the one before the pause, and the reference's 34 less 11 that voted";
}

TEST(TriggerProcessor, OneWildClockAmongGoodOnesMovesNothing) {
  Rig rig(three_inputs());
  rig.advance(0, kStart);
  for (std::uint64_t i = 0; i < 500; ++i) {
    rig.send(0, {at(kStart + 500 * i)});
    rig.send(1, {at(kStart + 500 * i)});
    rig.send(2, {at(kStart + 500 * i + (std::uint64_t{1} << 37))});
    rig.decide();
  }
  rig.flush();
  EXPECT_EQ(rig.processor.stats().time_jumps, 0u);
  EXPECT_EQ(rig.processor.stats().decided, 500u);
  EXPECT_EQ(rig.processor.input_stats(2).out_of_range, 500u);
}

TEST(TriggerProcessor, AWildFirstPacketIsOutvoted) {
  Rig rig(three_inputs());
  rig.advance(2, kStart + (std::uint64_t{1} << 37));
  for (std::uint64_t i = 0; i < 500; ++i) {
    rig.send(0, {at(kStart + 500 * i)});
    rig.send(1, {at(kStart + 500 * i)});
    rig.advance(2, kStart + 500 * i + (std::uint64_t{1} << 37));
    rig.decide();
  }
  EXPECT_EQ(rig.processor.stats().time_jumps, 1u);
  EXPECT_GT(rig.processor.stats().decided, 400u);
}

TEST(TriggerProcessor, FlushForgetsTheTimes) {
  Rig rig(three_inputs());
  rig.send(1, {at(kStart)});
  rig.flush();
  rig.send(0, {at(kStart)});
  EXPECT_EQ(rig.flush().at(0).matched_inputs, 0b001) << "what the last run left does not match";
  rig.send(0, {at(100)});
  EXPECT_EQ(rig.flush().size(), 1u) << "times may start again";
}

TEST(TriggerProcessor, WithoutRoomNothingIsLost) {
  Rig rig(three_inputs());
  rig.send(0, {at(kStart), at(kStart + 200), at(kStart + 100, 0x8000)});
  EXPECT_EQ(rig.processor.flush({}), 0u);
  std::vector<Decision> room(1);
  EXPECT_EQ(rig.processor.flush(room), 1u);
  EXPECT_EQ(room[0].kind, DecisionKind::calibration);
  EXPECT_EQ(rig.processor.flush(room), 1u);
  EXPECT_EQ(room[0].fine_time, kStart & 255);
  EXPECT_EQ(rig.processor.flush(room), 1u);
  EXPECT_EQ(rig.processor.flush(room), 0u);
}

TEST(TriggerProcessor, AnyInputCanBeTheReferenceAndOneIsEnough) {
  Config config = three_inputs();
  config.reference = "MUV3";
  Rig rig(config);
  rig.send(2, {at(kStart)});
  rig.send(0, {at(kStart + 1)});
  EXPECT_EQ(rig.flush().at(0).matched_inputs, 0b101);
  config.inputs = {{"LKr", wire::kSourceLkr}};
  config.reference = "LKr";
  Rig alone(config);
  alone.send(0, {at(kStart)});
  EXPECT_EQ(alone.flush().at(0).matched_inputs, 0b001);
}

}  // namespace
}  // namespace nanet::l0tp
