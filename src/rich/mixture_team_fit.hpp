// SPDX-License-Identifier: Apache-2.0
// EM of the mixture finder by a warp (mixture_team.hpp): two models side by side, each on half of the lanes. Lane l of a half has the hits l, l + 16,
// l + 32 ..., so it holds partial sum l of the rules of the bits (mixture_model.hpp); lane k moves ring k.
#pragma once

#include <cmath>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "rich/mixture_model.hpp"
#include "rich/mixture_team_memory.hpp"
#include "rich/ordinary_math.hpp"

namespace nanet::rich {

template <class Warp>
class MixtureTeamFit {
 public:
  using Memory = typename Warp::template Memory<MixtureTeamMemory>;

  // MixtureSearch's fit.
  [[gnu::noinline]] NANET_HD static void fit(Memory memory, MixtureSlot first, std::uint32_t count, std::uint32_t steps) {
    Warp::sync();
    MixtureTeamMemory& m = *memory;
    const std::uint32_t rings = m.models[first].count;
    NANET_UNROLL(1)
    for (std::uint32_t done = 0; done < count; done += 2) {
      const MixtureSlot second = done + 1 < count ? 1u : 0u;
      switch (rings) {
        case 0: fit_two<0>(m, first + done, second, steps); break;
        case 1: fit_two<1>(m, first + done, second, steps); break;
        case 2: fit_two<2>(m, first + done, second, steps); break;
        case 3: fit_two<3>(m, first + done, second, steps); break;
        default: fit_two<4>(m, first + done, second, steps); break;
      }
    }
  }

  // MixtureSearch's room.
  [[gnu::noinline]] NANET_HD static float room(Memory memory, MixtureSlot slot) {
    MixtureTeamMemory& m = *memory;
    Warp::sync();
    const MixtureModel& model = m.models[slot];
    const std::uint32_t rings = model.count;
    const float noise = model.noise;
    publish(m, 0, Warp::lane(), model.rings[Warp::lane() % kMaxRings], Warp::lane() < rings);
    Warp::sync();
    float sum = 0.0F;
    NANET_UNROLL(1)
    for (std::uint32_t first = 0; first < m.hit_count; first += kWarpLanes) {
      const std::uint32_t h = first + Warp::lane();
      float room = 0.0F;
      if (h < m.hit_count) {
        const float weight = m.weight[h];
        float total = noise;
        NANET_UNROLL(1)
        for (std::uint32_t k = 0; k < rings; ++k) total = total + at_hit(m, 0, k, h).density;
        room = log_of(1.0F + share_of(m.setup.pool_gain * weight, total));
        m.room[h] = room;
      }
      sum = sum + room;
      sum = sum + Warp::from_lane(room, (Warp::lane() + kMixtureLanes) % kWarpLanes);
    }
    Warp::sync();
    return Warp::from_lane(sum_of_half(sum), 0);
  }

  // The rings of a fitted model. A hit belongs to each ring that has a third of its density or more.
  [[gnu::noinline]] NANET_HD static void answer(Memory memory, MixtureSlot slot) {
    MixtureTeamMemory& m = *memory;
    Warp::sync();
    const MixtureModel& model = m.models[slot];
    publish(m, 0, Warp::lane(), model.rings[Warp::lane() % kMaxRings], Warp::lane() < model.count);
    Warp::sync();
    NANET_UNROLL(1)
    for (std::uint32_t k = 0; k < model.count; ++k) {
      std::uint32_t count = 0;
      float square = 0.0F;
      float time_ns = 0.0F;
      NANET_UNROLL(1)
      for (std::uint32_t first = 0; first < m.hit_count; first += kWarpLanes) {
        const std::uint32_t h = first + Warp::lane() < m.hit_count ? first + Warp::lane() : first;
        float total = model.noise;
        HitOnRing mine{};
        NANET_UNROLL(1)
        for (std::uint32_t j = 0; j < model.count; ++j) {
          const HitOnRing hit = at_hit(m, 0, j, h);
          total = total + hit.density;
          if (j == k) mine = hit;
        }
        const bool belongs = first + Warp::lane() < m.hit_count && !(mine.density * 3.0F < total);
        const float hit_square = mine.t * mine.t;
        const float hit_time_ns = time_of_key(m.keys[h]);
        NANET_UNROLL(1)
        for (std::uint32_t left = Warp::ballot(belongs); left != 0; left &= left - 1) {
          const std::uint32_t lane = Warp::first_bit(left);
          ++count;
          square = square + Warp::from_lane(hit_square, lane);
          time_ns = time_ns + Warp::from_lane(hit_time_ns, lane);
        }
      }
      if (count >= m.setup.hits_min && Warp::lane() == 0)
        m.found.rings[m.found.count++] = ring_of(model.rings[k], count, square, time_ns);
    }
    if (Warp::lane() == 0) sort_rings(m.found);
    Warp::sync();
  }

