// SPDX-License-Identifier: Apache-2.0
// The robust-triplets finder by a warp an event: triplets, then circles, then hits are dealt to the lanes. What it does with them is the finder's own code
// (rich/triplets.hpp); these are its kernels.
//
// Bits: each circle is scored by one lane, over the hits in their order; sums of a fit are formed in the order that the scalar function keeps too (hit k goes to
// partial sum k mod 16, these are added 8 apart, 4, 2, 1); other sums over hits are formed by every lane for itself, in order.
#pragma once

#include "gpu/kernels/packed_points.hpp"
#include "gpu/kernels/team.cuh"
#include "gpu/kernels/team_finder.cuh"
#include "rich/triplets.hpp"

namespace nanet::gpu {

struct TripletKernels {
  using Lanes = Team<32>;
  using Circle = rich::triplets::Circle;
  using CircleCuts = rich::triplets::CircleCuts;
  using SeedBest = rich::triplets::SeedBest;
  using FitSums = rich::triplets::FitSums;
  using Gain = rich::triplets::Gain;
  using RingTotals = rich::triplets::RingTotals;
  static constexpr std::uint32_t kHits = rich::kMaxHits;
  static constexpr std::uint32_t kPartners = rich::triplets::kPartnersMax;

  // A circle seen from its seed.
  struct Candidates {
    float p_mm[64], q_mm[64], r4_mm2[64], time_ns[64];
  };

  // Terms of sums over hits, of which zeros fill up the last four.
  struct Terms {
    float first[kHits], second[kHits];
  };

  struct Shared {
    alignas(16) float4 seen[kHits];  // from the seed: x, y, x^2 + y^2, and the weight; outside of searches, nearness to each ring
    alignas(16) float x_mm[kHits];
    alignas(16) float y_mm[kHits];
    alignas(16) float time_ns[kHits];
    alignas(16) float weight[kHits];
    alignas(16) float search_weight[kHits];
    union {
      Candidates candidates;  // while a seed is looked at
      Terms terms;            // else
    };
    std::uint8_t search_hit[kHits];  // of each hit of a search, its number in the event
    std::uint8_t partner[kHits];     // of a seed, numbers in the search
  };

  // As rich::triplets::PlaneHits, elsewhere.
  struct Hits {
    struct {
      const float* x_mm;
      const float* y_mm;
      std::uint32_t count;
      std::uint32_t truncated;
    } plane;
    const float* time_ns;
  };

  struct Arrays {
    __device__ Arrays(Shared& s, std::uint32_t hit_count, std::uint32_t truncated)
        : shared(s),
          hits{{s.x_mm, s.y_mm, hit_count, truncated}, s.time_ns},
          weight(s.weight),
          nearness(reinterpret_cast<float (*)[kHits]>(s.seen)) {}
    Shared& shared;
    Hits hits;
    float* weight;
    float (*nearness)[kHits];
  };

  struct Search {
    struct {
      const float* weight;
      std::uint32_t count;
    } hits;
    float left;
  };

  struct View {
    float seed_x_mm, seed_y_mm, seed_time_ns;
    std::uint32_t count;
    std::uint32_t partner_count;
  };

  template <class F>
  __device__ static void each(std::uint32_t count, F f) {
    Lanes::sync();
#pragma unroll 1
    for (std::uint32_t k = Lanes::lane(); k < count; k += 32) f(k);
    Lanes::sync();
  }

  // Appends the lanes' values for which `take` is true, in order of lanes: where this lane's goes.
  __device__ static std::uint32_t place(bool take, std::uint32_t& count) {
    const std::uint32_t takers = Lanes::ballot(take);
    const std::uint32_t at = count + static_cast<std::uint32_t>(__popc(takers & ((1u << Lanes::lane()) - 1u)));
    count += static_cast<std::uint32_t>(__popc(takers));
    return at;
  }

