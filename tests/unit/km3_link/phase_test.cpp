// SPDX-License-Identifier: Apache-2.0
// The loop of three clocks over resets: one latency each; and receivers that are wrong have several, or never come up.
#include "model/km3/phase_test.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace nanet::gateware::km3::test {
namespace {

constexpr std::uint64_t kResets = 200;  // `nanet bench km3-link` makes 4,320
constexpr std::uint64_t kWrongResets = 40;

Settings settings_of(std::uint64_t seed, HalfBits down_delay = 2463, HalfBits up_delay = 2801) {
  Settings settings;
  settings.seed = seed;
  settings.down_delay = down_delay;
  settings.up_delay = up_delay;
  return settings;
}

void expect_one_of_each(const Seen& seen) {
  EXPECT_EQ(seen.down.different(), 1u);
  EXPECT_EQ(seen.recovered.different(), 1u);
  EXPECT_EQ(seen.floor_tx.different(), 1u);
  EXPECT_EQ(seen.round_trip.different(), 1u);
  EXPECT_EQ(seen.third.different(), 1u);
}

TEST(Km3Phase, EveryResetGivesTheSameLatencies) {
  const PhaseResult result = phase_test(settings_of(1), kResets);
  EXPECT_EQ(result.not_up, 0u);
  expect_one_of_each(result.seen);
  EXPECT_TRUE(result.one_latency());
  EXPECT_EQ(result.seen.error_trip + result.seen.error_phase + result.seen.error_second + result.seen.error_tx_phase, 0u);
  EXPECT_EQ(result.seen.tx_failed, 0u);
  EXPECT_EQ(result.seen.wrong_times, 0u);
}

TEST(Km3Phase, EveryPowerUpGivesTheSameLatencies) {
  const PhaseResult first = phase_test(settings_of(1), 1);
  for (std::uint64_t seed = 2; seed < 12; ++seed) {
    const PhaseResult other = phase_test(settings_of(seed), 2);
    ASSERT_TRUE(other.one_latency()) << seed;
    EXPECT_EQ(other.seen.down.last(), first.seen.down.last());
    EXPECT_EQ(other.seen.round_trip.last(), first.seen.round_trip.last());
    EXPECT_EQ(other.seen.recovered.last(), first.seen.recovered.last());
    EXPECT_EQ(other.seen.trip.last(), first.seen.trip.last());
    EXPECT_EQ(other.seen.phase.last(), first.seen.phase.last());
  }
}

// Fibres of all lengths in a word, half bits too; the times are those of the fibres and a constant.
TEST(Km3Phase, LatencyGoesWithTheFibre) {
  const PhaseResult first = phase_test(settings_of(1), 1);
  for (HalfBits more = 1; more <= kWord; more += 3) {
    const PhaseResult longer = phase_test(settings_of(more, 2463 + more, 2801), 4);
    ASSERT_TRUE(longer.one_latency()) << more;
    EXPECT_EQ(longer.seen.down.last(), first.seen.down.last() + more);
    EXPECT_EQ(longer.seen.round_trip.last(), first.seen.round_trip.last() + more);
    EXPECT_EQ(longer.seen.recovered.last(), (first.seen.recovered.last() + more) % kWord);
    EXPECT_EQ(longer.seen.phase.last(), longer.seen.third.last()) << "the meter says half bits";
    const PhaseResult back = phase_test(settings_of(more, 2463, 2801 + more), 4);
    ASSERT_TRUE(back.one_latency()) << more;
    EXPECT_EQ(back.seen.down.last(), first.seen.down.last());
    EXPECT_EQ(back.seen.round_trip.last(), first.seen.round_trip.last() + more);
  }
}

// Both fibres together longer than several frames.
TEST(Km3Phase, LongFibres) {
  const PhaseResult result = phase_test(settings_of(3, 100'001, 90'003), 4);
  EXPECT_TRUE(result.one_latency());
  EXPECT_GT(result.seen.trip.last() >> 16, 2u) << "frames";
  EXPECT_EQ(result.seen.wrong_times, 0u);
}

void expect_that_it_fails(const Settings& settings, bool monitors_tell) {
  const PhaseResult result = phase_test(settings, kWrongResets);
  EXPECT_FALSE(result.one_latency());
  EXPECT_GT(result.not_up + result.latency_values(), 1u);
  if (monitors_tell) {
    EXPECT_GT(result.seen.error_trip + result.seen.error_phase, 0u);
  }
}

TEST(Km3Phase, WithoutSlidesItFails) {
  Settings settings = settings_of(1);
  settings.wrong = Wrong::slides_in_logic;
  expect_that_it_fails(settings, true);
}

TEST(Km3Phase, WithAnElasticBufferItFails) {
  Settings settings = settings_of(1);
  settings.wrong = Wrong::elastic_buffer;
  expect_that_it_fails(settings, true);
}

TEST(Km3Phase, WithAnyByteOrderItFails) {
  Settings settings = settings_of(1);
  settings.wrong = Wrong::any_byte_order;
  expect_that_it_fails(settings, true);
}

TEST(Km3Phase, WhereK28_7IsTakenForACommaItFails) {
  Settings settings = settings_of(1);
  settings.test_pattern = true;
  EXPECT_TRUE(phase_test(settings, kWrongResets).one_latency()) << "of the right receiver";
  settings.size = Size::any_comma;
  expect_that_it_fails(settings, false);
}

}  // namespace
}  // namespace nanet::gateware::km3::test