 private:
  struct HitOnRing {
    float t, cosine, sine, density;
  };

  NANET_HD static std::uint32_t half() { return Warp::lane() / kMixtureLanes; }
  NANET_HD static std::uint32_t lane_of_half() { return Warp::lane() % kMixtureLanes; }

  // Whether the lane moves a ring of its half's model.
  template <std::uint32_t rings>
  NANET_HD static bool lane_has_ring() {
    if constexpr (rings == 0) return false;
    return lane_of_half() + 1 <= rings;
  }

  // The tree of sum_lanes.
  NANET_HD static float sum_of_half(float sum) {
    sum = sum + Warp::from_other(sum, 8);
    sum = sum + Warp::from_other(sum, 4);
    sum = sum + Warp::from_other(sum, 2);
    return sum + Warp::from_other(sum, 1);
  }

  // Ring k of a side as hits see it, if the lane has one.
  NANET_HD static void publish(MixtureTeamMemory& m, std::uint32_t side, std::uint32_t k, const MixtureRing& ring, bool real) {
    const MixtureAmplitude amplitude = amplitude_of(m.setup, ring);
    const MixtureQuad seen{ring.x_mm, ring.y_mm, ring.radius_mm, amplitude.on_disk0};
    if (real) {
      m.fits.rings[side][k] = seen;
      m.fits.on_disk1[side][k] = amplitude.on_disk0 + amplitude.more_on_disk1;
    }
  }

  NANET_HD static HitOnRing at_hit(const MixtureTeamMemory& m, std::uint32_t side, std::uint32_t k, std::uint32_t h) {
    const MixtureQuad ring = m.fits.rings[side][k];
    const float amplitude = h < m.on_disk0 ? ring.w : m.fits.on_disk1[side][k];
    const float dx = m.hits[h].x - ring.x;
    const float dy = m.hits[h].y - ring.y;
    const float d = ordinary_root(dx * dx + dy * dy) + 1.0e-3F;  // what is near 0 vanishes beside the last term
    const float inverse_d = ordinary_inverse(d);
    const float t = d - ring.z;
    return {t, dx * inverse_d, dy * inverse_d, (amplitude * m.weight[h]) * spread_at(m.setup, t)};
  }

  // EM of the models of slots `first` and `first` + `second`, then their likelihoods. `second` is 0, and both halves do the same, or 1.
  template <std::uint32_t rings>
  NANET_HD static void fit_two(MixtureTeamMemory& m, MixtureSlot first, std::uint32_t second, std::uint32_t steps) {
    const std::uint32_t side = half();
    const std::uint32_t k = lane_of_half();
    MixtureModel& model = m.models[first + side * second];
    const bool has_ring = lane_has_ring<rings>();
    MixtureRing ring = model.rings[has_ring ? k : 0];  // lanes without a ring do what the first does, and no one looks
    float noise = model.noise;
    publish(m, side, k, ring, has_ring);
    Warp::sync();
    if constexpr (rings > 0) {
      const std::uint32_t own = ((1u << rings) - 1u) << (side * kMixtureLanes);  // lanes that move rings of this model
      std::uint32_t in_motion = ~0u;                                             // lanes whose ring is not still
      NANET_UNROLL(1)
      for (std::uint32_t step = 0; step < steps && in_motion != 0; ++step) {
        add_up<rings>(m, side, noise);
        float moved_mm = 0.0F;
        if ((in_motion & own) != 0) moved_mm = maximise<rings>(m, side, ring, noise);
        in_motion = Warp::ballot(has_ring && !(moved_mm < kMixtureStill));
        publish(m, side, k, ring, has_ring);
        Warp::sync();
      }
    }
    const float likelihood = evaluate<rings>(m, side, ring, noise);
    if (side <= second) {
      if (has_ring) model.rings[k] = ring;
      if (k == 0) {
        model.noise = noise;
        model.likelihood = likelihood;
      }
    }
    Warp::sync();
  }