  __device__ static Search take_search(Arrays& arrays) {
    Shared& s = arrays.shared;
    const std::uint32_t hits = arrays.hits.plane.count;
    std::uint32_t count = 0;
    Lanes::sync();
#pragma unroll 1
    for (std::uint32_t k = Lanes::lane(); k - Lanes::lane() < hits; k += 32) {
      const float weight = k < hits ? s.weight[k] : 0.0F;
      const bool take = k < hits && weight >= rich::triplets::kSearchWeightMin;
      const std::uint32_t at = place(take, count);
      if (!take) continue;
      s.search_weight[at] = weight;
      s.search_hit[at] = static_cast<std::uint8_t>(k);
    }
    Lanes::sync();
    return {{s.search_weight, count}, sum_of_weights(arrays)};
  }

  __device__ static View view_from_seed(Arrays& arrays, const Search& search, std::uint32_t seed, const CircleCuts& cuts) {
    Shared& s = arrays.shared;
    const std::uint32_t of_seed = s.search_hit[seed];
    View view{s.x_mm[of_seed], s.y_mm[of_seed], s.time_ns[of_seed], search.hits.count, 0};
    const float distance2_min = cuts.pair_distance_min_mm * cuts.pair_distance_min_mm;
    const float window_ns = cuts.time_window_ns > 0.0F ? cuts.time_window_ns : 1.0e9F;
    Lanes::sync();
#pragma unroll 1
    for (std::uint32_t k = Lanes::lane(); k - Lanes::lane() < view.count; k += 32) {
      bool take = false;
      if (k < view.count) {
        const std::uint32_t hit = s.search_hit[k];
        const float dx = s.x_mm[hit] - view.seed_x_mm;
        const float dy = s.y_mm[hit] - view.seed_y_mm;
        const float dt = s.time_ns[hit] - view.seed_time_ns;
        const float z = dx * dx + dy * dy;
        const float weight = s.search_weight[k];
        s.seen[k] = float4{dx, dy, z, weight};
        take = (k > seed) & (z >= distance2_min) & (weight >= cuts.partner_weight_min) & (dt * dt <= window_ns * window_ns);
      }
      const std::uint32_t at = place(take, view.partner_count);
      if (take) s.partner[at] = static_cast<std::uint8_t>(k);
    }
    Lanes::sync();
    if (view.partner_count > kPartners) thin(s, view.partner_count);
    return view;
  }

  // Of many partners evenly chosen ones.
  __device__ static void thin(Shared& s, std::uint32_t& count) {
    const std::uint8_t first = s.partner[Lanes::lane() * count / kPartners];
    const std::uint8_t second = s.partner[(Lanes::lane() + 32) * count / kPartners];
    Lanes::sync();
    s.partner[Lanes::lane()] = first;
    s.partner[Lanes::lane() + 32] = second;
    count = kPartners;
    Lanes::sync();
  }

  // A circle through the seed and two partners, and whether it is to be scored; as rich::triplets::collect_circles.
  struct Candidate {
    float p, q, r4, time;
    bool good;
  };
  __device__ static Candidate candidate_of(const Arrays& arrays, const View& view, std::uint32_t j, std::uint32_t k,
                                           const CircleCuts& cuts) {
    const Shared& s = arrays.shared;
    const float4 a = s.seen[s.partner[j]];
    const float4 b = s.seen[s.partner[k]];
    const float ta = s.time_ns[s.search_hit[s.partner[j]]];
    const float tb = s.time_ns[s.search_hit[s.partner[k]]];
    const float distance2_min = cuts.pair_distance_min_mm * cuts.pair_distance_min_mm;
    const float r4_min = 4.0F * (cuts.radius_min_mm * cuts.radius_min_mm);
    const float r4_max = 4.0F * (cuts.radius_max_mm * cuts.radius_max_mm);
    const float center2_max = cuts.center_max_mm * cuts.center_max_mm;
    const float window_ns = cuts.time_window_ns > 0.0F ? cuts.time_window_ns : 1.0e9F;
    const float dx = b.x - a.x;
    const float dy = b.y - a.y;
    const float dt = tb - ta;
    const float det = a.x * b.y - b.x * a.y;
    const bool flat = !(det * det >= 1.0F);
    const float inverse = 1.0F / (flat ? 1.0F : det);
    const float p = (a.z * b.y - b.z * a.y) * inverse;
    const float q = (a.x * b.z - b.x * a.z) * inverse;
    const float r4 = p * p + q * q;
    const float center_x = 0.5F * p + view.seed_x_mm;
    const float center_y = 0.5F * q + view.seed_y_mm;
    const bool apart = (dx * dx + dy * dy >= distance2_min) & (dt * dt <= window_ns * window_ns);
    const bool sized = (r4 >= r4_min) & (r4 <= r4_max) & (center_x * center_x + center_y * center_y <= center2_max);
    return {p, q, r4, ((view.seed_time_ns + ta) + tb) * (1.0F / 3.0F), !flat && apart && sized};
  }

