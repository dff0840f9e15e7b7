// SPDX-License-Identifier: Apache-2.0
// TRIPLS, a single-ring finder: the mean of the circles through many hit triplets, without those that lie apart from the others.
//
// Only the name is public; this is our reading. With the hits in order of channel, triplet (a, p, q) takes hits a, a + p and a + q (cyclic). A triplet
// gives a circle if its hits are apart and the circle could be a ring. Many circles of a ring are alike and those with noise scatter: so the circle with most
// others like it is taken, its like are averaged, those like the mean are averaged again, and the hits near are fitted.
// The number of triplets is bounded: at most 32 first hits and 12 pairs of steps.
//
// Circles are kept in integers of 1/8 mm: means do not depend on the order of adding. Of equal circles the first wins.
// Thread rules: pure functions, no allocation, no exception.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "nanet/host_device.hpp"
#include "nanet/rich/ring.hpp"
#include "nanet/rich/tripls_cuts.hpp"
#include "rich/center_scan.hpp"
#include "rich/circle_refit.hpp"
#include "rich/hit_plane.hpp"

namespace nanet::rich {

NANET_HD inline EventRings find_tripls(event::Event event, const PmPoint* points, const TriplsCuts& cuts);

// rings[k] becomes what is found in events[k], the same bits. `rings` must be at least as long as `events`.
void find_tripls(std::span<const event::Event> events, std::span<EventRings> rings, const TriplsCuts& cuts);

// ---------------------------------------------------------------------------------------------------------------------------------

inline constexpr std::uint32_t kMaxFirstHits = 32;
inline constexpr std::uint32_t kMaxStepPairs = 12;
inline constexpr std::uint32_t kMaxTriplets = kMaxFirstHits * kMaxStepPairs;
inline constexpr float kCircleUnitsPerMm = 8.0F;
inline constexpr float kMaxCircleMm = 1000.0F;

// Steps of a pair, in 1/256 of the number of hits.
NANET_HD inline std::uint32_t step_share(std::uint32_t pair, std::uint32_t which) {
  constexpr std::uint8_t kShares[kMaxStepPairs][2] = {{85, 170}, {51, 154}, {102, 179}, {64, 128}, {37, 110}, {120, 200},
                                                      {70, 150}, {43, 86},  {95, 140},  {30, 180}, {60, 100}, {110, 225}};
  return kShares[pair][which];
}

struct Steps {
  std::uint32_t first;   // 1 .. hits - 2
  std::uint32_t second;  // first + 1 .. hits - 1
};
NANET_HD inline Steps steps_of(std::uint32_t pair, std::uint32_t hits) {
  const std::uint32_t p = (step_share(pair, 0) * hits + 128u) >> 8;
  const std::uint32_t first = p < 1u ? 1u : (p > hits - 2u ? hits - 2u : p);
  const std::uint32_t q = (step_share(pair, 1) * hits + 128u) >> 8;
  const std::uint32_t second = q <= first ? first + 1u : (q > hits - 1u ? hits - 1u : q);
  return {first, second};
}

struct CircleList {
  alignas(64) std::int16_t x[kMaxTriplets + 64];
  alignas(64) std::int16_t y[kMaxTriplets + 64];
  alignas(64) std::int16_t radius[kMaxTriplets + 64];
  std::uint32_t count = 0;
};

// Limits of a triplet, computed once.
struct TripletLimits {
  float distance2;
  float center;
  float radius_min;
  float radius_max;
};
NANET_HD inline float limited_mm(float value, float limit) { return value < limit ? value : limit; }
NANET_HD inline TripletLimits triplet_limits(const TriplsCuts& cuts) {
  return {cuts.pair_distance_min_mm * cuts.pair_distance_min_mm, limited_mm(cuts.center_range_mm, kMaxCircleMm), cuts.radius_min_mm,
          limited_mm(cuts.radius_max_mm, kMaxCircleMm)};
}

// Nearest integer of 1/8 mm, halves up (values are within +-1000 mm).
NANET_HD inline std::int16_t circle_units(float value_mm) {
  return static_cast<std::int16_t>(static_cast<std::int32_t>(value_mm * kCircleUnitsPerMm + 16384.5F) - 16384);
}

NANET_HD inline void take_triplet(const HitPlane& plane, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                  const TripletLimits& limits, CircleList& circles) {
  const float bx = plane.x_mm[b] - plane.x_mm[a];
  const float by = plane.y_mm[b] - plane.y_mm[a];
  const float cx = plane.x_mm[c] - plane.x_mm[a];
  const float cy = plane.y_mm[c] - plane.y_mm[a];
  const float b2 = bx * bx + by * by;
  const float c2 = cx * cx + cy * cy;
  const float ex = cx - bx;
  const float ey = cy - by;
  const float e2 = ex * ex + ey * ey;
  const float det = 2.0F * (bx * cy - by * cx);
  if (!(b2 >= limits.distance2 && c2 >= limits.distance2 && e2 >= limits.distance2) || det == 0.0F) return;
  const float inverse = 1.0F / det;
  const float ux = (cy * b2 - by * c2) * inverse;
  const float uy = (bx * c2 - cx * b2) * inverse;
  const float radius = std::sqrt(ux * ux + uy * uy);
  const float x = plane.x_mm[a] + ux;
  const float y = plane.y_mm[a] + uy;
  if (!(radius >= limits.radius_min && radius <= limits.radius_max && std::abs(x) <= limits.center && std::abs(y) <= limits.center))
    return;
  circles.x[circles.count] = circle_units(x);
  circles.y[circles.count] = circle_units(y);
  circles.radius[circles.count] = circle_units(radius);
  ++circles.count;
}

NANET_HD inline void take_triplets(const HitPlane& plane, const TriplsCuts& cuts, CircleList& circles) {
  const TripletLimits limits = triplet_limits(cuts);
  const std::uint32_t hits = plane.count;
  const std::uint32_t firsts = hits < kMaxFirstHits ? hits : kMaxFirstHits;
  const std::uint32_t pairs = cuts.step_pairs < kMaxStepPairs ? cuts.step_pairs : kMaxStepPairs;
  for (std::uint32_t pair = 0; pair < pairs; ++pair) {
    const Steps steps = steps_of(pair, hits);
    for (std::uint32_t a = 0; a < firsts; ++a) {
      const std::uint32_t b = a + steps.first;
      const std::uint32_t c = a + steps.second;
      take_triplet(plane, a, b < hits ? b : b - hits, c < hits ? c : c - hits, limits, circles);
    }
  }
}

// Circles like one.
struct Likeness {
  std::int32_t center;
  std::int32_t radius;
};
NANET_HD inline Likeness likeness(const TriplsCuts& cuts) {
  const auto units = [](float mm) {
    return mm > 0.0F ? static_cast<std::int32_t>(limited_mm(mm, kMaxCircleMm) * kCircleUnitsPerMm) : 0;
  };
  return {units(cuts.like_center_mm), units(cuts.like_radius_mm)};
}

struct CircleSums {
  std::int32_t count = 0;
  std::int32_t x = 0;
  std::int32_t y = 0;
  std::int32_t radius = 0;
};

NANET_HD inline CircleSums sum_like(const CircleList& circles, const Likeness& like, std::int32_t x, std::int32_t y,
                                    std::int32_t radius) {
  CircleSums sums;
  for (std::uint32_t k = 0; k < circles.count; ++k) {
    const std::int32_t dx = circles.x[k] - x;
    const std::int32_t dy = circles.y[k] - y;
    const std::int32_t dr = circles.radius[k] - radius;
    if (dx > like.center || -dx > like.center || dy > like.center || -dy > like.center || dr > like.radius || -dr > like.radius)
      continue;
    ++sums.count;
    sums.x += circles.x[k];
    sums.y += circles.y[k];
    sums.radius += circles.radius[k];
  }
  return sums;
}

// Integer mean, rounded towards 0.
NANET_HD inline CircleSums mean_of(const CircleSums& sums) {
  return {sums.count, sums.x / sums.count, sums.y / sums.count, sums.radius / sums.count};
}

NANET_HD inline Circle circle_of(const CircleSums& mean) {
  return {static_cast<float>(mean.x) * (1.0F / kCircleUnitsPerMm), static_cast<float>(mean.y) * (1.0F / kCircleUnitsPerMm),
          static_cast<float>(mean.radius) * (1.0F / kCircleUnitsPerMm)};
}

// Mean of the largest family of circles; count 0: there is none.
NANET_HD inline CircleSums mean_circle(const CircleList& circles, const Likeness& like) {
  std::uint32_t best = 0;
  std::int32_t best_count = 0;
  for (std::uint32_t k = 0; k < circles.count; ++k) {
    const std::int32_t count = sum_like(circles, like, circles.x[k], circles.y[k], circles.radius[k]).count;
    if (count > best_count) {
      best_count = count;
      best = k;
    }
  }
  if (best_count == 0) return {};
  const CircleSums mean = mean_of(sum_like(circles, like, circles.x[best], circles.y[best], circles.radius[best]));
  const CircleSums again = sum_like(circles, like, mean.x, mean.y, mean.radius);
  return again.count > 0 ? mean_of(again) : mean;
}

NANET_HD inline EventRings find_tripls(event::Event event, const PmPoint* points, const TriplsCuts& cuts) {
  HitPlane plane;
  lay_out_hits(event, points, plane);
  EventRings found = no_rings(plane);
  if (plane.count < 4) return found;
  CircleList circles;
  take_triplets(plane, cuts, circles);
  const CircleSums mean = mean_circle(circles, likeness(cuts));
  if (mean.count == 0) return found;
  Circle circle = circle_of(mean);
  if (!refit_circle(plane, points, refit_cuts(cuts), circle)) return found;
  const Ring ring = fit_near(plane, points, cuts.window_mm, circle);
  if (!is_within(ring, ring_limits(cuts))) return found;
  found.rings[0] = ring;
  found.count = 1;
  return found;
}

}  // namespace nanet::rich
