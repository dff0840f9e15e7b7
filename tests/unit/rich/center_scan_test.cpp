// SPDX-License-Identifier: Apache-2.0
#include "rich/center_scan.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "nanet/rich/pm_map.hpp"
#include "rich/circle_refit.hpp"
#include "rich/hit_plane.hpp"

namespace nanet::rich {
namespace {

TEST(CenterScan, BinsAreExact) {
  for (std::int32_t z = 0; z < 700; ++z) {
    // 9 sqrt(z) >= 60 + 2.5 b if and only if 324 z >= (120 + 5 b)^2.
    std::int32_t bin = -1;
    while (324 * z >= (120 + 5 * (bin + 1)) * (120 + 5 * (bin + 1))) ++bin;
    const bool inside = bin >= 0 && bin < static_cast<std::int32_t>(kRadiusBins);
    EXPECT_EQ(radius_bin(z), inside ? static_cast<std::uint32_t>(bin) : kRadiusBins) << z;
  }
}

TEST(CenterScan, RowsCoverTheRange) {
  EXPECT_EQ(center_blocks(0, 140.0F), 2);
  EXPECT_EQ(center_blocks(8, 140.0F), 1);
  EXPECT_EQ(center_blocks(-8, 140.0F), 1);
  EXPECT_EQ(center_blocks(9, 140.0F), 0);
  EXPECT_EQ(center_blocks(0, 1.0e9F), kMaxCenterBlocks);
  EXPECT_EQ(center_blocks(0, NAN), 0);
}

// Six PMs at 8 pitches around the PM at (1, 0): all at 144 mm from a candidate centre.
TEST(CenterScan, PeakOfAnExactCircle) {
  LatticeHits hits;
  for (const auto& [di, dj] : {std::pair{16, 0}, {-16, 0}, {8, 8}, {8, -8}, {-8, 8}, {-8, -8}}) {
    hits.i[hits.count] = static_cast<std::int8_t>(1 + di);
    hits.j[hits.count++] = static_cast<std::int8_t>(dj);
  }
  const CenterPeak peak = scan_centers(hits, 140.0F);
  EXPECT_EQ(peak.score, 12u);
  EXPECT_EQ(peak.i, 1);
  EXPECT_EQ(peak.j, 0);
  EXPECT_EQ(peak.bin, 31u);  // first of the five bins whose neighbourhood holds 144 mm (bin 33)
}

TEST(CircleRefit, WeightsFallWithTheMiss) {
  const float inverse = 1.0F / (20.0F * 20.0F);
  EXPECT_EQ(biweight(100.0F, 0.0F, 100.0F, inverse), 8);
  EXPECT_EQ(biweight(110.0F, 0.0F, 100.0F, inverse), 5);  // 8 (3/4)^2 = 4.5
  EXPECT_EQ(biweight(90.0F, 0.0F, 100.0F, inverse), 5);
  EXPECT_EQ(biweight(120.0F, 0.0F, 100.0F, inverse), 0);
  EXPECT_EQ(biweight(500.0F, 0.0F, 100.0F, inverse), 0);
}

// Equal weights give the circle of the plain fit.
TEST(CircleRefit, EqualWeightsAreThePlainFit) {
  RingSums sums;
  WeightedSums weighted;
  for (const int channel : {3, 100, 250, 380, 700, 777}) {
    const PmPoint& point = kPmPoints[static_cast<std::size_t>(channel)];
    add(sums, make_ring_sums_row(point.i, point.j));
    add_weighted(weighted, 8, make_ring_sums_row(point.i, point.j));
  }
  const Ring ring = solve_ring(sums);
  Circle circle;
  ASSERT_TRUE(solve_circle(weighted, circle));
  EXPECT_NEAR(circle.x_mm, ring.x_mm, 1e-3);
  EXPECT_NEAR(circle.y_mm, ring.y_mm, 1e-3);
  EXPECT_NEAR(circle.radius_mm, ring.radius_mm, 1e-3);
}

}  // namespace
}  // namespace nanet::rich
