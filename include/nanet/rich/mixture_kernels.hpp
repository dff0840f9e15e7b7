// SPDX-License-Identifier: Apache-2.0
// The loops of the mixture finder (mixture.hpp) over hits and over start circles, scalar; src/rich/mixture.cpp has the same loops in vectors.
//
// Bits: everything is float, + - x / sqrt and integers only. What is summed over hits is summed in kMixtureLanes interleaved partial sums and
// one tree (sum_lanes), whatever the width of a vector; what is summed for a start circle is summed hit by hit.
// Thread rules: pure functions on the caller's memory, no allocation, no exception.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/rich/hit_plane.hpp"

namespace nanet::rich {

inline constexpr std::uint32_t kMixtureLanes = 16;
inline constexpr std::uint32_t kMixturePool = 1024;      // start circles at most
inline constexpr std::uint32_t kMixtureTriplets = 2000;  // of hits tried, about; more hits: only every n-th pair is a base
inline constexpr float kOtherDisk = 0.3F;                // what a hit counts for a start circle through hits on the other disk
inline constexpr float kPmAreaMm2 = 280.59223F;          // of a hexagon of 18 mm pitch
inline constexpr float kDiskRadiusMm = 300.0F;           // of a circle that holds about as much of a ring as the disk does

// Spread of a hit's distance t from its ring: density exp(-(kSpreadA t^2 + kSpreadB t^4)) kSpreadPeak for kSpreadRmsMm. A hexagon's chord, smeared: flatter
// than a Gaussian in the middle, and with hardly any tail.
inline constexpr float kSpreadA = 5.83e-3F;
inline constexpr float kSpreadB = 7.62e-5F;
inline constexpr float kSpreadPeak = 0.0629F;
inline constexpr float kSpreadRmsMm = 5.48F;

// What follows from the cuts, once a call.
struct MixtureSetup {
  float spread_a = 0, spread_b = 0;  // of the distance
  float amplitude = 0;               // times hits / radius: density of a ring on its circle over that of the noise expected
  float pool_gain = 0;               // the same for an expected ring of middle radius
  float inverse_reach2 = 0;          // 1 / square of the distance where a start circle no longer counts a hit
  float inverse_two_center2 = 0;     // 1 / (2 sigma^2) of the centre
  float yield = 0;
  float radius_min_mm = 0, radius_max_mm = 0, pair_distance2_min = 0;
};

inline constexpr std::uint32_t kMixtureColumn = kMaxHits + kMixtureLanes;

// Hits of one event. Columns are padded with hits far outside and of weight 0: to a multiple of kMixtureLanes and as much again, since
// vectors may start anywhere.
struct MixtureHits {
  alignas(64) float x_mm[kMixtureColumn];
  alignas(64) float y_mm[kMixtureColumn];
  alignas(64) float z_mm2[kMixtureColumn];   // x^2 + y^2
  alignas(64) float disk[kMixtureColumn];    // 0 or 1
  alignas(64) float weight[kMixtureColumn];  // density of the hit's time on a ring over that of the noise; 1 where time is not used
  alignas(64) float room[kMixtureColumn];    // log likelihood that the hit would gain in the middle of one more ring
  std::uint32_t on_disk0 = 0;                // hits; those on disk 1 follow
  std::uint32_t count = 0;
};

struct MixtureCircle {
  float x_mm, y_mm, radius_mm;
};

struct MixturePool {
  alignas(64) float x_mm[kMixturePool + 2 * kMixtureLanes];
  alignas(64) float y_mm[kMixturePool + 2 * kMixtureLanes];
  alignas(64) float radius_mm[kMixturePool + 2 * kMixtureLanes];
  alignas(64) float price[kMixturePool + 2 * kMixtureLanes];  // hits expected and the prior of the centre
  alignas(64) float score[kMixturePool + 2 * kMixtureLanes];
  std::uint32_t split = 0;  // circles from here on go through hits on disk 1; a multiple of kMixtureLanes
  std::uint32_t count = 0;
};

struct MixtureRing {
  float x_mm, y_mm, radius_mm;
  float yield;       // hits, if all of the ring were on the disk
  float disk_share;  // of the ring's light that is on disk 1
};

struct MixtureModel {
  MixtureRing rings[kMaxRings];
  std::uint32_t count = 0;
  float noise = 1;       // over the noise expected
  float likelihood = 0;  // log, with priors
};

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

struct MixtureWork {
  alignas(64) float density[kMaxRings][kMaxHits];  // of each ring at each hit, over that of the noise expected
  alignas(64) float residual_mm[kMaxRings][kMaxHits];
  alignas(64) float cosine[kMaxRings][kMaxHits];
  alignas(64) float sine[kMaxRings][kMaxHits];
  alignas(64) float total[kMaxHits];                     // of all rings and the noise
  alignas(64) float lanes[kMixtureSums][kMixtureLanes];  // partial sums
  alignas(64) float sums[kMaxRings][kMixtureSums];       // of each ring
};

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
  const float s = (m - 1.0F) / (m + 1.0F);
  const float s2 = s * s;
  return static_cast<float>(k) * 0.69314718F + s * (2.0F + s2 * (0.66666667F + s2 * (0.4F + s2 * 0.28571429F)));
}

