// SPDX-License-Identifier: Apache-2.0
// match3B and match1D against the published formulas, with roots, in long double.
#include <gtest/gtest.h>

#include <random>

#include "nanet/km3/match1d.hpp"
#include "nanet/km3/match3b.hpp"

namespace nanet::km3 {
namespace {

using Real = long double;
constexpr Real kC = 0.299792458L;
constexpr Real kIndex = 1.3800851282L;

// +1 accepted, -1 rejected, 0: within 1e-9 ns of a border.
int published_3b(Real d, Real dt, Real radius, Real extra) {
  const Real tangent = std::sqrt(kIndex * kIndex - 1);
  const Real rs = radius * tangent / kIndex;
  const Real d2 = radius / 2 * std::sqrt(tangent * tangent + 10 + 9 / (tangent * tangent));
  const Real dmax = d < radius ? d * kIndex : std::sqrt(d * d - rs * rs) + rs * tangent;
  Real dmin = 0;
  if (d > d2) {
    dmin = std::sqrt(d * d - radius * radius) - radius * tangent;
  } else if (d > 2 * radius) {
    dmin = std::sqrt(d * d - 4 * radius * radius);
  }
  const Real late = dt - (dmax / kC + extra);
  const Real early = dt - (dmin / kC - extra);
  if (std::abs(late) < 1e-9L || (std::abs(early) < 1e-9L && dmin > 0)) return 0;
  return late <= 0 && early >= 0 ? 1 : -1;
}

TEST(Match3B, ConstantsAreThePublishedOnes) {
  const Match3B match;
  EXPECT_NEAR(match.rs2(), 3847.2166, 1e-3);
  EXPECT_NEAR(match.rs_tangent(), 58.99429, 1e-5);
  EXPECT_NEAR(match.d2_squared(), 42228.133, 1e-2);
  EXPECT_NEAR(match.radius_tangent(), 85.60107, 1e-5);
}

TEST(Match3B, IsThePublishedCondition) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> place(-400.0, 400.0);
  std::uniform_real_distribution<double> time(0.0, 4000.0);
  for (const double radius : {90.0, 40.0, 250.0}) {
    for (const double extra : {0.0, 25.0}) {
      const Match3B match(radius, extra);
      int accepted = 0;
      int compared = 0;
      for (int k = 0; k < 60'000; ++k) {
        const double scale = k % 3 == 0 ? 1.0 : 0.2;
        const Point a{scale * place(random), scale * place(random), scale * place(random), time(random)};
        const Point b{scale * place(random), scale * place(random), scale * place(random),
                      a.time_ns + scale * (time(random) - 2000.0)};
        const Real d = std::sqrt(Real((a.x - b.x) * Real(a.x - b.x)) + Real(a.y - b.y) * Real(a.y - b.y) +
                                 Real(a.z - b.z) * Real(a.z - b.z));
        const int published = published_3b(d, std::abs(Real(a.time_ns) - Real(b.time_ns)), radius, extra);
        if (published == 0) continue;
        ++compared;
        accepted += published > 0 ? 1 : 0;
        ASSERT_EQ(match(a, b), published > 0) << static_cast<double>(d) << " m";
        ASSERT_EQ(match(b, a), published > 0);
      }
      EXPECT_GT(compared, 59'990);
      EXPECT_GT(accepted, 3'000);
      EXPECT_LT(accepted, 57'000);
    }
  }
}

TEST(Match3B, Borders) {
  const Match3B match;
  const Point origin;
  EXPECT_TRUE(match(origin, origin)) << "same place, same time";
  EXPECT_FALSE(match(origin, {0, 0, 0, 0.001})) << "one PM is lit once";
  EXPECT_TRUE(match(origin, {0, 0, 50, 230.1})) << "50 m n / c = 230.17 ns";
  EXPECT_FALSE(match(origin, {0, 0, 50, 230.3}));
  EXPECT_TRUE(match(origin, {0, 0, 170, 0})) << "below 2 R any time is late enough";
  EXPECT_FALSE(match(origin, {0, 0, 190, 0}));
  EXPECT_TRUE(Match3B(90, 10).accept(0, 10)) << "tmax at both sides";
  EXPECT_FALSE(Match3B(90, 10).accept(0, 10.001));
}

TEST(Match1D, IsThePublishedCondition) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> place(-80.0, 80.0);
  std::uniform_real_distribution<double> time(-300.0, 300.0);
  std::normal_distribution<double> gauss;
  const Real tangent = std::sqrt(kIndex * kIndex - 1);
  int accepted = 0;
  int compared = 0;
  for (int k = 0; k < 60'000; ++k) {
    const double radius = k % 2 == 0 ? 90 : 60;
    const double extra = k % 4 < 2 ? 0 : 15;
    Direction along{gauss(random), gauss(random), gauss(random)};
    const double norm = std::sqrt(along.x * along.x + along.y * along.y + along.z * along.z);
    along = {along.x / norm, along.y / norm, along.z / norm};
    const Point a{place(random), place(random), place(random), time(random)};
    const Point b{place(random), place(random), place(random), time(random)};
    const Real dx = Real(a.x) - b.x;
    const Real dy = Real(a.y) - b.y;
    const Real dz = Real(a.z) - b.z;
    const Real z = dx * along.x + dy * along.y + dz * along.z;
    const Real d = std::sqrt(dx * dx + dy * dy + dz * dz - z * z);
    const Real t = std::abs(Real(a.time_ns) - b.time_ns - z / kC);
    const Real most = (d <= radius / 2 ? d : radius - d) * tangent / kC + extra;
    if (std::abs(t - most) < 1e-7L || std::abs(d - radius) < 1e-7L || std::abs(d - radius / 2) < 1e-7L) continue;
    ++compared;
    const bool published = d <= radius && t <= most;
    accepted += published ? 1 : 0;
    ASSERT_EQ(Match1D(radius, extra)(a, b, along), published);
    ASSERT_EQ(Match1D(radius, extra)(b, a, along), published);
  }
  EXPECT_GT(compared, 59'990);
  EXPECT_GT(accepted, 3'000);
}

// Light of a muon reaches two PMs at the times that geometry says: both conditions must take it, for its own direction.
TEST(Match1D, TakesTheLightOfAMuon) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> place(-1.0, 1.0);
  const double tangent = std::sqrt(kRefractiveIndex * kRefractiveIndex - 1.0);
  const auto light = [&](double x, double y, double z) { return Point{x, y, z, (z + std::hypot(x, y) * tangent) / kLightSpeed}; };
  for (int k = 0; k < 10'000; ++k) {
    // On a road of 45 m about the track all distances across are at most 90 m.
    const Point a = light(31 * place(random), 31 * place(random), 130 * place(random));
    const Point b = light(31 * place(random), 31 * place(random), 130 * place(random));
    ASSERT_TRUE(Match3B(90, 1e-6)(a, b));
    ASSERT_TRUE(Match1D(180, 1e-6)(a, b, Direction{0, 0, 1}));
  }
}

TEST(Directions, CoverTheSphere) {
  const auto grid = direction_grid(10);
  EXPECT_GT(grid.size(), 390u);
  EXPECT_LT(grid.size(), 480u);
  std::mt19937_64 random(6);
  std::normal_distribution<double> gauss;
  for (int k = 0; k < 2'000; ++k) {
    const double x = gauss(random);
    const double y = gauss(random);
    const double z = gauss(random);
    double best = -1;
    for (const Direction& one : grid) best = std::max(best, (one.x * x + one.y * y + one.z * z) / std::sqrt(x * x + y * y + z * z));
    ASSERT_GT(best, std::cos(7.5 * 3.14159265358979 / 180)) << "half of the diagonal of a cell of 10 degrees";
  }
}

}  // namespace
}  // namespace nanet::km3
