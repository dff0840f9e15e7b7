// SPDX-License-Identifier: Apache-2.0
// The Almagest ring finder: several rings from Ptolemy's theorem, without any knowledge of tracks.
//
// Method (NA62's Almagest; docs/design/finder-almagest.md says what is published and what is ours), repeated on the hits that are left:
//   1  hits near in time
//   2  eight start directions: both ends of x, of y and of the axes turned by 45 degrees; the outermost hit at an end is A
//   3  triplets A, B, C whose circle is not too big; of all directions' triplets the one on whose circle most hits lie
//   4  where cuts ask for it: enough hits D with a small |AD BC + AB CD - AC BD| in one of the three pairings: 0 for four points on a circle
//   5  fit the hits near the triplet's circle, keep the nearest, fit again
//   6  cuts on the ring
//
// Terms
//   lattice    a PM sits at x = 9 i mm, y = 9 sqrt(3) j mm; squared distances are 81 (di^2 + 3 dj^2) mm^2, integers until the last step.
//   along      how far out a hit is in a direction, an integer of 13 bits. No two PMs have the same.
//   place      of a PM: its i and j in 13 bits.
//   start      one of 16 searches for a triplet: a direction, and on which side of A the hit B is sought.
//
// The bits do not depend on the order of hits or on the instruction set: triplets are compared in integers, scores and fits are sums of
// integers (scores in fixed point of 16 bits), and the floating point in between works on one hit or one triplet at a time.
// Thread rules: pure functions; no allocation, no exception.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "nanet/host_device.hpp"
#include "nanet/rich/almagest_cuts.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/hit_plane.hpp"
#include "rich/math_fit.hpp"
#include "rich/ring_sums.hpp"