// Share of a circle that lies on the disk. x, y: centre.
NANET_HD inline float share_on_disk(float x_mm, float y_mm, float radius_mm) {
  const float d2 = x_mm * x_mm + y_mm * y_mm;
  const float d = std::sqrt(d2);
  const float cosine = ((kDiskRadiusMm * kDiskRadiusMm - d2) - radius_mm * radius_mm) / (2.0F * d * radius_mm + 1.0F);
  const float c = cosine < 1.0F ? (cosine > -1.0F ? cosine : -1.0F) : 1.0F;
  const float a = c < 0.0F ? -c : c;
  // arc cosine over pi, Abramowitz and Stegun 4.4.45
  const float arc = std::sqrt(1.0F - a) * (0.5F + a * (-0.067509F + a * (0.023636F - a * 0.0059618F)));
  return c < 0.0F ? arc : 1.0F - arc;
}

// Sum of kMixtureLanes partial sums.
NANET_HD inline float sum_lanes(const float* lanes) {
  float quad[4];
  for (std::uint32_t l = 0; l < 4; ++l) quad[l] = (lanes[l] + lanes[l + 8]) + (lanes[l + 4] + lanes[l + 12]);
  return (quad[0] + quad[2]) + (quad[1] + quad[3]);
}

NANET_HD constexpr std::uint32_t padded_count(std::uint32_t count) { return (count + (kMixtureLanes - 1)) & ~(kMixtureLanes - 1); }

// Every how many pairs of hits one is the base of triplets, and the triplets' third hits.
NANET_HD constexpr std::uint32_t pair_stride(const MixtureHits& hits) {
  const auto triplets = [](std::uint32_t n) { return n < 3 ? 0 : n * (n - 1) * (n - 2) / 6; };
  return 1 + (triplets(hits.on_disk0) + triplets(hits.count - hits.on_disk0)) / kMixtureTriplets;
}

struct MixtureScalarKernels {
  // Circles through triplets of hits on one disk.
  NANET_HD static void make_pool(const MixtureHits& hits, const MixtureSetup& setup, MixturePool& pool) {
    const std::uint32_t stride = pair_stride(hits);
    pool.count = 0;
    add_circles(hits, setup, 0, hits.on_disk0, stride, pool);
    while (pool.count % kMixtureLanes != 0) add_nothing(pool);
    pool.split = pool.count;
    add_circles(hits, setup, hits.on_disk0, hits.count, stride, pool);
  }

  // score: what one more ring on each circle would gain, about.
  NANET_HD static void score_pool(const MixtureHits& hits, const MixtureSetup& setup, MixturePool& pool) {
    for (std::uint32_t c = 0; c < pool.count; ++c) {
      const float x = pool.x_mm[c];
      const float y = pool.y_mm[c];
      const float r = pool.radius_mm[c];
      const float half_inverse = 0.5F / r;
      const float px = (x + x) * half_inverse;
      const float py = (y + y) * half_inverse;
      const float pc = ((r * r - x * x) - y * y) * half_inverse;
      float score = pool.price[c];
      for (std::uint32_t h = 0; h < hits.count; ++h) {
        const float t = ((hits.z_mm2[h] * half_inverse - hits.x_mm[h] * px) - hits.y_mm[h] * py) - pc;  // (d^2 - R^2) / 2R
        const float u = 1.0F - (t * t) * setup.inverse_reach2;
        const float v = u > 0.0F ? u : 0.0F;
        const bool same_disk = (h < hits.on_disk0) == (c < pool.split);
        score = score + (same_disk ? hits.room[h] : kOtherDisk * hits.room[h]) * (v * v);
      }
      pool.score[c] = score;
    }
  }