  // The sums of each ring.
  template <std::uint32_t rings>
  NANET_HD static void add_up(MixtureTeamMemory& m, std::uint32_t side, float noise) {
    float sums[rings][kSumSpare] = {};
    const std::uint32_t lane = lane_of_half();
    NANET_UNROLL(1)
    for (std::uint32_t h = lane; h < padded_count(m.hit_count); h += kMixtureLanes) {
      HitOnRing hit[rings];
      float total = noise;
      for (std::uint32_t k = 0; k < rings; ++k) {
        hit[k] = at_hit(m, side, k, h);
        total = total + hit[k].density;
      }
      const float disk = h < m.on_disk0 ? 0.0F : 1.0F;
      for (std::uint32_t k = 0; k < rings; ++k) {
        add_hit(m.setup, share_of(hit[k].density, total), hit[k].t, hit[k].cosine, hit[k].sine, disk,
                [&](MixtureSum sum, float value) { sums[k][sum] = sums[k][sum] + value; });
      }
    }
    for (std::uint32_t k = 0; k < rings; ++k) {
      for (std::uint32_t s = 0; s < kSumSpare; ++s) m.fits.rows[side][s][lane] = sums[k][s];
      Warp::sync();
      const float sum = sum_row(m.fits.rows[side][lane < kSumSpare ? lane : 0]);
      if (lane < kSumSpare) m.fits.sums[side][k][lane] = sum;
      Warp::sync();
    }
  }

  // As sum_lanes.
  NANET_HD static float sum_row(const float* row) {
    const auto* const quads = reinterpret_cast<const MixtureQuad*>(row);
    const MixtureQuad a = quads[0];
    const MixtureQuad b = quads[1];
    const MixtureQuad c = quads[2];
    const MixtureQuad d = quads[3];
    const float quad0 = (a.x + c.x) + (b.x + d.x);
    const float quad1 = (a.y + c.y) + (b.y + d.y);
    const float quad2 = (a.z + c.z) + (b.z + d.z);
    const float quad3 = (a.w + c.w) + (b.w + d.w);
    return (quad0 + quad2) + (quad1 + quad3);
  }

  // One step of this lane's ring and of the noise; returns how far the ring moved.
  template <std::uint32_t rings>
  NANET_HD static float maximise(const MixtureTeamMemory& m, std::uint32_t side, MixtureRing& ring, float& noise) {
    const float moved_mm = maximise_ring(m.setup, m.fits.sums[side][lane_has_ring<rings>() ? lane_of_half() : 0], ring);
    float in_rings = 0.0F;
    for (std::uint32_t j = 0; j < rings; ++j) in_rings = in_rings + m.fits.sums[side][j][kSumHits];
    noise = maximise_noise(m.setup, m.hit_count, in_rings);
    return moved_mm;
  }

  // The log likelihood with all priors.
  template <std::uint32_t rings>
  NANET_HD static float evaluate(const MixtureTeamMemory& m, std::uint32_t side, const MixtureRing& ring, float noise) {
    float sum = 0.0F;
    NANET_UNROLL(1)
    for (std::uint32_t h = lane_of_half(); h < m.hit_count; h += kMixtureLanes) {
      float total = noise;
      if constexpr (rings > 0) {
        for (std::uint32_t k = 0; k < rings; ++k) total = total + at_hit(m, side, k, h).density;
      }
      sum = sum + log_of(total);
    }
    float likelihood = with_noise(m.setup, sum_of_half(sum), noise);
    if constexpr (rings > 0) {
      const MixtureTerms mine = terms_of(m.setup, ring);
      for (std::uint32_t k = 0; k < rings; ++k) {
        const std::uint32_t lane = side * kMixtureLanes + k;
        likelihood = with_ring(m.setup, likelihood,
                               {Warp::from_lane(mine.light, lane), Warp::from_lane(mine.place, lane),
                                Warp::from_lane(mine.yield, lane), Warp::from_lane(mine.disk, lane)});
      }
    }
    return likelihood;
  }
};

}  // namespace nanet::rich