  // All pairs of partners, 32 at a time; those that make a circle wait until there are 32 of them.
  __device__ static void best_of_seed(Arrays& arrays, const View& view, const CircleCuts& cuts, SeedBest& best) {
    Candidates& list = arrays.shared.candidates;
    const std::uint32_t n = view.partner_count;
    const std::uint32_t pairs = n * (n - 1) / 2;
    std::uint32_t j = 0;
    std::uint32_t k = 1 + Lanes::lane();
    std::uint32_t waiting = 0;
    std::uint32_t scored = 0;  // circles before those that wait
    std::uint32_t best_at = 0;
    SeedBest mine = best;
#pragma unroll 1
    for (std::uint32_t first = 0; first < pairs; first += 32) {
      const bool is_pair = first + Lanes::lane() < pairs;
#pragma unroll 1
      while (is_pair && k >= n) {  // row j is at its end
        k = k - n + j + 2;
        ++j;
      }
      Candidate candidate{};
      if (is_pair) candidate = candidate_of(arrays, view, j, k, cuts);
      k += 32;
      const std::uint32_t at = place(candidate.good, waiting);
      if (candidate.good) {
        list.p_mm[at] = candidate.p;
        list.q_mm[at] = candidate.q;
        list.r4_mm2[at] = candidate.r4;
        list.time_ns[at] = candidate.time;
      }
      Lanes::sync();
      if (waiting < 32) continue;
      score(arrays, view, cuts, 32, scored, mine, best_at);
      waiting -= 32;
      scored += 32;
      move_down(list);
    }
    score(arrays, view, cuts, waiting, scored, mine, best_at);
    take_best(mine, best_at, best);
    Lanes::sync();  // the list is read
  }

  __device__ static void move_down(Candidates& list) {
    const std::uint32_t to = Lanes::lane();
    const std::uint32_t from = to + 32;
    const float p = list.p_mm[from];
    const float q = list.q_mm[from];
    const float r4 = list.r4_mm2[from];
    const float time = list.time_ns[from];
    Lanes::sync();
    list.p_mm[to] = p;
    list.q_mm[to] = q;
    list.r4_mm2[to] = r4;
    list.time_ns[to] = time;
    Lanes::sync();
  }

  // A circle a lane; each lane remembers its first best.
  NANET_DEVICE_CALL __device__ static void score(const Arrays& arrays, const View& view, const CircleCuts& cuts,
                                                 std::uint32_t count, std::uint32_t before, SeedBest& mine, std::uint32_t& best_at) {
    const std::uint32_t lane = Lanes::lane();
    if (lane >= count) return;
    const Shared& s = arrays.shared;
    const SeedBest circle{0, s.candidates.p_mm[lane], s.candidates.q_mm[lane], s.candidates.r4_mm2[lane], s.candidates.time_ns[lane]};
    const float scale = rich::triplets::inverse_square(cuts.width_mm) / circle.r4_mm2;
    float score = 0.0F;
    if (cuts.time_width_ns > 0.0F) {
      const float inverse_time2 = rich::triplets::inverse_square(cuts.time_width_ns);
#pragma unroll 1
      for (std::uint32_t k = 0; k < view.count; ++k) {
        const float dt = s.time_ns[s.search_hit[k]] - circle.time_ns;
        score += nearness_of(s.seen[k], circle, scale) * rich::triplets::tent(dt * dt * inverse_time2);
      }
    } else {
#pragma unroll 4
      for (std::uint32_t k = 0; k < view.count; ++k) score += nearness_of(s.seen[k], circle, scale);
    }
    score = score - cuts.penalty_per_mm * (0.5F * std::sqrt(circle.r4_mm2));
    if (!(score > mine.score)) return;
    mine = circle;
    mine.score = score;
    best_at = before + lane;
  }