  // Index of the first of the best circles.
  NANET_HD static std::uint32_t best_circle(const MixturePool& pool) {
    std::uint32_t best = 0;
    for (std::uint32_t c = 1; c < pool.count; ++c) best = pool.score[c] > pool.score[best] ? c : best;
    return best;
  }

  // Takes the circles near this one out of the choice.
  NANET_HD static void drop_near(const MixtureCircle& circle, float distance_mm, MixturePool& pool) {
    for (std::uint32_t c = 0; c < pool.count; ++c) {
      const float d = (std::abs(pool.x_mm[c] - circle.x_mm) + std::abs(pool.y_mm[c] - circle.y_mm)) +
                      std::abs(pool.radius_mm[c] - circle.radius_mm);
      pool.score[c] = d < distance_mm ? -1.0e9F : pool.score[c];
    }
  }

  // Densities of all rings and their total at each hit.
  NANET_HD static void densities(const MixtureHits& hits, const MixtureSetup& setup, const MixtureModel& model, MixtureWork& work) {
    const std::uint32_t padded = padded_count(hits.count);
    for (std::uint32_t h = 0; h < padded; ++h) work.total[h] = model.noise;
    for (std::uint32_t k = 0; k < model.count; ++k) {
      const MixtureRing& ring = model.rings[k];
      const float amplitude = setup.amplitude * ring.yield / ring.radius_mm;
      const float amplitude0 = amplitude * (1.0F - ring.disk_share);
      const float amplitude1 = amplitude * ring.disk_share - amplitude0;
      for (std::uint32_t h = 0; h < padded; ++h) {
        const float dx = hits.x_mm[h] - ring.x_mm;
        const float dy = hits.y_mm[h] - ring.y_mm;
        const float d = std::sqrt(dx * dx + dy * dy) + 1.0e-3F;
        const float inverse_d = 1.0F / d;
        const float t = d - ring.radius_mm;
        const float q = t * t;
        const float p = q * (setup.spread_a + setup.spread_b * q);
        const float density = ((amplitude0 + amplitude1 * hits.disk[h]) * hits.weight[h]) * exp_minus(p < 80.0F ? p : 80.0F);
        work.cosine[k][h] = dx * inverse_d;
        work.sine[k][h] = dy * inverse_d;
        work.residual_mm[k][h] = t;
        work.density[k][h] = density;
        work.total[h] = work.total[h] + density;
      }
    }
  }

  // The sums of each ring, after densities.
  NANET_HD static void add_up(const MixtureHits& hits, const MixtureSetup& setup, std::uint32_t rings, MixtureWork& work) {
    const std::uint32_t padded = padded_count(hits.count);
    for (std::uint32_t k = 0; k < rings; ++k) {
      for (std::uint32_t s = 0; s < kMixtureSums; ++s) {
        for (std::uint32_t l = 0; l < kMixtureLanes; ++l) work.lanes[s][l] = 0.0F;
      }
      for (std::uint32_t h = 0; h < padded; ++h) {
        const std::uint32_t l = h % kMixtureLanes;
        const float share = work.density[k][h] / work.total[h];
        const float t = work.residual_mm[k][h];
        const float c = work.cosine[k][h];
        const float s = work.sine[k][h];
        const float bq = setup.spread_b * (t * t);
        const float curvature = share * (setup.spread_a + 6.0F * bq);   // half the second derivative
        const float pull = (share * (setup.spread_a + 2.0F * bq)) * t;  // half the first
        const float wc = curvature * c;
        const float ws = curvature * s;
        work.lanes[kSumCC][l] += wc * c;
        work.lanes[kSumCS][l] += wc * s;
        work.lanes[kSumSS][l] += ws * s;
        work.lanes[kSumC][l] += wc;
        work.lanes[kSumS][l] += ws;
        work.lanes[kSumN][l] += curvature;
        work.lanes[kSumTC][l] += pull * c;
        work.lanes[kSumTS][l] += pull * s;
        work.lanes[kSumT][l] += pull;
        work.lanes[kSumHits][l] += share;
        work.lanes[kSumDisk][l] += share * hits.disk[h];
      }
      for (std::uint32_t s = 0; s < kMixtureSums; ++s) work.sums[k][s] = sum_lanes(work.lanes[s]);
    }
  }

