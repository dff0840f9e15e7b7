// SPDX-License-Identifier: Apache-2.0
// Records of hits byte by byte, good and bad.
#include "nanet/km3/hit.hpp"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <vector>

namespace nanet::km3 {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

constexpr std::array<double, 6> kShifts = {0, 0.5, 1, 1.5, 2, 2.5};
constexpr FloorCalibration kFloor{12, 6, kShifts.data()};

TEST(Hits, ShortRecords) {
  const auto unit = bytes_of({5, 0x01, 0x02, 0x03, 0x04, 27,   //
                              0, 0xFF, 0xFF, 0xFF, 0xFE, 255,  //
                              6, 0,    0,    0,    0,    1,    // no such PM
                              1, 0,    0,    0,    9,    3,    //
                              2, 0,    0});
  std::array<Hit, 8> hits;
  DecodeCounts counts;
  ASSERT_EQ(decode_hits(unit, kFloor, hits, counts), 3u);
  EXPECT_EQ(hits[0].pm, 17u);
  EXPECT_EQ(hits[0].time_ns, 0x01020304 + 2.5);
  EXPECT_FLOAT_EQ(hits[0].charge_pe, 2.7F);
  EXPECT_EQ(hits[1].time_ns, -2.0);
  EXPECT_FLOAT_EQ(hits[1].charge_pe, 25.5F);
  EXPECT_EQ(hits[2].pm, 13u);
  EXPECT_EQ(hits[2].time_ns, 9.5);
  EXPECT_EQ(counts.hits, 3u);
  EXPECT_EQ(counts.records_bad_pm, 1u);
  EXPECT_EQ(counts.records_cut, 1u);
  EXPECT_EQ(counts.records_no_room, 0u);
}

TEST(Hits, NoRoomIsCounted) {
  const auto unit = bytes_of({0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 3, 1});
  std::array<Hit, 1> hits;
  DecodeCounts counts;
  EXPECT_EQ(decode_hits(unit, kFloor, hits, counts), 1u);
  EXPECT_EQ(counts.records_no_room, 2u);
}

TEST(Hits, SampledRecords) {
  const auto unit = bytes_of({1, 0, 0, 0, 7, 12, 3, 0, 90, 91, 92,  //
                              2, 0, 0, 0, 8, 12, 0, 1,              // its last byte has to be 0
                              9, 0, 0, 0, 8, 12, 1, 0, 50,          // no such PM
                              3, 0, 0, 0, 8, 12, 0, 0,              //
                              4, 0, 0, 0, 8, 12, 2, 0, 1});         // a sample is missing
  std::array<Hit, 8> hits;
  DecodeCounts counts;
  ASSERT_EQ(decode_sampled_hits(unit, kFloor, hits, counts), 2u);
  EXPECT_EQ(hits[0].pm, 13u);
  EXPECT_EQ(hits[1].pm, 15u);
  EXPECT_EQ(counts.samples, 3u);
  EXPECT_EQ(counts.records_bad_pad, 1u);
  EXPECT_EQ(counts.records_bad_pm, 1u);
  EXPECT_EQ(counts.records_cut, 1u);
}

TEST(Hits, EveryCutOfAUnitIsRead) {
  const auto unit = bytes_of({1, 0, 0, 0, 7, 12, 3, 0, 90, 91, 92, 3, 0, 0, 0, 8, 12, 0, 0});
  for (std::size_t size = 0; size <= unit.size(); ++size) {
    const std::vector<std::byte> cut(unit.begin(),
                                     unit.begin() + static_cast<std::ptrdiff_t>(size));  // its own memory: ASan sees its end
    std::array<Hit, 8> hits;
    DecodeCounts counts;
    EXPECT_EQ(decode_sampled_hits(cut, kFloor, hits, counts), size < 11 ? 0u : size < 19 ? 1u : 2u);
    EXPECT_EQ(counts.records_cut, size == 0 || size == 11 || size == 19 ? 0u : 1u);
    counts = {};
    EXPECT_EQ(decode_hits(cut, kFloor, hits, counts) + counts.records_bad_pm, size / 6);
  }
}

TEST(Hits, ChargeOfAStringIsTimeOverThreshold) {
  const auto unit = bytes_of({0, 0, 0, 0, 1, 27});
  std::array<Hit, 1> hits;
  DecodeCounts counts;
  ASSERT_EQ(decode_clb_hits(unit, kFloor, hits, counts), 1u);
  EXPECT_NEAR(hits[0].charge_pe, 1.0, 0.01);
}

}  // namespace
}  // namespace nanet::km3
