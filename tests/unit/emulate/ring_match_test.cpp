// SPDX-License-Identifier: Apache-2.0
#include "emulate/ring_match.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace nanet::emulate {
namespace {

rich::Ring ring(float x_mm, float y_mm, float radius_mm) { return {x_mm, y_mm, radius_mm, 0, 0, 12, rich::RingStatus::ring}; }

McTruth truth_of(std::initializer_list<rich::Ring> rings) {
  McTruth truth;
  for (const rich::Ring& one : rings) {
    truth.rings[truth.ring_count++] = {.x_mm = one.x_mm, .y_mm = one.y_mm, .radius_mm = one.radius_mm};
  }
  return truth;
}

rich::EventRings found_of(std::initializer_list<rich::Ring> rings) {
  rich::EventRings found;
  for (const rich::Ring& one : rings) found.rings[found.count++] = one;
  return found;
}

TEST(RingMatch, LimitsOfTheDefinition) {
  const McTruth truth = truth_of({ring(10, 20, 150)});
  EXPECT_EQ(match_rings(truth, found_of({ring(10, 20, 150)})).found_of[0], 0);
  EXPECT_EQ(match_rings(truth, found_of({ring(29.9F, 20, 150)})).found_of[0], 0);
  EXPECT_EQ(match_rings(truth, found_of({ring(10, 20, 164.9F)})).found_of[0], 0);
  for (const rich::Ring& far : {ring(30.1F, 20, 150), ring(25, 35, 150), ring(10, 20, 165.1F), ring(10, 20, 134.9F)}) {
    const RingMatch match = match_rings(truth, found_of({far}));
    EXPECT_EQ(match.found_of[0], kUnmatched);
    EXPECT_EQ(match.fakes, 1);
    EXPECT_EQ(match.clones, 0);
  }
  EXPECT_EQ(match_rings(truth, {}).fakes, 0);
}

TEST(RingMatch, NearestFirstAndEachOnce) {
  const McTruth truth = truth_of({ring(0, 0, 150), ring(10, 0, 150)});
  const RingMatch match = match_rings(truth, found_of({ring(9, 0, 150), ring(-5, 0, 150), ring(3, 3, 150), ring(0, 0, 100)}));
  EXPECT_EQ(match.found_of[1], 0);
  EXPECT_EQ(match.found_of[0], 2);
  EXPECT_EQ(match.clones, 1);
  EXPECT_EQ(match.fakes, 1);
}

TEST(RingMatch, DarkParticlesAreNotLookedFor) {
  const RingMatch match = match_rings(truth_of({ring(0, 0, 0)}), found_of({ring(0, 0, 5)}));
  EXPECT_EQ(match.found_of[0], kUnmatched);
  EXPECT_EQ(match.fakes, 1);
}

MonteCarloConfig flat_config(double smear_mm) {
  MonteCarloConfig config;
  config.flat_radius = true;
  config.mean_hits = 12;
  config.smear_mm = smear_mm;
  config.ring_count_shares = {0, 1, 1, 1, 1};
  config.hits_max = 128;
  config.noise_hits = 1.2;
  return config;
}

// The oracle's radius spreads as the bound says (least squares on distances reaches it nearly, on hexagons a little less than it).
TEST(RingMatch, OracleReachesTheBound) {
  MonteCarlo monte_carlo(flat_config(2.5));
  double square = 0, bound = 0, residual = 0, residuals = 0;
  int rings = 0, lost = 0;
  for (int k = 0; k < 20000; ++k) {
    const McEvent event = monte_carlo.next();
    const rich::EventRings found = oracle_rings(event);
    const RingMatch match = match_rings(event.truth, found);
    for (std::uint32_t r = 0; r < event.truth.ring_count; ++r) {
      ++rings;
      if (match.found_of[r] == kUnmatched) {
        ++lost;
        continue;
      }
      const double error = found.rings[match.found_of[r]].radius_mm - event.truth.rings[r].radius_mm;
      const double b = radius_bound(event, r);
      square += error * error;
      bound += b * b;
      std::array<float, kMaxEventHits> distances_mm;
      const std::uint32_t n = hit_residuals(event, r, distances_mm);
      EXPECT_EQ(n, event.truth.rings[r].hits);
      for (std::uint32_t h = 0; h < n; ++h) residual += double{distances_mm[h]} * double{distances_mm[h]};
      residuals += n;
    }
  }
  EXPECT_LT(lost, rings / 200);
  EXPECT_NEAR(std::sqrt(residual / residuals), 5.4, 0.1);
  EXPECT_NEAR(std::sqrt(square / bound / (residual / residuals)), 0.96, 0.06);
}

TEST(RingMatch, BoundOfFourHitsRoundTheCircle) {
  // Directions 0, 90, 180, 270 degrees: J^T J = diag(2, 2, 4), so the bound of the radius is 1 / 2.
  McEvent event;
  event.truth = truth_of({ring(0, 0, 90)});
  event.hit_count = 0;
  for (const auto& [i, j] : {std::pair{11, 0}, {-11, 0}, {0, 11}, {0, -11}}) {
    const std::uint16_t channel = rich::channel_at(i, j, 0);
    ASSERT_NE(channel, rich::kNoChannel);
    event.hits[event.hit_count] = channel;
    event.owners[event.hit_count++] = 1;
  }
  EXPECT_NEAR(radius_bound(event, 0), 0.5, 1e-12);
  event.hit_count = 2;
  EXPECT_EQ(radius_bound(event, 0), 0.0);
}

}  // namespace
}  // namespace nanet::emulate
