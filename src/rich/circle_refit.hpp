// SPDX-License-Identifier: Apache-2.0
// From a rough circle to a fitted ring: a few weighted MATH fits of the hits near it, then a plain one of those within a window.
//
// Each pass weights a hit by Tukey's biweight of its distance from the circle, (1 - (miss / scale)^2)^2, and solves the circle in closed form; the scale
// shrinks from pass to pass, so that a start some 20 mm off still gathers its hits, and hits of noise lose their say. Weights are rounded to 0..8, so
// all sums are integers and exact; what follows is one fixed sequence of IEEE operations: same bits on every machine.
// Host and device.
#pragma once

#include <cmath>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/hit_plane.hpp"
#include "rich/math_fit.hpp"
#include "rich/normal_numbers.hpp"
#include "rich/ring_sums.hpp"

namespace nanet::rich {

struct Circle {
  float x_mm = 0;
  float y_mm = 0;
  float radius_mm = 0;
};

struct RefitCuts {
  float start_mm;  // scale of the first pass
  float end_mm;    // and of the last
  float window_mm;
  std::uint32_t passes;
};
inline constexpr std::uint32_t kMaxRefitPasses = 16;
inline constexpr float kBiweightSteps = 8.0F;

// What a ring must be to be answered.
struct RingLimits {
  std::uint32_t min_hits;
  float radius_min_mm;
  float radius_max_mm;
  float rms_max_mm;  // corrected for the three fitted parameters
};

// Sums of weighted rows: at most 8 x those of ring_sums.hpp, so they fit an int32; the count in the first sum is given by `weight`.
struct WeightedSums {
  std::int32_t weight = 0;
  RingSums sums;
};

// Weight, 0 to 8, of a hit dx, dy from the centre.
NANET_HD inline std::int32_t biweight(float dx_mm, float dy_mm, float radius_mm, float inverse_scale2) {
  const float miss_mm = std::sqrt(dx_mm * dx_mm + dy_mm * dy_mm) - radius_mm;
  const float left = 1.0F - miss_mm * miss_mm * inverse_scale2;
  if (!(left > 0.0F)) return 0;
  return static_cast<std::int32_t>(left * left * kBiweightSteps + 0.5F);
}

// 1 / scale^2 of a pass.
NANET_HD inline float inverse_scale2(const RefitCuts& cuts, std::uint32_t pass) {
  const float share = cuts.passes > 1 ? static_cast<float>(pass) / static_cast<float>(cuts.passes - 1) : 1.0F;
  const float scale_mm = cuts.start_mm + (cuts.end_mm - cuts.start_mm) * share;
  return 1.0F / (scale_mm * scale_mm);
}

// The closed form of math_fit.hpp with weights. False: the hits say too little (fewer than three PMs, or nearly on a line).
NANET_HD inline bool solve_circle(const WeightedSums& s, Circle& circle) {
  const double n = s.weight;
  const double si = (s.sums.hits_and_i - s.weight) / 256;  // exact
  const double sj = s.sums.j;
  const double sii = s.sums.ii;
  const double sjj = s.sums.jj;
  const double sz = sii + 3.0 * sjj;
  const double a = n * sii - si * si;
  const double b = n * s.sums.ij - si * sj;
  const double c = n * sjj - sj * sj;
  const double p = n * s.sums.zi - sz * si;
  const double q = n * s.sums.zj - sz * sj;
  const double det = a * c - b * b;
  if (!(det > 1.0e-6 * (a * c))) return false;
  const double inverse_det = reciprocal(det);
  const double inverse_n = reciprocal(n);
  const double center_i = 0.5 * ((p * c - q * b) * inverse_det);
  const double center_j = (1.0 / 6.0) * ((a * q - b * p) * inverse_det);
  const double di = center_i - si * inverse_n;
  const double dj = center_j - sj * inverse_n;
  const double radius2 = (di * di + 3.0 * (dj * dj)) + (a + 3.0 * c) * (inverse_n * inverse_n);
  circle.x_mm = static_cast<float>(9.0 * center_i);
  circle.y_mm = static_cast<float>(15.588457268119894 * center_j);
  circle.radius_mm = static_cast<float>(9.0 * square_root(radius2));
  return true;
}

NANET_HD inline void add_weighted(WeightedSums& s, std::int32_t weight, const RingSums& row) {
  s.weight += weight;
  s.sums.hits_and_i += weight * row.hits_and_i;
  s.sums.j += weight * row.j;
  s.sums.ii += weight * row.ii;
  s.sums.ij += weight * row.ij;
  s.sums.jj += weight * row.jj;
  s.sums.zi += weight * row.zi;
  s.sums.zj += weight * row.zj;
  s.sums.zz += weight * row.zz;
}

// Moves the circle to its hits. False: it lost them.
NANET_HD inline bool refit_circle(const HitPlane& plane, const PmPoint* points, const RefitCuts& cuts, Circle& circle) {
  const std::uint32_t passes = cuts.passes < kMaxRefitPasses ? cuts.passes : kMaxRefitPasses;
  for (std::uint32_t pass = 0; pass < passes; ++pass) {
    const float inverse = inverse_scale2(cuts, pass);
    WeightedSums sums;
    for (std::uint32_t k = 0; k < plane.count; ++k) {
      const std::int32_t weight = biweight(plane.x_mm[k] - circle.x_mm, plane.y_mm[k] - circle.y_mm, circle.radius_mm, inverse);
      const PmPoint& point = points[plane.row[k]];
      if (weight != 0) add_weighted(sums, weight, make_ring_sums_row(point.i, point.j));
    }
    if (!solve_circle(sums, circle)) return false;
  }
  return true;
}

// The hit is within the window about the circle.
NANET_HD inline bool is_near(const Circle& circle, float window_mm, float x_mm, float y_mm) {
  const float dx_mm = x_mm - circle.x_mm;
  const float dy_mm = y_mm - circle.y_mm;
  const float miss_mm = std::sqrt(dx_mm * dx_mm + dy_mm * dy_mm) - circle.radius_mm;
  return miss_mm <= window_mm && -miss_mm <= window_mm;
}

// Fit of the hits within the window, and their mean time.
NANET_HD inline Ring fit_near(const HitPlane& plane, const PmPoint* points, float window_mm, const Circle& circle) {
  RingSums sums;
  std::int32_t time_codes = 0;
  for (std::uint32_t k = 0; k < plane.count; ++k) {
    if (!is_near(circle, window_mm, plane.x_mm[k], plane.y_mm[k])) continue;
    const PmPoint& point = points[plane.row[k]];
    add(sums, make_ring_sums_row(point.i, point.j));
    time_codes += plane.time_code[k];
  }
  Ring ring = solve_ring(sums);
  if (ring.hits > 0) ring.time_ns = static_cast<float>(time_codes) / static_cast<float>(ring.hits) * kHitTimeUnitNs;
  return ring;
}

NANET_HD inline bool is_within(const Ring& ring, const RingLimits& limits) {
  const float hits = ring.hits;
  return has_ring(ring.status) && ring.hits >= 4 && ring.hits >= limits.min_hits && ring.radius_mm >= limits.radius_min_mm &&
         ring.radius_mm <= limits.radius_max_mm &&
         ring.rms_mm * ring.rms_mm * hits <= limits.rms_max_mm * limits.rms_max_mm * (hits - 3.0F);
}

}  // namespace nanet::rich
