// SPDX-License-Identifier: Apache-2.0
// The model of the mixture finder (mixture.hpp) and what is computed of one hit, one ring or one start circle: the same functions for a loop on
// the CPU and for a lane of a GPU.
//
// Bits: everything is float, + - x / sqrt and integers only, in the order written. What is summed over hits is summed in kMixtureLanes interleaved
// partial sums and one tree (sum_lanes), whatever the width of a vector; what is summed for a start circle is summed hit by hit.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/rich/mixture_cuts.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/ordinary_math.hpp"

namespace nanet::rich {

inline constexpr std::uint32_t kMixtureLanes = 16;
inline constexpr std::uint32_t kMixtureStarts = 8;       // at most
inline constexpr std::uint32_t kMixtureEmSteps = 20;     // at most
inline constexpr std::uint32_t kMixtureRounds = 8;       // at most
inline constexpr std::uint32_t kMixturePool = 1024;      // start circles at most
inline constexpr std::uint32_t kMixtureTriplets = 2000;  // of hits tried, about; more hits: only every n-th pair is a base
inline constexpr float kMixtureStill = 0.03F;            // mm; EM ends when no ring moves more
inline constexpr float kMixtureStepMm = 15.0F;           // EM moves a ring by this at most
inline constexpr float kDiskPrior = 1.0F;                // hits on either disk that a ring is thought to have had already
inline constexpr float kRadiusBias = 0.35F;  // over the radius: what the spread of hits in two dimensions adds, in steps of the fit
inline constexpr float kOtherDisk = 0.3F;    // what a hit counts for a start circle through hits on the other disk
inline constexpr float kNoStart = -1.0e8F;   // a start circle with a score of this or less is none
inline constexpr float kPmAreaMm2 = 280.59223F;  // of a hexagon of 18 mm pitch
inline constexpr float kDiskRadiusMm = 300.0F;   // of a circle that holds about as much of a ring as the disk does

// Spread of a hit's distance t from its ring: density exp(-(kSpreadA t^2 + kSpreadB t^4)) kSpreadPeak for kSpreadRmsMm. A hexagon's chord, smeared: flatter
// than a Gaussian in the middle, and with hardly any tail.
inline constexpr float kSpreadA = 5.83e-3F;
inline constexpr float kSpreadB = 7.62e-5F;
inline constexpr float kSpreadPeak = 0.0629F;
inline constexpr float kSpreadRmsMm = 5.48F;

// What follows from the cuts, once per call.
struct MixtureSetup {
  float spread_a = 0, spread_b = 0;  // of the distance
  float amplitude = 0;               // times hits / radius: density of a ring on its circle over that of the noise expected
  float pool_gain = 0;               // the same for an expected ring of middle radius
  float inverse_reach2 = 0;          // 1 / square of the distance where a start circle no longer counts a hit
  float inverse_two_center2 = 0;     // 1 / (2 sigma^2) of the centre
  float yield = 0, yield_shape = 0, yield_pull = 0;  // expected hits; prior's weight; weight / expected
  float noise = 0, noise_shape = 0;
  float radius_min_mm = 0, radius_max_mm = 0, pair_distance2_min = 0;
  float time_peak = 0, time_two_sigma2 = 0;
  std::int32_t time_reach = 0;  // codes on either side of the window for the event's time
  float ring_penalty = 0, start_gap = 0, first_gap = 0, start_distance_min_mm = 0;
  std::uint32_t starts = 0, em_steps = 0, rounds = 0, deep_rings = 0, hits_min = 0, disk_use = 0, time_use = 0;
};

// `low` if not above it (or not a number), `high` if above that.
NANET_HD constexpr float clamp_cut(float value, float low, float high) { return value > low ? (value < high ? value : high) : low; }

NANET_HD inline MixtureSetup prepare_mixture(const MixtureCuts& cuts) {
  MixtureSetup setup;
  const float narrow = ordinary_quotient(kSpreadRmsMm, clamp_cut(cuts.sigma_mm, 1.0F, 50.0F));
  const float narrow2 = narrow * narrow;
  const float center_mm = clamp_cut(cuts.center_sigma_mm, 1.0F, 1.0e4F);
  const float noise_width = clamp_cut(cuts.noise_width, 0.01F, 100.0F);
  const float yield_width = clamp_cut(cuts.yield_width, 0.01F, 100.0F);
  setup.noise = clamp_cut(cuts.noise_hits, 0.01F, 100.0F);
  setup.noise_shape = ordinary_inverse(noise_width * noise_width);
  setup.yield_shape = ordinary_inverse(yield_width * yield_width);
  setup.spread_a = kSpreadA * narrow2;
  setup.spread_b = kSpreadB * (narrow2 * narrow2);
  setup.amplitude = ordinary_quotient(kSpreadPeak * narrow * 0.15915494F * (976.0F * kPmAreaMm2), setup.noise);
  setup.yield = clamp_cut(cuts.ring_yield, 0.1F, 100.0F);
  setup.yield_pull = ordinary_quotient(setup.yield_shape, setup.yield);
  setup.pool_gain = ordinary_quotient(setup.amplitude * setup.yield, 130.0F);
  const float reach_mm = ordinary_quotient(17.0F, narrow);
  setup.inverse_reach2 = ordinary_inverse(reach_mm * reach_mm);
  setup.inverse_two_center2 = ordinary_quotient(0.5F, center_mm * center_mm);
  setup.radius_min_mm = clamp_cut(cuts.radius_min_mm, 10.0F, 500.0F);
  setup.radius_max_mm = clamp_cut(cuts.radius_max_mm, 10.0F, 500.0F);
  const float pair_mm = clamp_cut(cuts.pair_distance_min_mm, 1.0F, 1000.0F);
  setup.pair_distance2_min = pair_mm * pair_mm;
  const float time_ns = clamp_cut(cuts.time_sigma_ns, 0.01F, 10.0F);
  const float sigma2 = time_ns * time_ns + kHitTimeUnitNs * kHitTimeUnitNs / 12.0F;
  setup.time_peak = ordinary_quotient(32.0F * kHitTimeUnitNs * 0.39894228F, ordinary_root(sigma2));
  setup.time_two_sigma2 = 2.0F * sigma2;
  setup.time_reach = static_cast<std::int32_t>(clamp_cut(2.0F * time_ns * (1.0F / kHitTimeUnitNs) + 0.5F, 1.0F, 15.0F));
  setup.ring_penalty = cuts.ring_penalty;
  setup.start_gap = cuts.start_gap;
  setup.first_gap = cuts.first_gap;
  setup.start_distance_min_mm = cuts.start_distance_min_mm;
  setup.starts = cuts.starts < 1 ? 1 : cuts.starts < kMixtureStarts ? cuts.starts : kMixtureStarts;
  setup.em_steps = cuts.em_steps < 1 ? 1 : cuts.em_steps < kMixtureEmSteps ? cuts.em_steps : kMixtureEmSteps;
  setup.rounds = cuts.move_rounds < kMixtureRounds ? cuts.move_rounds : kMixtureRounds;
  setup.deep_rings = cuts.deep_rings < 3 ? 3 : cuts.deep_rings;
  setup.hits_min = cuts.hits_min < 4 ? 4 : cuts.hits_min;
  setup.disk_use = cuts.disk_use;
  setup.time_use = cuts.time_use;
  return setup;
}

// ---- hits

// Order of hits: by disk (if it is used), channel in the disk, time.
NANET_HD constexpr std::uint16_t mixture_order(const MixtureSetup& setup, std::uint16_t hit) {
  const std::uint32_t disk = setup.disk_use != 0 ? hit >> 10 & 1u : 0u;
  return static_cast<std::uint16_t>(disk << 15 | (hit & 1023u) << 5 | hit >> 11);
}
NANET_HD constexpr std::uint32_t row_of_key(std::uint16_t key) { return key >> 5 & 1023u; }
NANET_HD constexpr int time_code_of_key(std::uint16_t key) { return static_cast<int>((key & 31) ^ 16) - 16; }
NANET_HD constexpr float time_of_key(std::uint16_t key) { return static_cast<float>(time_code_of_key(key)) * kHitTimeUnitNs; }

NANET_HD constexpr std::uint32_t padded_count(std::uint32_t count) { return (count + (kMixtureLanes - 1)) & ~(kMixtureLanes - 1); }

// Every how many pairs of hits one is the base of triplets. on_disk0 of the `count` hits are on disk 0.
NANET_HD constexpr std::uint32_t pair_stride(std::uint32_t on_disk0, std::uint32_t count) {
  const auto triplets = [](std::uint32_t n) { return n < 3 ? 0 : n * (n - 1) * (n - 2) / 6; };
  return 1 + (triplets(on_disk0) + triplets(count - on_disk0)) / kMixtureTriplets;
}

// ---- functions

// e^-p for 0 <= p <= 80, to 2e-6.
NANET_HD inline float exp_minus(float p) {
  const auto k = static_cast<std::int32_t>(p * 1.44269504F + 0.5F);
  const auto kf = static_cast<float>(k);
  const float r = (p - kf * 0.693359375F) + kf * 2.12194440e-4F;
  const float e = 1.0F - r * (1.0F - r * (0.5F - r * (0.16666667F - r * (0.041666667F - r * 0.0083333333F))));
  return e * std::bit_cast<float>((127 - k) << 23);
}

// log of a finite x > 0, to 3e-7.
NANET_HD inline float log_of(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  const std::int32_t k = (bits - 0x3f3504f3) >> 23;
  const float m = std::bit_cast<float>(bits - (k << 23));
  const float s = ordinary_quotient(m - 1.0F, m + 1.0F);
  const float s2 = s * s;
  return static_cast<float>(k) * 0.69314718F + s * (2.0F + s2 * (0.66666667F + s2 * (0.4F + s2 * 0.28571429F)));
}

// Share of a circle that lies on the disk. x, y: centre.
NANET_HD inline float share_on_disk(float x_mm, float y_mm, float radius_mm) {
  const float d2 = x_mm * x_mm + y_mm * y_mm;
  const float d = ordinary_root(d2);  // what is near 0 vanishes beside 1
  const float cosine = ordinary_quotient((kDiskRadiusMm * kDiskRadiusMm - d2) - radius_mm * radius_mm, 2.0F * d * radius_mm + 1.0F);
  const float c = cosine < 1.0F ? (cosine > -1.0F ? cosine : -1.0F) : 1.0F;
  const float a = c < 0.0F ? -c : c;
  // arc cosine over pi, Abramowitz and Stegun 4.4.45
  const float arc = ordinary_root(1.0F - a) * (0.5F + a * (-0.067509F + a * (0.023636F - a * 0.0059618F)));
  return c < 0.0F ? arc : 1.0F - arc;
}

// The event's time: the mean of its hits' times where they are densest, in a window of setup.time_reach codes on either side (two sigma). What comes
// with the event is the time of its trigger, which may be off.
//
// How good the window about `code` is that holds `hits`: the larger the better. Of windows with as many hits the one nearest to the trigger's time.
inline constexpr std::uint32_t kTimeCodes = 32;
NANET_HD constexpr std::int32_t time_window_rank(int code, std::uint32_t hits) {
  return static_cast<std::int32_t>(hits << 5) | (31 - (code < 0 ? -2 * code - 1 : 2 * code));
}
NANET_HD constexpr std::uint32_t hits_of_time_window(std::int32_t rank) { return static_cast<std::uint32_t>(rank) >> 5; }
NANET_HD constexpr int code_of_time_window(std::int32_t rank) {
  const int turn = 31 - (rank & 31);
  return (turn & 1) != 0 ? -(turn + 1) / 2 : turn / 2;
}

// From the sum of the codes of the hits in the best window.
NANET_HD inline float event_time_ns(int codes, std::uint32_t hits) {
  return hits == 0 ? 0.0F : ordinary_quotient(static_cast<float>(codes), static_cast<float>(hits)) * kHitTimeUnitNs;
}

// Of the hits with these keys.
NANET_HD inline float event_time_ns(const MixtureSetup& setup, const std::uint16_t* keys, std::uint32_t count) {
  const int reach = setup.time_reach;
  std::uint8_t of_code[kTimeCodes] = {};
  for (std::uint32_t k = 0; k < count; ++k) ++of_code[(keys[k] & 31u) ^ 16u];
  const auto hits_at = [&](int code) { return code >= -16 && code < 16 ? of_code[code + 16] : 0; };
  int hits = 0;
  for (int code = -16; code < -16 + reach; ++code) hits += hits_at(code);
  std::int32_t best = -1;
  for (int code = -16; code < 16; ++code) {
    hits += hits_at(code + reach) - hits_at(code - reach - 1);
    const std::int32_t rank = time_window_rank(code, static_cast<std::uint32_t>(hits));
    best = rank > best ? rank : best;
  }
  int codes = 0;
  const int middle = code_of_time_window(best);
  for (int code = middle - reach; code <= middle + reach; ++code) codes += code * hits_at(code);
  return event_time_ns(codes, hits_of_time_window(best));
}

// Density of a hit's time on a ring over that of the noise; 1 where time is not used. time_ns: from the event's time.
NANET_HD inline float time_weight(const MixtureSetup& setup, float time_ns) {
  if (setup.time_use == 0) return 1.0F;
  const float p = ordinary_quotient(time_ns * time_ns, setup.time_two_sigma2);
  return setup.time_peak * exp_minus(p < 80.0F ? p : 80.0F);
}

// Sum of kMixtureLanes partial sums.
NANET_HD inline float sum_lanes(const float* lanes) {
  float quad[4];
  for (std::uint32_t l = 0; l < 4; ++l) quad[l] = (lanes[l] + lanes[l + 8]) + (lanes[l + 4] + lanes[l + 12]);
  return (quad[0] + quad[2]) + (quad[1] + quad[3]);
}

// ---- start circles

struct MixtureCircle {
  float x_mm, y_mm, radius_mm;
};

struct MixtureStart {
  MixtureCircle circle;
  float score;  // what one more ring on the circle would gain, about
};

// The circle through three hits at (x, y), (x + ax, y + ay) and (third_x, third_y), aa = ax^2 + ay^2; false if it is no start.
NANET_HD inline bool circle_through(const MixtureSetup& setup, float x, float y, float ax, float ay, float aa, float third_x,
                                    float third_y, MixtureCircle& circle) {
  const float bx = third_x - x;
  const float by = third_y - y;
  const float wx = bx - ax;
  const float wy = by - ay;
  const float bb = bx * bx + by * by;
  const float ww = wx * wx + wy * wy;
  const float cross = ax * by - ay * bx;
  const bool wide = bb >= setup.pair_distance2_min && ww >= setup.pair_distance2_min && std::abs(cross) >= 1.0F;
  const float half_inverse = ordinary_quotient(0.5F, wide ? cross : 1.0F);
  const float ux = (by * aa - ay * bb) * half_inverse;
  const float uy = (ax * bb - bx * aa) * half_inverse;
  const float r = ordinary_root(ux * ux + uy * uy);
  circle = {x + ux, y + uy, r};
  return wide && r >= setup.radius_min_mm && r <= setup.radius_max_mm;
}

// Of a start: hits expected and the prior of the centre.
NANET_HD inline float start_price(const MixtureSetup& setup, const MixtureCircle& circle) {
  return -setup.yield * share_on_disk(circle.x_mm, circle.y_mm, circle.radius_mm) -
         (circle.x_mm * circle.x_mm + circle.y_mm * circle.y_mm) * setup.inverse_two_center2;
}

// A circle as its distance from hits needs it.
struct MixtureReach {
  float half_inverse, px, py, pc;
};

NANET_HD inline MixtureReach reach_of(const MixtureCircle& circle) {
  const float x = circle.x_mm;
  const float y = circle.y_mm;
  const float r = circle.radius_mm;
  const float half_inverse = ordinary_quotient(0.5F, r);
  return {half_inverse, (x + x) * half_inverse, (y + y) * half_inverse, ((r * r - x * x) - y * y) * half_inverse};
}

// How close a hit is to the circle: 1 on it, not above 0 where it no longer counts the hit. z = x^2 + y^2.
NANET_HD inline float closeness(const MixtureSetup& setup, const MixtureReach& reach, float x, float y, float z) {
  const float t = ((z * reach.half_inverse - x * reach.px) - y * reach.py) - reach.pc;  // (d^2 - R^2) / 2R
  return 1.0F - (t * t) * setup.inverse_reach2;
}

// What share of a hit's room the circle gets, from how close it is.
NANET_HD inline float share_of_room(float closeness) {
  const float v = closeness > 0.0F ? closeness : 0.0F;
  return v * v;
}

NANET_HD inline float nearness(const MixtureSetup& setup, const MixtureReach& reach, float x, float y, float z) {
  return share_of_room(closeness(setup, reach, x, y, z));
}

NANET_HD inline bool is_near(const MixtureCircle& a, const MixtureCircle& b, float distance_mm) {
  return (std::abs(a.x_mm - b.x_mm) + std::abs(a.y_mm - b.y_mm)) + std::abs(a.radius_mm - b.radius_mm) < distance_mm;
}

// ---- rings

struct MixtureRing {
  float x_mm, y_mm, radius_mm;
  float yield;       // hits, if all of the ring were on the disk
  float disk_share;  // of the ring's light that is on disk 1
};

NANET_HD inline MixtureCircle circle_of(const MixtureRing& ring) { return {ring.x_mm, ring.y_mm, ring.radius_mm}; }

struct MixtureModel {
  MixtureRing rings[kMaxRings];
  std::uint32_t count = 0;
  float noise = 1;       // over the noise expected
  float likelihood = 0;  // log, with priors
};

// A ring that is still to be fitted.
NANET_HD inline MixtureRing ring_on(const MixtureSetup& setup, const MixtureCircle& circle) {
  return {circle.x_mm, circle.y_mm, circle.radius_mm, setup.yield, setup.disk_use != 0 ? 0.5F : 0.0F};
}

// A ring as it is answered, from its hits: how many, and the sums of their squared distances and of their times.
NANET_HD inline Ring ring_of(const MixtureRing& ring, std::uint32_t hits, float square, float time_ns) {
  return {.x_mm = ring.x_mm,
          .y_mm = ring.y_mm,
          .radius_mm = ring.radius_mm,
          .rms_mm = ordinary_root(ordinary_quotient(square, static_cast<float>(hits))),
          .time_ns = ordinary_quotient(time_ns, static_cast<float>(hits)),
          .hits = static_cast<std::uint16_t>(hits),
          .status = RingStatus::ring};
}

// Density of a ring on its circle for hits on disk 0, and what is added on disk 1.
struct MixtureAmplitude {
  float on_disk0, more_on_disk1;
};

NANET_HD inline MixtureAmplitude amplitude_of(const MixtureSetup& setup, const MixtureRing& ring) {
  const float amplitude = ordinary_quotient(setup.amplitude * ring.yield, ring.radius_mm);
  const float amplitude0 = amplitude * (1.0F - ring.disk_share);
  return {amplitude0, amplitude * ring.disk_share - amplitude0};
}

// e^-p of a hit that is t away from its ring.
NANET_HD inline float spread_at(const MixtureSetup& setup, float t) {
  const float q = t * t;
  const float p = q * (setup.spread_a + setup.spread_b * q);
  return exp_minus(p < 80.0F ? p : 80.0F);
}

// Sums over hits, with r the share of the hit that belongs to the ring.
enum MixtureSum : std::uint32_t {
  kSumCC,
  kSumCS,
  kSumSS,
  kSumC,
  kSumS,
  kSumN,
  kSumTC,
  kSumTS,
  kSumT,
  kSumHits,
  kSumDisk,
  kSumSpare
};
inline constexpr std::uint32_t kMixtureSums = 12;

// Calls add(sum, value) for all sums but the spare one. t: the hit's distance; c, s: cosine and sine of its direction from the centre.
template <class Add>
NANET_HD inline void add_hit(const MixtureSetup& setup, float share, float t, float c, float s, float disk, Add&& add) {
  const float bq = setup.spread_b * (t * t);
  const float curvature = share * (setup.spread_a + 6.0F * bq);   // half the second derivative
  const float pull = (share * (setup.spread_a + 2.0F * bq)) * t;  // half the first
  const float wc = curvature * c;
  const float ws = curvature * s;
  add(kSumCC, wc * c);
  add(kSumCS, wc * s);
  add(kSumSS, ws * s);
  add(kSumC, wc);
  add(kSumS, ws);
  add(kSumN, curvature);
  add(kSumTC, pull * c);
  add(kSumTS, pull * s);
  add(kSumT, pull);
  add(kSumHits, share);
  add(kSumDisk, share * disk);
}

// Newton's step for centre and radius; returns the largest move. Divides by divide(a, b).
template <class Divide>
NANET_HD inline float move_ring(const MixtureSetup& setup, const float* sums, MixtureRing& ring, Divide&& divide) {
  const float prior = setup.inverse_two_center2;  // halves, as the sums
  const float cc = sums[kSumCC] + prior;
  const float ss = sums[kSumSS] + prior;
  const float n = sums[kSumN] + 1.0e-4F;
  const float cs = sums[kSumCS];
  const float c = sums[kSumC];
  const float s = sums[kSumS];
  const float gx = sums[kSumTC] - prior * ring.x_mm;
  const float gy = sums[kSumTS] - prior * ring.y_mm;
  const float gr = sums[kSumT] - divide((0.5F * kRadiusBias) * sums[kSumHits], ring.radius_mm);
  const float a = ss * n - s * s;
  const float b = c * s - cs * n;
  const float d = cs * s - c * ss;
  const float det = (cc * a + cs * b) + c * d;
  const float dx = divide((gx * a + gy * b) + gr * d, det);
  const float dy = divide((gx * b + gy * (cc * n - c * c)) + gr * (cs * c - cc * s), det);
  const float dr = divide((gx * d + gy * (cs * c - cc * s)) + gr * (cc * ss - cs * cs), det);
  const float ax = std::abs(dx);
  const float ay = std::abs(dy);
  const float ar = std::abs(dr);
  const float axy = ax > ay ? ax : ay;
  const float largest = axy > ar ? axy : ar;
  const bool moves = det > 1.0e-12F && largest < 1.0e6F;
  const float shorter = largest > kMixtureStepMm ? ordinary_quotient(kMixtureStepMm, largest) : 1.0F;
  ring.x_mm = moves ? ring.x_mm + dx * shorter : ring.x_mm;
  ring.y_mm = moves ? ring.y_mm + dy * shorter : ring.y_mm;
  ring.radius_mm = moves ? clamp_cut(ring.radius_mm + dr * shorter, 20.0F, 600.0F) : ring.radius_mm;
  return moves ? largest : 0.0F;
}

NANET_HD inline float move_ring(const MixtureSetup& setup, const float* sums, MixtureRing& ring) {
  return move_ring(setup, sums, ring, [](float a, float b) { return a / b; });
}

#ifdef __CUDA_ARCH__
// As move_ring, which is called only where a number next to nothing is divided: a ring without hits.
__device__ [[gnu::noinline]] inline float move_empty_ring(const MixtureSetup& setup, const float* sums, MixtureRing& ring) {
  return move_ring(setup, sums, ring);
}
__device__ inline float move_ring_quickly(const MixtureSetup& setup, const float* sums, MixtureRing& ring) {
  std::uint32_t least = ~0u;  // of what is divided, as bits; 0 counts as much
  MixtureRing moved = ring;
  float largest = move_ring(setup, sums, moved, [&](float a, float b) {
    const std::uint32_t bits = 2 * std::bit_cast<std::uint32_t>(a) - 1;
    least = bits < least ? bits : least;
    return ordinary_quotient(a, b);
  });
  if (least < 2 * std::bit_cast<std::uint32_t>(0x1p-95F) - 1) {
    MixtureRing other = ring;
    largest = move_empty_ring(setup, sums, other);
    moved = other;
  }
  ring = moved;
  return largest;
}
#else
NANET_HD inline float move_ring_quickly(const MixtureSetup& setup, const float* sums, MixtureRing& ring) {
  return move_ring(setup, sums, ring);
}
#endif

// One EM step of a ring, from its sums; returns the largest move.
NANET_HD inline float maximise_ring(const MixtureSetup& setup, const float* sums, MixtureRing& ring) {
  const float moved_mm = move_ring_quickly(setup, sums, ring);
  ring.yield = ordinary_quotient(sums[kSumHits] + setup.yield_shape,
                                 share_on_disk(ring.x_mm, ring.y_mm, ring.radius_mm) + setup.yield_pull);
  if (setup.disk_use != 0) ring.disk_share = ordinary_quotient(sums[kSumDisk] + kDiskPrior, sums[kSumHits] + 2.0F * kDiskPrior);
  return moved_mm;
}

// The noise where `in_rings` of the hits belong to rings.
NANET_HD inline float maximise_noise(const MixtureSetup& setup, std::uint32_t hits, float in_rings) {
  const float rest = static_cast<float>(hits) - in_rings;
  return ordinary_quotient((rest > 0.0F ? rest : 0.0F) + setup.noise_shape, setup.noise + setup.noise_shape);
}

// What the noise adds to the log likelihood, beside the sum over hits.
NANET_HD inline float with_noise(const MixtureSetup& setup, float hits, float noise) {
  return hits - (noise - 1.0F) * setup.noise + setup.noise_shape * ((log_of(noise) - noise) + 1.0F);
}

// What a ring takes from the log likelihood and adds to it.
struct MixtureTerms {
  float light, place, yield, disk;
};

NANET_HD inline MixtureTerms terms_of(const MixtureSetup& setup, const MixtureRing& ring) {
  const float ratio = ordinary_quotient(ring.yield, setup.yield);
  const float center2 = ring.x_mm * ring.x_mm + ring.y_mm * ring.y_mm;
  const float below = setup.radius_min_mm > ring.radius_mm ? setup.radius_min_mm - ring.radius_mm : 0.0F;
  const float above = ring.radius_mm > setup.radius_max_mm ? ring.radius_mm - setup.radius_max_mm : 0.0F;
  return {ring.yield * share_on_disk(ring.x_mm, ring.y_mm, ring.radius_mm) + setup.ring_penalty,
          center2 * setup.inverse_two_center2 + 0.25F * (below * below + above * above),
          setup.yield_shape * ((log_of(ratio) - ratio) + 1.0F),
          setup.disk_use != 0 ? kDiskPrior * log_of(4.0F * ring.disk_share * (1.0F - ring.disk_share)) : 0.0F};
}

NANET_HD inline float with_ring(const MixtureSetup& setup, float likelihood, const MixtureTerms& terms) {
  likelihood -= terms.light;
  likelihood -= terms.place;
  likelihood += terms.yield;
  if (setup.disk_use != 0) likelihood += terms.disk;
  return likelihood;
}

}  // namespace nanet::rich
