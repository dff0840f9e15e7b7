// SPDX-License-Identifier: Apache-2.0
// The loops of the mixture finder (mixture.hpp) over hits and over start circles as one thread does them, scalar; src/rich/mixture.cpp has the same
// loops in vectors, mixture_team.hpp in the lanes of a GPU. What they compute of a hit or a circle, and the rules of the bits: mixture_model.hpp.
//
// Thread rules: pure functions on the caller's memory, no allocation, no exception.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "rich/hit_plane.hpp"
#include "rich/mixture_model.hpp"

namespace nanet::rich {

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

struct MixturePool {
  alignas(64) float x_mm[kMixturePool + 2 * kMixtureLanes];
  alignas(64) float y_mm[kMixturePool + 2 * kMixtureLanes];
  alignas(64) float radius_mm[kMixturePool + 2 * kMixtureLanes];
  alignas(64) float price[kMixturePool + 2 * kMixtureLanes];  // hits expected and the prior of the centre
  alignas(64) float score[kMixturePool + 2 * kMixtureLanes];
  std::uint32_t split = 0;  // circles from here on go through hits on disk 1; a multiple of kMixtureLanes
  std::uint32_t count = 0;
};

struct MixtureWork {
  alignas(64) float density[kMaxRings][kMaxHits];  // of each ring at each hit, over that of the noise expected
  alignas(64) float residual_mm[kMaxRings][kMaxHits];
  alignas(64) float cosine[kMaxRings][kMaxHits];
  alignas(64) float sine[kMaxRings][kMaxHits];
  alignas(64) float total[kMaxHits];                     // of all rings and the noise
  alignas(64) float lanes[kMixtureSums][kMixtureLanes];  // partial sums
  alignas(64) float sums[kMaxRings][kMixtureSums];       // of each ring
};

struct MixtureScalarKernels {
  // Circles through triplets of hits on one disk.
  NANET_HD static void make_pool(const MixtureHits& hits, const MixtureSetup& setup, MixturePool& pool) {
    const std::uint32_t stride = pair_stride(hits.on_disk0, hits.count);
    pool.count = 0;
    add_circles(hits, setup, 0, hits.on_disk0, stride, pool);
    while (pool.count % kMixtureLanes != 0) add_nothing(pool);
    pool.split = pool.count;
    add_circles(hits, setup, hits.on_disk0, hits.count, stride, pool);
  }

  // score: what one more ring on each circle would gain, about.
  NANET_HD static void score_pool(const MixtureHits& hits, const MixtureSetup& setup, MixturePool& pool) {
    for (std::uint32_t c = 0; c < pool.count; ++c) {
      const MixtureReach reach = reach_of({pool.x_mm[c], pool.y_mm[c], pool.radius_mm[c]});
      float score = pool.price[c];
      for (std::uint32_t h = 0; h < hits.count; ++h) {
        const bool same_disk = (h < hits.on_disk0) == (c < pool.split);
        const float room = same_disk ? hits.room[h] : kOtherDisk * hits.room[h];
        score = score + room * nearness(setup, reach, hits.x_mm[h], hits.y_mm[h], hits.z_mm2[h]);
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
      const MixtureCircle other{pool.x_mm[c], pool.y_mm[c], pool.radius_mm[c]};
      pool.score[c] = is_near(other, circle, distance_mm) ? -1.0e9F : pool.score[c];
    }
  }

  // Densities of all rings and their total at each hit.
  NANET_HD static void densities(const MixtureHits& hits, const MixtureSetup& setup, const MixtureModel& model, MixtureWork& work) {
    const std::uint32_t padded = padded_count(hits.count);
    for (std::uint32_t h = 0; h < padded; ++h) work.total[h] = model.noise;
    for (std::uint32_t k = 0; k < model.count; ++k) {
      const MixtureRing& ring = model.rings[k];
      const MixtureAmplitude amplitude = amplitude_of(setup, ring);
      for (std::uint32_t h = 0; h < padded; ++h) {
        const float dx = hits.x_mm[h] - ring.x_mm;
        const float dy = hits.y_mm[h] - ring.y_mm;
        const float d = std::sqrt(dx * dx + dy * dy) + 1.0e-3F;
        const float inverse_d = 1.0F / d;
        const float t = d - ring.radius_mm;
        const float share = (amplitude.on_disk0 + amplitude.more_on_disk1 * hits.disk[h]) * hits.weight[h];
        const float density = share * spread_at(setup, t);
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
        add_hit(setup, share, work.residual_mm[k][h], work.cosine[k][h], work.sine[k][h], hits.disk[h],
                [&](MixtureSum sum, float value) { work.lanes[sum][l] += value; });
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
    MixtureCircle circle;
    if (!circle_through(setup, hits.x_mm[i], hits.y_mm[i], ax, ay, aa, hits.x_mm[k], hits.y_mm[k], circle)) return;
    pool.x_mm[pool.count] = circle.x_mm;
    pool.y_mm[pool.count] = circle.y_mm;
    pool.radius_mm[pool.count] = circle.radius_mm;
    pool.price[pool.count] = start_price(setup, circle);
    ++pool.count;
  }
};

}  // namespace nanet::rich