  // Its weight, less with the distance from the circle.
  __device__ static float nearness_of(const float4& hit, const SeedBest& circle, float scale) {
    const float u = (hit.z - circle.p_mm * hit.x) - circle.q_mm * hit.y;
    return hit.w * rich::triplets::tent(u * u * scale);
  }

  // The best of all lanes, of equal ones the first circle. Scores that are better than `best` are positive, so their bits compare as integers.
  __device__ static void take_best(const SeedBest& mine, std::uint32_t best_at, SeedBest& best) {
    const bool better = mine.score > best.score;
    const std::int32_t bits = better ? __float_as_int(mine.score) : -1;
    const std::int32_t most = Lanes::max(bits);
    if (most < 0) return;
    const std::int32_t order = bits == most ? -static_cast<std::int32_t>(best_at) : -0x7fffffff;
    const auto winner = static_cast<unsigned>(-Lanes::max(order)) & 31u;  // circle n was scored by lane n mod 32
    best = {__int_as_float(most), Lanes::from_lane(mine.p_mm, winner), Lanes::from_lane(mine.q_mm, winner),
            Lanes::from_lane(mine.r4_mm2, winner), Lanes::from_lane(mine.time_ns, winner)};
  }

  NANET_DEVICE_CALL __device__ static void near_to(const Hits& hits, const Circle& circle, float inverse_width2,
                                                   float inverse_time2, float* out) {
    each(hits.plane.count, [&](std::uint32_t k) {
      const float dx = hits.plane.x_mm[k] - circle.x_mm;
      const float dy = hits.plane.y_mm[k] - circle.y_mm;
      const float dt = hits.time_ns[k] - circle.time_ns;
      const float residual = std::sqrt(dx * dx + dy * dy) - circle.radius_mm;
      out[k] = rich::triplets::tent(residual * residual * inverse_width2) * rich::triplets::tent(dt * dt * inverse_time2);
    });
  }

  // Lanes 0 to 15 keep the partial sums of the first five sums, lanes 16 to 31 those of the others.
  NANET_DEVICE_CALL __device__ static FitSums fit_sums(const Hits& hits, const float* weight, const Circle& circle,
                                                       float inverse_width2, float inverse_time2) {
    constexpr unsigned kHalf = rich::triplets::kFitSumCount / 2;
    static_assert(rich::triplets::kFitLanes == 16 && kHalf == 5);
    const bool upper = Lanes::lane() >= 16;
    float parts[kHalf] = {};
#pragma unroll 1
    for (std::uint32_t k = Lanes::lane(); k - Lanes::lane() < hits.plane.count; k += 32) {
      float terms[2 * kHalf] = {};
      if (k < hits.plane.count) terms_of(hits, weight, circle, inverse_width2, inverse_time2, k, terms);
#pragma unroll
      for (unsigned f = 0; f < kHalf; ++f) {
        const float kept = upper ? terms[f + kHalf] : terms[f];
        const float other = Lanes::from_other(upper ? terms[f] : terms[f + kHalf], 16);
        parts[f] = (parts[f] + (upper ? other : kept)) + (upper ? kept : other);  // hit k before hit k + 16
      }
    }
    return add_parts(parts);
  }