namespace nanet::rich {

// Ptolemy's test on four points by their six distances: the smallest of |AD BC + AB CD - AC BD| over the three pairings. 0 if they lie on a
// circle or a line, whatever their order on it.
NANET_HD inline float ptolemy_mm2(float ab_mm, float ac_mm, float bc_mm, float ad_mm, float bd_mm, float cd_mm) {
  const float p = ad_mm * bc_mm;
  const float q = ab_mm * cd_mm;
  const float r = ac_mm * bd_mm;
  const float pq = std::abs((p + q) - r);
  const float pr = std::abs((p + r) - q);
  const float qr = std::abs((q + r) - p);
  const float least = pq < pr ? pq : pr;
  return least < qr ? least : qr;
}

// The rings of one event. `points`: kPmPoints, or its copy in the GPU's memory.
NANET_HD inline EventRings find_almagest(event::Event event, const PmPoint* points, const AlmagestCuts& cuts);

// rings[k] becomes the rings of events[k], the same bits as of one event. `rings` must be at least as long as `events`.
void find_almagest(std::span<const event::Event> events, std::span<EventRings> rings, const AlmagestCuts& cuts);

// Name of the instruction set that the batch uses on this machine.
const char* find_almagest_target();

// ---------------------------------------------------------------------------------------------------------------------------------

namespace almagest {

inline constexpr std::uint32_t kDirections = 8;
inline constexpr std::uint32_t kStarts = 16;     // start s: direction s % 8; B on one side of A (s < 8) or on the other
inline constexpr std::int32_t kNone = -0x8000;   // less than any hit's place along a direction
inline constexpr std::int32_t kScoreUnit = 254;  // of a hit on the circle
inline constexpr float kPitchMm = 9.0F;
inline constexpr float kRowPitchMm = 15.588457F;

// The cuts in units of the lattice, as both paths use them.
struct Limits {
  std::int32_t pair_z, far_pair_z;  // squared distances must be more
  float flat;                       // circumradius <= maximum: the three squared distances' product <= flat * (cross product)^2
  float score_scale;                // over the radius: makes 255 of score_width_mm
  std::int32_t score_min;           // in 1 / kScoreUnit
  std::int32_t score_enough;        // a hit, in 1 / kScoreUnit
  float ptolemy_max_mm2;
  float take_in, keep;
  float radius_min_mm, radius_max_mm, rms_max_mm;
  std::uint32_t ptolemy_hits_min, hits_min;
  std::int32_t window_codes;  // of time; 32: no cut
};

NANET_HD constexpr std::int32_t squared_limit(float distance_mm) {
  const float z = distance_mm * distance_mm / 81.0F;
  return z < 32767.0F ? static_cast<std::int32_t>(z) : 32767;
}

NANET_HD constexpr Limits limits_of(const AlmagestCuts& cuts) {
  const float width_mm = cuts.score_width_mm > 0.1F ? cuts.score_width_mm : 0.1F;
  const float score = cuts.score_min > 0.0F ? (cuts.score_min < 1000.0F ? cuts.score_min : 1000.0F) : 0.0F;
  const float enough = cuts.score_enough > 0.0F ? (cuts.score_enough < 2.0F ? cuts.score_enough : 2.0F) : 0.0F;
  const float codes = cuts.time_window_ns > 0.0F ? cuts.time_window_ns / kHitTimeUnitNs : 0.0F;
  return Limits{.pair_z = squared_limit(cuts.pair_distance_min_mm),
                .far_pair_z = squared_limit(cuts.far_pair_distance_min_mm),
                .flat = cuts.circumradius_max_mm * cuts.circumradius_max_mm * (12.0F / 81.0F),
                .score_scale = 127.5F / (width_mm / kPitchMm),
                .score_min = static_cast<std::int32_t>(score * static_cast<float>(kScoreUnit)),
                .score_enough = static_cast<std::int32_t>(enough * static_cast<float>(kScoreUnit)),
                .ptolemy_max_mm2 = cuts.ptolemy_max_mm2,
                .take_in = cuts.take_in_mm / kPitchMm,
                .keep = cuts.keep_mm / kPitchMm,
                .radius_min_mm = cuts.radius_min_mm,
                .radius_max_mm = cuts.radius_max_mm,
                .rms_max_mm = cuts.rms_max_mm,
                .ptolemy_hits_min = cuts.ptolemy_hits_min,
                .hits_min = cuts.hits_min < 4 ? 4 : cuts.hits_min,
                .window_codes = codes < 31.0F ? static_cast<std::int32_t>(codes) + 1 : 32};
}

// How far out a PM is in a direction: a scalar product whose factors are large enough that no two PMs come out the same. Directions 2 k and
// 2 k + 1 are opposite; direction ^ 2 is at right angles.
NANET_HD constexpr std::int32_t along(std::uint32_t direction, std::int32_t i, std::int32_t j) {
  const std::uint32_t axis = direction >> 1;
  const std::int32_t i_factor = axis == 0 ? 64 : axis == 1 ? 1 : 56;
  const std::int32_t j_factor = axis == 0 ? 1 : axis == 1 ? 128 : axis == 2 ? 97 : -97;  // 97 / 56 = sqrt(3) to 5e-5
  const std::int32_t sum = i_factor * i + j_factor * j;
  return (direction & 1u) != 0 ? -sum : sum;
}

// A PM's place in 13 bits; never 0.
NANET_HD constexpr std::int32_t place_of(std::int32_t i, std::int32_t j) { return (i + 64) << 6 | (j + 32); }

// A hit on the lattice; z = i^2 + 3 j^2.
struct Point {
  std::int32_t i, j, z;
};
NANET_HD constexpr Point point_at(std::int32_t i, std::int32_t j) { return {i, j, i * i + 3 * j * j}; }
NANET_HD constexpr Point point_of(std::int32_t place) { return point_at((place >> 6) - 64, (place & 63) - 32); }
NANET_HD constexpr std::int32_t squared_distance(const Point& a, const Point& b) {
  return (a.z + b.z) - (b.i * (2 * a.i) + b.j * (6 * a.j));
}

// A circle on the lattice.
struct Circle {
  float i, j, radius;
};

struct Triplet {
  std::int32_t score = -1;  // -1: there is none
  Circle circle;
  Point a, b, c;
};

// The hits not yet in a ring.
struct Hits {
  Point points[kMaxHits];
  std::int8_t time_codes[kMaxHits];
  std::uint32_t count = 0;
};

NANET_HD inline Point outermost(const Hits& hits, std::uint32_t direction) {
  std::uint32_t best = 0;
  std::int32_t most = kNone;
  for (std::uint32_t k = 0; k < hits.count; ++k) {
    const std::int32_t value = along(direction, hits.points[k].i, hits.points[k].j);
    if (value > most) best = k;
    if (value > most) most = value;
  }
  return hits.points[best];
}

// Is the hit on the side of A where start s looks for B? (It looks for C on the other.) Not for hits on A itself.
NANET_HD inline bool is_on_side_of_b(std::uint32_t start, const Point& hit, const Point& a) {
  const std::int32_t difference = along((start & 7u) ^ 2u, hit.i - a.i, hit.j - a.j);
  return start < kDirections ? difference > 0 : difference < 0;
}

// Fixed point, as vectors of 16-bit integers have it.
inline constexpr float kWhole = 12582912.0F;  // 1.5 2^23: a small number added to it is rounded to an integer
NANET_HD inline std::int32_t saturated(std::int32_t value) { return value < -32768 ? -32768 : (value > 32767 ? 32767 : value); }
NANET_HD inline std::int32_t multiply_fixed(std::int32_t a, std::int32_t b) { return (a * b + 16384) >> 15; }
NANET_HD inline std::int32_t fixed_of(float value) {
  const float low = value > -32767.0F ? value : -32767.0F;
  return static_cast<std::int32_t>(((low < 32767.0F ? low : 32767.0F) + kWhole) - kWhole);
}

// A circle's coefficients: (d^2 - R^2) / 2 R of a hit at i, j is scale z + offset - (scale_i i + scale_j j), in 1/255 of the score's width.
struct ScoreFactors {
  std::int32_t scale, scale_i, scale_j, offset;  // in 2^-11, 2^-6, 2^-5 and 1
};

NANET_HD inline ScoreFactors score_factors_of(const Circle& circle, float inverse_radius, const Limits& limits) {
  const float scale = limits.score_scale * inverse_radius;
  const float radius2 = circle.radius * circle.radius;
  const float center_z = circle.i * circle.i + 3.0F * (circle.j * circle.j);
  return {fixed_of(scale * 2048.0F), fixed_of(scale * (circle.i * 128.0F)), fixed_of(scale * (circle.j * 192.0F)),
          fixed_of(scale * (center_z - radius2))};
}

// What a hit adds to a circle's score: kScoreUnit on it, 0 from the score's width on.
NANET_HD inline std::int32_t score_of(const ScoreFactors& factors, const Point& d) {
  const std::int32_t out = saturated(multiply_fixed(factors.scale, d.z * 16) + factors.offset);
  const std::int32_t in = saturated(multiply_fixed(factors.scale_i, d.i * 512) + multiply_fixed(factors.scale_j, d.j * 1024));
  const std::int32_t pull = saturated(out - in);
  const std::int32_t near = pull < -255 ? -255 : (pull > 255 ? 255 : pull);
  return (65025 - near * near) >> 8;
}

// The angle at which C must see A and B for a circle that is not too big: |cotangent| at most this / 8192 / sqrt(3); 0: A and B are too far apart.
NANET_HD inline std::int32_t cotangent_limit(float ab, const Limits& limits) {
  const float square = limits.flat / ab - 3.0F;
  const float limit = std::sqrt(square > 0.0F ? square : 0.0F) * 8192.0F;
  return limit < 65535.0F ? static_cast<std::int32_t>(limit) : 65535;
}

// The circle through A, B and C, which do not lie on a line.
struct RoundedCircle {
  Circle circle;
  float inverse_radius;
};
NANET_HD inline RoundedCircle circle_through(const Point& a, const Point& b, const Point& c) {
  const auto bi = static_cast<float>(b.i - a.i);
  const auto bj = static_cast<float>(b.j - a.j);
  const auto ci = static_cast<float>(c.i - a.i);
  const auto cj = static_cast<float>(c.j - a.j);
  const auto ab = static_cast<float>(squared_distance(a, b));
  const auto ac = static_cast<float>(squared_distance(a, c));
  const float cross = bi * cj - bj * ci;
  const float u = cj * ab - bj * ac;
  const float v = (bi * ac - ci * ab) * (1.0F / 3.0F);
  const float length = std::sqrt(u * u + 3.0F * (v * v));
  const float both = 1.0F / (cross * length);  // one division for the two that follow
  const float inverse = 0.5F * (both * length);
  return {{static_cast<float>(a.i) + u * inverse, static_cast<float>(a.j) + v * inverse, std::abs(length * inverse)},
          std::abs(both * (cross * (cross + cross)))};
}

// Step 3: the triplet of a start, with its score.
NANET_HD inline Triplet find_triplet(const Hits& hits, std::uint32_t start, const Limits& limits) {
  const std::uint32_t direction = start & 7u;
  Triplet triplet;
  const Point a = outermost(hits, direction);
  Point b{};
  std::int32_t along_b = kNone;
  for (std::uint32_t k = 0; k < hits.count; ++k) {
    const Point& d = hits.points[k];
    const std::int32_t value = along(direction, d.i, d.j);
    if (squared_distance(a, d) <= limits.pair_z || !is_on_side_of_b(start, d, a) || value <= along_b) continue;
    along_b = value;
    b = d;
  }
  if (along_b == kNone) return triplet;
  const std::int32_t bi = b.i - a.i;
  const std::int32_t bj = b.j - a.j;
  const auto ab = static_cast<float>(squared_distance(a, b));
  const std::int32_t cotangent = cotangent_limit(ab, limits);
  const std::int32_t dot_ab = a.i * b.i + 3 * (a.j * b.j);
  const std::int32_t cross_a = bi * a.j - bj * a.i;
  Point c{};
  std::int32_t along_c = kNone;
  for (std::uint32_t k = 0; k < hits.count; ++k) {
    const Point& d = hits.points[k];
    const std::int32_t value = along(direction, d.i, d.j);
    const std::int32_t dot = (d.z + dot_ab) - (d.i * (a.i + b.i) + d.j * (3 * (a.j + b.j)));  // of D to A and D to B
    const std::int32_t cross = (bi * d.j - bj * d.i) - cross_a;
    const std::int64_t limit = std::int64_t{(cross < 0 ? -cross : cross) * 8} * cotangent >> 16;
    const bool beside = squared_distance(a, d) > limits.far_pair_z && is_on_side_of_b(start ^ 8u, d, a);
    if (!beside || (dot < 0 ? -dot : dot) > limit || value <= along_c) continue;
    along_c = value;
    c = d;
  }
  if (along_c == kNone || cotangent == 0) return triplet;
  const RoundedCircle round = circle_through(a, b, c);
  const ScoreFactors factors = score_factors_of(round.circle, round.inverse_radius, limits);
  std::int32_t score = 0;
  for (std::uint32_t k = 0; k < hits.count; ++k) score += score_of(factors, hits.points[k]);
  return {score, round.circle, a, b, c};
}

// Steps 2 and 3: of equals the first. The second half of the starts only if the first found nothing good enough.
NANET_HD inline Triplet best_triplet(const Hits& hits, const Limits& limits) {
  Triplet best;
  for (std::uint32_t start = 0; start < kStarts; ++start) {
    if (start == kDirections && best.score >= limits.score_enough * static_cast<std::int32_t>(hits.count)) break;
    const Triplet triplet = find_triplet(hits, start, limits);
    if (triplet.score > best.score) best = triplet;
  }
  return best;
}

NANET_HD inline Circle circle_of(const Ring& ring) {
  return {ring.x_mm * (1.0F / kPitchMm), ring.y_mm * (1.0F / kRowPitchMm), ring.radius_mm * (1.0F / kPitchMm)};
}

NANET_HD inline float distance_mm_of(const Point& a, const Point& b) {
  return kPitchMm * std::sqrt(static_cast<float>(squared_distance(a, b)));
}

// Step 4: do enough hits pass? A, B and C always do. points(k): hit k of `count`.
template <class Points>
NANET_HD inline bool passes_ptolemy(const Triplet& t, std::uint32_t count, const Limits& limits, const Points& points) {
  if (limits.ptolemy_hits_min <= 3) return true;
  const float ab_mm = distance_mm_of(t.a, t.b);
  const float ac_mm = distance_mm_of(t.a, t.c);
  const float bc_mm = distance_mm_of(t.b, t.c);
  std::uint32_t passed = 0;
  for (std::uint32_t k = 0; k < count; ++k) {
    const Point d = points(k);
    const float value_mm2 = ptolemy_mm2(ab_mm, ac_mm, bc_mm, distance_mm_of(t.a, d), distance_mm_of(t.b, d), distance_mm_of(t.c, d));
    passed += value_mm2 <= limits.ptolemy_max_mm2 ? 1u : 0u;
  }
  return passed >= limits.ptolemy_hits_min;
}

NANET_HD inline bool is_near(const Circle& circle, const Point& d, float distance) {
  const float di = static_cast<float>(d.i) - circle.i;
  const float dj = static_cast<float>(d.j) - circle.j;
  const float d2 = di * di + 3.0F * (dj * dj);
  const float inner = circle.radius > distance ? circle.radius - distance : 0.0F;
  const float outer = circle.radius + distance;
  return (d2 >= inner * inner) & (d2 <= outer * outer);
}

// Fit of the chosen hits.
NANET_HD inline Ring fit(const Hits& hits, const bool* chosen) {
  RingSums sums;
  for (std::uint32_t k = 0; k < hits.count; ++k) {
    if (!chosen[k]) continue;
    add(sums, make_ring_sums_row(hits.points[k].i, hits.points[k].j));
  }
  return solve_ring(sums);
}

NANET_HD inline Ring fit_near(const Hits& hits, const Circle& circle, float distance, bool* chosen) {
  for (std::uint32_t k = 0; k < hits.count; ++k) chosen[k] = is_near(circle, hits.points[k], distance);
  return fit(hits, chosen);
}

NANET_HD inline bool is_accepted(const Ring& ring, const Limits& limits) {
  const float hits = ring.hits;
  const bool round = ring.rms_mm * ring.rms_mm * hits <= limits.rms_max_mm * limits.rms_max_mm * (hits - 3.0F);
  return round & (ring.radius_mm >= limits.radius_min_mm) & (ring.radius_mm <= limits.radius_max_mm);
}

// Steps 4 to 6. False: no ring.
NANET_HD inline bool find_ring(const Hits& hits, const Limits& limits, bool* chosen, Ring& ring) {
  const Triplet triplet = best_triplet(hits, limits);
  if (triplet.score < 0 || triplet.score < limits.score_min) return false;
  if (!passes_ptolemy(triplet, hits.count, limits, [&hits](std::uint32_t k) { return hits.points[k]; })) return false;
  ring = fit_near(hits, triplet.circle, limits.take_in, chosen);
  if (!has_ring(ring.status) || ring.hits < limits.hits_min) return false;
  ring = fit_near(hits, circle_of(ring), limits.keep, chosen);
  if (!has_ring(ring.status) || ring.hits < limits.hits_min || !is_accepted(ring, limits)) return false;
  return true;
}

// Step 1: the window of `codes` time codes that holds most hits, of equals the one nearest to 0, then the earlier; returns its first code.
NANET_HD inline std::int32_t densest_window(const std::uint8_t* counts, std::int32_t codes) {
  std::int32_t best_start = -16;
  std::int32_t best_count = -1;
  std::int32_t best_offset = 0;
  for (std::int32_t start = -16; start + codes <= 16; ++start) {
    std::int32_t count = 0;
    for (std::int32_t code = start; code < start + codes; ++code) count += counts[code + 16];
    const std::int32_t twice_center = 2 * start + codes - 1;
    const std::int32_t offset = twice_center < 0 ? -twice_center : twice_center;
    if (count < best_count || (count == best_count && offset >= best_offset)) continue;
    best_start = start;
    best_count = count;
    best_offset = offset;
  }
  return best_start;
}

// Mean time of hits by the sum of their codes.
NANET_HD inline float mean_time_ns(std::int32_t code_sum, std::uint16_t hits) {
  return static_cast<float>(code_sum) / static_cast<float>(hits) * kHitTimeUnitNs;
}

NANET_HD inline void choose_hits(const HitPlane& plane, const PmPoint* points, const Limits& limits, Hits& hits) {
  std::int32_t start = -16;
  if (limits.window_codes < 32) {
    std::uint8_t counts[32] = {};
    for (std::uint32_t k = 0; k < plane.count; ++k) ++counts[plane.time_code[k] + 16];
    start = densest_window(counts, limits.window_codes);
  }
  for (std::uint32_t k = 0; k < plane.count; ++k) {
    const std::int32_t code = plane.time_code[k];
    if (code < start || code >= start + limits.window_codes) continue;
    const PmPoint& pm = points[plane.row[k]];
    hits.points[hits.count] = point_at(pm.i, pm.j);
    hits.time_codes[hits.count++] = static_cast<std::int8_t>(code);
  }
}

}  // namespace almagest

NANET_HD inline EventRings find_almagest(event::Event event, const PmPoint* points, const AlmagestCuts& cuts) {
  using namespace almagest;
  const Limits limits = limits_of(cuts);
  HitPlane plane;
  lay_out_hits(event, points, plane);
  Hits hits;
  choose_hits(plane, points, limits, hits);
  EventRings rings;
  rings.mapped_hits = static_cast<std::uint16_t>(plane.count);
  rings.truncated = static_cast<std::uint16_t>(plane.truncated);
  bool chosen[kMaxHits];
  Ring ring;
  while (rings.count < kMaxRings && hits.count >= limits.hits_min && find_ring(hits, limits, chosen, ring)) {
    std::int32_t code_sum = 0;
    std::uint32_t left = 0;
    for (std::uint32_t k = 0; k < hits.count; ++k) {
      if (chosen[k]) {
        code_sum += hits.time_codes[k];
      } else {
        hits.points[left] = hits.points[k];
        hits.time_codes[left++] = hits.time_codes[k];
      }
    }
    hits.count = left;
    ring.time_ns = mean_time_ns(code_sum, ring.hits);
    rings.rings[rings.count++] = ring;
  }
  sort_rings(rings);
  return rings;
}

}  // namespace nanet::rich