  // Sum over hits of log(total), after densities.
  NANET_HD static float log_total(const MixtureHits& hits, MixtureWork& work) {
    for (std::uint32_t l = 0; l < kMixtureLanes; ++l) work.lanes[0][l] = 0.0F;
    const std::uint32_t padded = padded_count(hits.count);
    for (std::uint32_t h = 0; h < padded; ++h) work.lanes[0][h % kMixtureLanes] += h < hits.count ? log_of(work.total[h]) : 0.0F;
    return sum_lanes(work.lanes[0]);
  }

  // The room of each hit, after densities; returns its sum.
  NANET_HD static float find_room(const MixtureSetup& setup, MixtureHits& hits, MixtureWork& work) {
    for (std::uint32_t l = 0; l < kMixtureLanes; ++l) work.lanes[0][l] = 0.0F;
    const std::uint32_t padded = padded_count(hits.count);
    for (std::uint32_t h = 0; h < padded; ++h) {
      hits.room[h] = log_of(1.0F + (setup.pool_gain * hits.weight[h]) / work.total[h]);
      work.lanes[0][h % kMixtureLanes] += hits.room[h];
    }
    return sum_lanes(work.lanes[0]);
  }

 private:
  // Through hits begin .. end - 1.
  NANET_HD static void add_circles(const MixtureHits& hits, const MixtureSetup& setup, std::uint32_t begin, std::uint32_t end,
                                   std::uint32_t stride, MixturePool& pool) {
    std::uint32_t left = 1;
    for (std::uint32_t i = begin; i + 2 < end; ++i) {
      for (std::uint32_t j = i + 1; j + 1 < end; ++j) {
        if (--left != 0) continue;
        left = stride;
        const float ax = hits.x_mm[j] - hits.x_mm[i];
        const float ay = hits.y_mm[j] - hits.y_mm[i];
        const float aa = ax * ax + ay * ay;
        if (aa < setup.pair_distance2_min) continue;
        for (std::uint32_t k = j + 1; k < end; ++k) {
          if (pool.count < kMixturePool) add_circle(hits, setup, i, k, ax, ay, aa, pool);
        }
      }
    }
  }

  // A circle that wins nothing.
  NANET_HD static void add_nothing(MixturePool& pool) {
    pool.x_mm[pool.count] = kFarMm;
    pool.y_mm[pool.count] = kFarMm;
    pool.radius_mm[pool.count] = 1.0F;
    pool.price[pool.count] = -2.0e9F;
    ++pool.count;
  }

  NANET_HD static void add_circle(const MixtureHits& hits, const MixtureSetup& setup, std::uint32_t i, std::uint32_t k, float ax,
                                  float ay, float aa, MixturePool& pool) {
    const float bx = hits.x_mm[k] - hits.x_mm[i];
    const float by = hits.y_mm[k] - hits.y_mm[i];
    const float wx = bx - ax;
    const float wy = by - ay;
    const float bb = bx * bx + by * by;
    const float ww = wx * wx + wy * wy;
    const float cross = ax * by - ay * bx;
    const bool wide = bb >= setup.pair_distance2_min && ww >= setup.pair_distance2_min && std::abs(cross) >= 1.0F;
    const float half_inverse = 0.5F / (wide ? cross : 1.0F);
    const float ux = (by * aa - ay * bb) * half_inverse;
    const float uy = (ax * bb - bx * aa) * half_inverse;
    const float r = std::sqrt(ux * ux + uy * uy);
    const float x = hits.x_mm[i] + ux;
    const float y = hits.y_mm[i] + uy;
    if (!(wide && r >= setup.radius_min_mm && r <= setup.radius_max_mm)) return;
    pool.x_mm[pool.count] = x;
    pool.y_mm[pool.count] = y;
    pool.radius_mm[pool.count] = r;
    pool.price[pool.count] = -setup.yield * share_on_disk(x, y, r) - (x * x + y * y) * setup.inverse_two_center2;
    ++pool.count;
  }
};

}  // namespace nanet::rich