  __device__ static void terms_of(const Hits& hits, const float* weight, const Circle& circle, float inverse_width2,
                                  float inverse_time2, std::uint32_t k, float (&terms)[rich::triplets::kFitSumCount]) {
    const float dx = hits.plane.x_mm[k] - circle.x_mm;
    const float dy = hits.plane.y_mm[k] - circle.y_mm;
    const float dt = hits.time_ns[k] - circle.time_ns;
    const float square = dx * dx + dy * dy;
    const float distance = std::sqrt(square > 1.0e-4F ? square : 1.0e-4F);
    const float residual = distance - circle.radius_mm;
    const float inverse = 1.0F / distance;
    const float ux = dx * inverse;
    const float uy = dy * inverse;
    const float near = rich::triplets::tent(residual * residual * inverse_width2);
    const float w = (near * near) * (weight[k] * rich::triplets::tent(dt * dt * inverse_time2));
    const float wx = w * ux;
    const float wy = w * uy;
    terms[0] = w;
    terms[1] = wx;
    terms[2] = wy;
    terms[3] = wx * ux;
    terms[4] = wx * uy;
    terms[5] = wy * uy;
    terms[6] = w * residual;
    terms[7] = wx * residual;
    terms[8] = wy * residual;
    terms[9] = w * hits.time_ns[k];
  }

  // The lane of each half keeps fewer and fewer of the five sums, each added 8 lanes apart, then 4, 2, 1: a + b is b + a.
  __device__ static FitSums add_parts(const float (&parts)[5]) {
    const bool eight = (Lanes::lane() & 8u) != 0;
    const bool four = (Lanes::lane() & 4u) != 0;
    const bool two = (Lanes::lane() & 2u) != 0;
    const float a0 = halve(parts[0], parts[1], eight, 8);
    const float a1 = halve(parts[2], parts[3], eight, 8);
    const float a2 = parts[4] + Lanes::from_other(parts[4], 8);
    const float b0 = halve(a0, a1, four, 4);
    const float b1 = a2 + Lanes::from_other(a2, 4);
    const float c = halve(b0, b1, two, 2);
    const float sum = c + Lanes::from_other(c, 1);
    FitSums sums;
    constexpr unsigned kLaneOf[5] = {0, 8, 4, 12, 2};
#pragma unroll
    for (unsigned f = 0; f < rich::triplets::kFitSumCount; ++f) sums.of[f] = Lanes::from_lane(sum, f / 5 * 16 + kLaneOf[f % 5]);
    return sums;
  }
  __device__ static float halve(float s0, float s1, bool second, unsigned lane_xor) {
    const float kept = second ? s1 : s0;
    return kept + Lanes::from_other(second ? s0 : s1, lane_xor);
  }

  // Each lane forms the terms f(k, first, second) of its hits; then all add both up in order of hits.
  template <class F>
  __device__ static float2 sum_in_order(const Arrays& arrays, F f) {
    Terms& terms = arrays.shared.terms;
    const std::uint32_t count = arrays.hits.plane.count;
    each((count + 3u) & ~3u, [&](std::uint32_t k) {
      terms.first[k] = 0.0F;
      terms.second[k] = 0.0F;
      if (k < count) f(k, terms.first[k], terms.second[k]);
    });
    return add_up(terms, count);
  }
  NANET_DEVICE_CALL __device__ static float2 add_up(const Terms& terms, std::uint32_t count) {
    float2 sum{0.0F, 0.0F};
#pragma unroll 1
    for (std::uint32_t k = 0; k < count; k += 4) {
      const float4 a = *reinterpret_cast<const float4*>(terms.first + k);
      const float4 b = *reinterpret_cast<const float4*>(terms.second + k);
      sum.x = (((sum.x + a.x) + a.y) + a.z) + a.w;
      sum.y = (((sum.y + b.x) + b.y) + b.z) + b.w;
    }
    return sum;
  }

  __device__ static float sum_of_weights(const Arrays& arrays) {
    return sum_in_order(arrays, [&](std::uint32_t k, float& first, float&) { first = arrays.weight[k]; }).x;
  }

