// SPDX-License-Identifier: Apache-2.0
#include "emulate/schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "nanet/setup_error.hpp"

namespace nanet::emulate {
namespace {

constexpr double kTickNs = 24.951059536 / 256;

// Absolute key of event `index` of packet `number`.
std::uint64_t key_of(const Schedule& schedule, std::uint64_t number, std::uint32_t index) {
  const Schedule::Packet packet = schedule.packet(number);
  return packet.shift_units * 256 + schedule.pool_keys()[packet.pool_packet * schedule.events_per_packet() + index];
}

TEST(PoissonArrivals, AreStrictlyIncreasingAndFitTheLap) {
  for (const double rate : {1.0, 1e3, 1e7, 1e9}) {
    const Arrivals arrivals = poisson_arrivals(4096, rate, 7);
    ASSERT_EQ(arrivals.keys.size(), 4096u);
    EXPECT_NEAR(arrivals.period_units * 24.951059536e-9 * rate, 4096, 1e-6);
    for (std::size_t i = 1; i < arrivals.keys.size(); ++i) ASSERT_LT(arrivals.keys[i - 1], arrivals.keys[i]);
    EXPECT_LT(arrivals.keys.back(), static_cast<std::uint64_t>(arrivals.period_units) * 256);
  }
}

TEST(PoissonArrivals, GapsAreExponential) {
  const Arrivals arrivals = poisson_arrivals(65536, 1e6, 3);
  const double mean = 1e3 / kTickNs;  // ticks
  double sum = 0;
  double sum_squares = 0;
  int longer_than_mean = 0;
  for (std::size_t i = 1; i < arrivals.keys.size(); ++i) {
    const auto gap = static_cast<double>(arrivals.keys[i] - arrivals.keys[i - 1]);
    sum += gap;
    sum_squares += gap * gap;
    longer_than_mean += gap > mean ? 1 : 0;
  }
  const double n = 65535;
  EXPECT_NEAR(sum / n / mean, 1, 0.01);
  EXPECT_NEAR(std::sqrt(sum_squares / n - sum / n * sum / n) / mean, 1, 0.02);  // as wide as its mean
  EXPECT_NEAR(longer_than_mean / n, std::exp(-1.0), 0.01);
}

TEST(PoissonArrivals, SeedDecides) {
  EXPECT_EQ(poisson_arrivals(512, 1e6, 5).keys, poisson_arrivals(512, 1e6, 5).keys);
  EXPECT_NE(poisson_arrivals(512, 1e6, 5).keys, poisson_arrivals(512, 1e6, 6).keys);
}

TEST(PoissonArrivals, RefusesWhatCannotBe) {
  EXPECT_THROW(poisson_arrivals(0, 1e6, 1), SetupError);
  EXPECT_THROW(poisson_arrivals(16, 0, 1), SetupError);
  EXPECT_THROW(poisson_arrivals(16, 2e9, 1), SetupError);
  EXPECT_THROW(poisson_arrivals(16, std::nan(""), 1), SetupError);
}

TEST(Schedule, RateIsExactOverManyLaps) {
  // A lap of 160 events at 7.3 Mevent/s lasts 878.4 units: without the carried fraction the rate would be 0.05 % wrong.
  const Schedule schedule({.events_per_packet = 16}, poisson_arrivals(160, 7.3e6, 1));
  const std::uint64_t laps = 1'000'000;
  const double seconds = static_cast<double>(schedule.packet(laps * 10).shift_units) * 24.951059536e-9;
  EXPECT_NEAR(static_cast<double>(laps) * 160 / seconds / 7.3e6, 1, 1e-8);
}

TEST(Schedule, KeysAreUniqueAndInOrderAcrossLapsAndSpills) {
  const Schedule schedule({.events_per_packet = 4, .spill_s = 30e-6, .pause_s = 11e-6}, poisson_arrivals(64, 2.5e7, 2));
  std::uint64_t previous = 0;
  for (std::uint64_t number = 0; number < 2000; ++number) {
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint64_t key = key_of(schedule, number, i);
      ASSERT_TRUE(key > previous || (number == 0 && i == 0)) << number;
      previous = key;
    }
  }
}

TEST(Schedule, PacketIsDueWhenItsLastEventHasHappened) {
  const Schedule schedule({.events_per_packet = 16}, poisson_arrivals(1024, 1e6, 4));
  for (std::uint64_t number = 0; number < 300; ++number) {
    const double last_ns = static_cast<double>(key_of(schedule, number, 15)) * (24.951059536 / 256);
    const auto due_ns = static_cast<double>(schedule.packet(number).due_ns);
    EXPECT_GE(due_ns, last_ns);
    EXPECT_LE(due_ns, last_ns + 1.001);
  }
}

TEST(Schedule, ReadyGivesWhatIsDueUpToLimitAndEndOfLap) {
  const Schedule schedule({.events_per_packet = 16}, poisson_arrivals(160, 1e6, 4));  // 10 packets a lap
  const std::uint64_t due_3 = schedule.packet(3).due_ns;
  EXPECT_EQ(schedule.ready(0, schedule.packet(0).due_ns - 1, 1, 48), 0u);
  EXPECT_EQ(schedule.ready(0, schedule.packet(0).due_ns, 1, 48), 1u);
  EXPECT_EQ(schedule.ready(0, due_3, 1, 48), 4u);
  EXPECT_EQ(schedule.ready(2, due_3, 1, 48), 2u);
  EXPECT_EQ(schedule.ready(0, due_3, 1, 3), 3u);
  EXPECT_EQ(schedule.ready(7, schedule.packet(40).due_ns, 1, 48), 3u);  // the lap ends
}

TEST(Schedule, BurstWaitsUntilEnoughAreDueButNotForTheImpossible) {
  const Schedule schedule({.events_per_packet = 16, .packets_total = 9}, poisson_arrivals(160, 1e6, 4));
  EXPECT_EQ(schedule.ready(0, schedule.packet(2).due_ns, 4, 48), 0u);
  EXPECT_EQ(schedule.ready(0, schedule.packet(3).due_ns, 4, 48), 4u);
  EXPECT_EQ(schedule.ready(8, schedule.packet(8).due_ns, 4, 48), 1u);  // the run ends
  EXPECT_EQ(schedule.ready(9, ~std::uint64_t{0}, 4, 48), 0u);
}

TEST(Schedule, BurstEndsWithTheSpill) {
  const Schedule schedule({.events_per_packet = 1, .spill_s = 10e-6, .pause_s = 1e-3}, poisson_arrivals(1000, 1e6, 9));
  std::uint64_t last = 0;  // of the first spill
  while (schedule.packet(last + 1).spill == 0) ++last;
  ASSERT_GT(last, 2u);
  ASSERT_LT(last, 30u);
  EXPECT_EQ(schedule.ready(0, schedule.packet(last).due_ns, 500, 500), last + 1);
}

TEST(Schedule, PausesAreSilent) {
  const double spill_s = 0.5;
  const double pause_s = 0.25;
  const Schedule schedule({.events_per_packet = 16, .spill_s = spill_s, .pause_s = pause_s}, poisson_arrivals(1600, 1e5, 2));
  for (std::uint64_t number = 0; number < 20000; ++number) {
    const double first_s = static_cast<double>(key_of(schedule, number, 0)) * kTickNs * 1e-9;
    ASSERT_LE(std::fmod(first_s, spill_s + pause_s), spill_s + 1e-6) << number;
  }
  // 1e5 a second during spills, none in pauses: after 3 whole cycles 1.5e5 events.
  const Schedule timed({.events_per_packet = 16, .spill_s = spill_s, .pause_s = pause_s, .duration_s = 2.25},
                       poisson_arrivals(1600, 1e5, 2));
  EXPECT_NEAR(static_cast<double>(timed.packet_count()) * 16, 1.5e5, 1600);
}

TEST(Schedule, DurationEndsTheRunExactly) {
  const ScheduleConfig config{.events_per_packet = 16, .duration_s = 0.01};
  const Schedule schedule(config, poisson_arrivals(1024, 1e6, 4));
  const std::uint64_t count = schedule.packet_count();
  ASSERT_GT(count, 0u);
  EXPECT_LE(schedule.packet(count - 1).due_ns, 10'000'000u);
  EXPECT_GT(schedule.packet(count).due_ns, 10'000'000u);
  EXPECT_EQ(Schedule({.duration_s = 1e-9}, poisson_arrivals(1024, 1e6, 4)).packet_count(), 0u);
  EXPECT_EQ(Schedule({.duration_s = 0.01, .packets_total = 3}, poisson_arrivals(1024, 1e6, 4)).packet_count(), 3u);
  EXPECT_EQ(Schedule({}, poisson_arrivals(1024, 1e6, 4)).packet_count(), Schedule::kEndless);
}

TEST(Schedule, UnpacedIsAlwaysDueButTimesAdvance) {
  const Schedule schedule({.events_per_packet = 16, .pacing = Pacing::unpaced}, poisson_arrivals(160, 1e7, 4));
  EXPECT_EQ(schedule.ready(12345, 0, 4, 48), 5u);
  EXPECT_GT(key_of(schedule, 12345, 0), key_of(schedule, 12344, 15));
}

TEST(Schedule, RefusesAPoolThatPacketsDoNotFill) {
  EXPECT_THROW(Schedule({.events_per_packet = 16}, poisson_arrivals(100, 1e6, 4)), SetupError);
  EXPECT_THROW(Schedule({.events_per_packet = 0}, poisson_arrivals(100, 1e6, 4)), SetupError);
}

}  // namespace
}  // namespace nanet::emulate
