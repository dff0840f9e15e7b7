// SPDX-License-Identifier: Apache-2.0
// Wrong bits anywhere, a fibre that is cut, exchanged floors, a GPS that jumps: each has a name, and no time is ever wrong.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "model/km3/loop.hpp"

namespace nanet::gateware::km3::test {
namespace {

std::unique_ptr<Loop> brought_up(std::uint64_t seed = 1) {
  Settings settings;
  settings.seed = seed;
  std::unique_ptr<Loop> loop = make_loop(settings);
  EXPECT_TRUE(bring_up(*loop));
  return loop;
}

void frames(Loop& loop, std::uint64_t count) { loop.run(count * loop.frame_words()); }

void expect_nothing_wrong(const Loop& loop) {
  const Seen& seen = loop.seen();
  EXPECT_EQ(seen.wrong_words, 0u);
  EXPECT_EQ(seen.wrong_control, 0u);
  EXPECT_EQ(seen.wrong_times, 0u);
  EXPECT_EQ(seen.wrong_express, 0u);
  EXPECT_EQ(seen.error_trip, 0u);
  EXPECT_EQ(seen.error_phase, 0u);
  EXPECT_EQ(seen.down.different(), 1u);
  EXPECT_EQ(seen.round_trip.different(), 1u);
}

// One wrong bit in each frame, at every place of a frame in turn (in steps that have no divisor in common with a symbol).
void wrong_bits(Loop& loop, Fibre& fibre, const Counts& told) {
  constexpr std::uint64_t kStepBits = 61;
  const std::uint64_t frame_bits = std::uint64_t{loop.frame_words()} * kWordBits;
  for (std::uint64_t place = 0; place < frame_bits; place += kStepBits) {
    const std::uint64_t before = told.errors();
    fibre.wrong_in = 1 + place;
    frames(loop, 3);
    ASSERT_GT(told.errors(), before) << "nobody tells of bit " << place;
  }
}

TEST(Km3BadInput, AWrongBitAnywhereOnTheWayUpIsTold) {
  const auto loop = brought_up();
  loop->busy_up = true;
  frames(*loop, 4);
  const std::uint64_t sent = loop->seen().shore.fates();
  const HalfBits begin = loop->now();
  wrong_bits(*loop, loop->up_fibre(), loop->seen().shore);
  frames(*loop, 2);
  const Counts& shore = loop->seen().shore;
  const std::uint64_t began = (loop->now() - begin) / kWord / loop->frame_words();
  EXPECT_NEAR(static_cast<double>(shore.fates() - sent + shore[Count::lost]), static_cast<double>(began), 1);
  for (const Count kind : {Count::drop_head, Count::drop_code, Count::lost, Count::error_code}) {
    EXPECT_GT(shore[kind], 0u) << kCountNames[static_cast<std::size_t>(kind)];
  }
  EXPECT_EQ(shore[Count::down], 0u) << "one wrong bit takes no link down";
  EXPECT_EQ(loop->seen().floor.errors(), 0u);
  expect_nothing_wrong(*loop);
}

TEST(Km3BadInput, AWrongBitAnywhereOnTheWayDownIsTold) {
  const auto loop = brought_up();
  loop->busy_down = true;
  frames(*loop, 4);
  wrong_bits(*loop, loop->down_fibre(), loop->seen().floor);
  EXPECT_EQ(loop->seen().floor[Count::down], 0u);
  EXPECT_EQ(loop->seen().error_jump, 0u);
  EXPECT_EQ(loop->seen().shore.errors(), 0u) << "the floor goes on by its own count";
  expect_nothing_wrong(*loop);
}

TEST(Km3BadInput, WrongBitsInExpressCodesAreTold) {
  const auto loop = brought_up();
  loop->express_every = loop->frame_words() * 5 / 8 + 1;
  for (std::uint64_t k = 0; k < 200; ++k) {
    loop->up_fibre().wrong_in = 1 + 1231 * k % (loop->frame_words() * kWordBits);
    loop->down_fibre().wrong_in = 1 + 1571 * k % (loop->frame_words() * kWordBits);
    frames(*loop, 2);
  }
  expect_nothing_wrong(*loop);
  EXPECT_EQ(loop->seen().express_up.different(), 1u);
  EXPECT_EQ(loop->seen().express_down.different(), 1u);
}

TEST(Km3BadInput, AFloorThatDisappearsReturnsAsItWas) {
  const auto loop = brought_up();
  loop->busy_up = true;
  for (int k = 0; k < 10; ++k) {
    loop->up_fibre().lit = false;
    frames(*loop, 3);
    loop->up_fibre().lit = true;
    frames(*loop, 12);
  }
  const Seen& seen = loop->seen();
  EXPECT_GE(seen.shore[Count::down], 10u);
  EXPECT_GE(seen.shore[Count::up], 11u);
  EXPECT_GT(seen.shore[Count::restarts], 0u) << "no comma for long: by a reset";
  EXPECT_TRUE(loop->timed());
  expect_nothing_wrong(*loop);
  const std::uint64_t heads = seen.heads;
  frames(*loop, 10);
  EXPECT_EQ(loop->seen().heads, heads + 10);
}

TEST(Km3BadInput, AShoreThatDisappearsTakesTheTimeAway) {
  const auto loop = brought_up();
  for (int k = 0; k < 10; ++k) {
    loop->down_fibre().lit = false;
    frames(*loop, 3);
    EXPECT_FALSE(loop->timed());
    const std::uint64_t heads = loop->seen().heads;
    frames(*loop, 1);
    EXPECT_EQ(loop->seen().heads, heads) << "a floor without time sends no frame";
    loop->down_fibre().lit = true;
    frames(*loop, 14);
    EXPECT_TRUE(loop->timed());
  }
  EXPECT_GE(loop->seen().floor[Count::down], 10u);
  expect_nothing_wrong(*loop);
}

TEST(Km3BadInput, ExchangedFloorsAreRefused) {
  const auto loop = brought_up();
  loop->set_floor(2);
  frames(*loop, 30);
  const Seen& seen = loop->seen();
  EXPECT_GE(seen.floor[Count::drop_floor], 20u);
  EXPECT_GT(seen.shore[Count::drop_floor], 0u);
  EXPECT_EQ(seen.error_silent, 1u) << "it has no time that is for it";
  EXPECT_FALSE(loop->timed());
  loop->set_floor(1);
  frames(*loop, 6);
  EXPECT_TRUE(loop->timed());
  expect_nothing_wrong(*loop);
}

TEST(Km3BadInput, AGpsThatJumpsIsTold) {
  const auto loop = brought_up();
  frames(*loop, 5);
  loop->run(123);
  loop->set_gps(5000);
  frames(*loop, 10);
  const Seen& seen = loop->seen();
  EXPECT_EQ(seen.error_gps, 1u);
  EXPECT_EQ(seen.error_jump, 1u);
  EXPECT_EQ(seen.floor[Count::error_time], 1u);
  EXPECT_TRUE(loop->timed());
  EXPECT_EQ(seen.wrong_times, 0u);
  EXPECT_EQ(seen.error_trip, 0u);
  EXPECT_EQ(seen.down.different(), 1u);
  EXPECT_EQ(seen.round_trip.different(), 1u);
}

}  // namespace
}  // namespace nanet::gateware::km3::test
