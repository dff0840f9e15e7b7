// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/ranges.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace nanet::flow {
namespace {

std::vector<std::array<std::uint32_t, 2>> list(const Ranges& ranges) {
  std::vector<std::array<std::uint32_t, 2>> all;
  for (const UnitRange& range : ranges.all()) all.push_back({range.begin, range.end});
  return all;
}

class RangesTest : public ::testing::Test {
 protected:
  std::array<UnitRange, 4> memory{};
  Ranges ranges{memory};
};

TEST_F(RangesTest, InOrderIsOneRange) {
  for (std::uint32_t k = 0; k < 100; ++k) EXPECT_EQ(ranges.add(10 * k, 10 * k + 10), Fit::added);
  EXPECT_EQ(list(ranges), (std::vector<std::array<std::uint32_t, 2>>{{0, 1000}}));
  EXPECT_TRUE(ranges.is_whole(1000));
  EXPECT_FALSE(ranges.is_whole(1001));
  EXPECT_FALSE(ranges.is_whole(999));
}

TEST_F(RangesTest, BackwardsIsOneRange) {
  for (std::uint32_t k = 100; k-- > 0;) EXPECT_EQ(ranges.add(10 * k, 10 * k + 10), Fit::added);
  EXPECT_TRUE(ranges.is_whole(1000));
}

TEST_F(RangesTest, WhatFillsAHoleJoinsItsNeighbours) {
  EXPECT_EQ(ranges.add(0, 10), Fit::added);
  EXPECT_EQ(ranges.add(20, 30), Fit::added);
  EXPECT_EQ(ranges.add(40, 50), Fit::added);
  EXPECT_EQ(ranges.add(10, 20), Fit::added);
  EXPECT_EQ(list(ranges), (std::vector<std::array<std::uint32_t, 2>>{{0, 30}, {40, 50}}));
}

TEST_F(RangesTest, TellsDuplicatesFromOverlaps) {
  ranges.add(10, 20);
  ranges.add(30, 40);
  EXPECT_EQ(ranges.add(10, 20), Fit::duplicate);
  EXPECT_EQ(ranges.add(12, 15), Fit::duplicate);
  EXPECT_EQ(ranges.add(9, 20), Fit::overlap);
  EXPECT_EQ(ranges.add(10, 21), Fit::overlap);
  EXPECT_EQ(ranges.add(19, 25), Fit::overlap);
  EXPECT_EQ(ranges.add(5, 11), Fit::overlap);
  EXPECT_EQ(ranges.add(0, 100), Fit::overlap);
  EXPECT_EQ(ranges.add(20, 31), Fit::overlap) << "it touches one and overlaps the next";
  EXPECT_EQ(list(ranges), (std::vector<std::array<std::uint32_t, 2>>{{10, 20}, {30, 40}}));
}

TEST_F(RangesTest, WithoutRoomOnlyWhatTouchesIsAdded) {
  for (std::uint32_t k = 0; k < 4; ++k) ranges.add(20 * k, 20 * k + 10);
  EXPECT_EQ(ranges.add(100, 110), Fit::no_room);
  EXPECT_EQ(ranges.add(12, 15), Fit::no_room);
  EXPECT_EQ(ranges.add(70, 75), Fit::added);
  EXPECT_EQ(ranges.add(10, 20), Fit::added);
  EXPECT_EQ(ranges.add(100, 110), Fit::added);
}

TEST_F(RangesTest, GoesToTheEndOf32Bits) {
  EXPECT_EQ(ranges.add(UINT32_MAX - 1, UINT32_MAX), Fit::added);
  EXPECT_EQ(ranges.add(0, 1), Fit::added);
  EXPECT_EQ(ranges.add(1, UINT32_MAX - 1), Fit::added);
  EXPECT_TRUE(ranges.is_whole(UINT32_MAX));
}

// Against a set of bytes.
TEST(Ranges, AreWhatASetOfBytesIs) {
  std::mt19937 random(7);
  for (int turn = 0; turn < 400; ++turn) {
    std::vector<UnitRange> memory(turn % 10 == 0 ? 6 : 64);
    Ranges ranges(memory);
    std::vector<bool> bytes(97);
    for (int step = 0; step < 80; ++step) {
      const auto begin = static_cast<std::uint32_t>(random() % 96);
      const auto end = std::min<std::uint32_t>(97, begin + 1 + static_cast<std::uint32_t>(random() % 6));
      std::uint32_t there = 0;
      for (std::uint32_t b = begin; b < end; ++b) there += bytes[b] ? 1 : 0;
      const bool touches = (begin > 0 && bytes[begin - 1]) || (end < 97 && bytes[end]);
      const bool has_room = ranges.all().size() < memory.size();
      const Fit expected = there == end - begin  ? Fit::duplicate
                           : there > 0           ? Fit::overlap
                           : touches || has_room ? Fit::added
                                                 : Fit::no_room;
      ASSERT_EQ(ranges.add(begin, end), expected);
      if (expected == Fit::added) std::fill(bytes.begin() + begin, bytes.begin() + end, true);
      std::vector<bool> seen(97);
      for (const UnitRange& range : ranges.all()) std::fill(seen.begin() + range.begin, seen.begin() + range.end, true);
      ASSERT_EQ(seen, bytes);
      for (std::size_t k = 1; k < ranges.all().size(); ++k) ASSERT_LT(ranges.all()[k - 1].end, ranges.all()[k].begin);
    }
    EXPECT_EQ(ranges.is_whole(97), std::find(bytes.begin(), bytes.end(), false) == bytes.end());
  }
}

}  // namespace
}  // namespace nanet::flow