  __device__ static Gain gain_of(const Arrays& arrays, const float* near) {
    const float2 sums = sum_in_order(arrays, [&](std::uint32_t k, float& first, float& second) {
      first = arrays.weight[k] * near[k];
      second = near[k] > 0.0F ? 0.0F : arrays.weight[k];
    });
    return {sums.x, sums.y};
  }

  __device__ static RingTotals ring_totals(const Arrays& arrays, std::uint32_t count, std::uint32_t which, const Circle& circle) {
    std::uint32_t octants = 0;
    std::int32_t hits = 0;
    const float2 sums = sum_in_order(arrays, [&](std::uint32_t k, float& first, float& second) {
      const float near = arrays.nearness[which][k];
      bool mine = near > 0.0F;
#pragma unroll 1
      for (std::uint32_t r = 0; r < count; ++r)
        mine = mine & ((arrays.nearness[r][k] < near) | ((arrays.nearness[r][k] == near) & (r >= which)));
      if (!mine) return;
      const float dx = arrays.hits.plane.x_mm[k] - circle.x_mm;
      const float dy = arrays.hits.plane.y_mm[k] - circle.y_mm;
      const float residual = std::sqrt(dx * dx + dy * dy) - circle.radius_mm;
      first = residual * residual;
      second = arrays.hits.time_ns[k];
      octants |= rich::triplets::octant_of(dx, dy);
      ++hits;
    });
    return {static_cast<std::uint32_t>(Lanes::sum(hits)), __reduce_or_sync(0xffffffffu, octants), sums.x, sums.y};
  }

  // The hits in the order of rich::lay_out_hits, in shared memory; returns their number. Hits of equal keys are the same.
  __device__ static std::uint32_t lay_out(event::Event event, const rich::PmPoint* points, Shared& s) {
    auto* const keys = reinterpret_cast<std::uint32_t*>(s.weight);
    const std::uint32_t looked_at = event.count < kHits ? event.count : kHits;
    std::uint32_t count = 0;
    Lanes::sync();  // the event before is read
#pragma unroll 1
    for (std::uint32_t k = Lanes::lane(); k - Lanes::lane() < looked_at; k += 32) {
      const std::uint32_t hit = k < looked_at ? event.hits[k] : 1023u;  // no PM there
      const bool take = points[hit & 1023u].mapped != 0;
      const std::uint32_t at = place(take, count);
      if (take)
        keys[at] = static_cast<std::uint32_t>(rich::hit_order(static_cast<std::uint16_t>(hit))) << 8 | at;  // no two are alike
    }
    Lanes::sync();
#pragma unroll 1
    for (std::uint32_t k = Lanes::lane(); k < count; k += 32) {
      const std::uint32_t key = keys[k];
      std::uint32_t rank = 0;
#pragma unroll 4
      for (std::uint32_t other = 0; other < count; ++other) rank += keys[other] < key ? 1u : 0u;
      const rich::PmPoint& point = points[key >> 14];
      const auto code = static_cast<std::int32_t>(key >> 9 & 31u);
      s.x_mm[rank] = point.x_mm;
      s.y_mm[rank] = point.y_mm;
      s.time_ns[rank] = static_cast<float>((code ^ 16) - 16) * rich::kHitTimeUnitNs;
    }
    Lanes::sync();
    return count;
  }
};

template <>
struct TeamFinder<rich::FinderKind::triplets> {
  static constexpr unsigned kLanes = 32;
  static constexpr unsigned kThreads = 128;
  static constexpr unsigned kBlocksAnSm = 6;
  using Shared = TripletKernels::Shared;

  __device__ static rich::EventRings find(const rich::FinderConfig& config, event::Event event, const DeviceTables& tables,
                                          Shared& shared) {
    const std::uint32_t count = TripletKernels::lay_out(event, tables.points, shared);
    rich::triplets::Work<TripletKernels> work(shared, count, event.count > rich::kMaxHits ? 1u : 0u);
    return rich::triplets::find_in<TripletKernels>(work, config.triplets);
  }
};

}  // namespace nanet::gpu
