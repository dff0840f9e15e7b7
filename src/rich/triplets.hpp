// SPDX-License-Identifier: Apache-2.0
// The robust-triplets finder: up to four rings an event from the best circles through three hits, refitted so that stray hits do not count.
//
// Ring by ring: the best-scoring circle through three hits (circle_pool.hpp) is refitted with biweights (Gauss-Newton on the distances, so without the
// bias of an algebraic fit); a hit then counts in the search for the next ring only as far as no ring found explains it. After each ring all rings are
// fitted together, hits near several rings shared between them. At last each ring is searched for once more beside the others, and a hit belongs to
// its nearest ring. Method and figures: docs/design/finder-triplets.md.
//
// find_triplets of one event and of many give the same bits (see there for why).
// Thread rules: pure functions; no allocation, no exception. About 40 KiB of stack.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "nanet/host_device.hpp"
#include "nanet/rich/ring.hpp"
#include "nanet/rich/triplets_cuts.hpp"
#include "rich/circle_pool.hpp"
#include "rich/hit_plane.hpp"
#include "rich/normal_numbers.hpp"

namespace nanet::rich {

// The rings of one event. `points`: kPmPoints, or its copy in the GPU's memory.
NANET_HD inline EventRings find_triplets(event::Event event, const PmPoint* points, const TripletsCuts& cuts);

// rings[k] becomes what is found in events[k], the same bits. `rings` must be at least as long as `events`.
void find_triplets(std::span<const event::Event> events, std::span<EventRings> rings, const TripletsCuts& cuts);

// Name of the instruction set that find_triplets uses on this machine, for example "AVX3".
const char* find_triplets_target();

// ---------------------------------------------------------------------------------------------------------------------------------
// The algorithm in terms of kernels, which a back-end may replace by vectors, or by lanes that share the hits, with the same bits.

namespace triplets {

// A hit's time matters up to this many sigma from its ring's, and a triplet's hits agree up to sqrt(2) as many.
inline constexpr float kTimeWidthSigmas = 4.0F;
inline constexpr float kTimeWindowSigmas = 5.0F;
// Below this weight a hit is left out of the search: it would add next to nothing.
inline constexpr float kSearchWeightMin = 0.05F;
inline constexpr float kShareFloor = 0.02F;  // of the joint fit: a hit far from all rings counts for the one whose width still reaches it
inline constexpr float kStepMaxMm = 40.0F;      // a longer step of a fit is refused
inline constexpr std::uint32_t kFitLanes = 16;  // partial sums of a fit
inline constexpr std::uint32_t kFitSumCount = 10;
inline constexpr std::uint32_t kStepsLimit = 20;  // of any fit, whatever the cuts say

struct PlaneHits {
  HitPlane plane;
  alignas(64) float time_ns[kMaxHits];
};

// Sums over hits of w times 1, ux, uy, ux ux, ux uy, uy uy, r, r ux, r uy, t, where (ux, uy) is the direction from the centre and r the residual.
struct FitSums {
  float of[kFitSumCount];
};

// What a search looks at: the hits with some weight left.
struct Search {
  const SearchHits& hits;
  float left;  // sum of all weights, in order of hits
};

// A circle's own hits, in order of hits.
struct RingTotals {
  std::uint32_t hits = 0;
  std::uint32_t octants = 0;  // a bit each
  float square = 0;           // of the distances
  float time_ns = 0;
};

// What a circle explains of the hits' weights, and what it leaves; in order of hits.
struct Gain {
  float gained = 0;
  float left = 0;
};

NANET_HD inline std::uint32_t octant_of(float dx, float dy) {
  const float ax = dx < 0.0F ? -dx : dx;
  const float ay = dy < 0.0F ? -dy : dy;
  return 1u << ((dx < 0.0F ? 1u : 0u) | (dy < 0.0F ? 2u : 0u) | (ax < ay ? 4u : 0u));
}

// An event in work. Kernels::Arrays: hits, their weights (not explained by the rings found), and nearness of each hit to each ring, 1 on it.
template <class Kernels>
struct Work : Kernels::Arrays {
  using Kernels::Arrays::Arrays;
  Circle rings[kMaxRings + 1];
  std::uint32_t count = 0;
  float inverse_time2 = 0;
};

struct ScalarKernels {
  struct Arrays {
    PlaneHits hits;
    SearchHits search;
    SeedView view;
    CircleList list;
    alignas(64) float weight[kMaxHits];
    alignas(64) float nearness[kMaxRings][kMaxHits];
  };

  // Calls f(k) for each hit; what it writes for hit k, only f(k) reads until each() has returned.
  template <class F>
  NANET_HD static void each(std::uint32_t count, F f) {
    for (std::uint32_t k = 0; k < count; ++k) f(k);
  }

  NANET_HD static Search take_search(Arrays& arrays) {
    SearchHits& search = arrays.search;
    std::uint32_t count = 0;
    float left = 0.0F;
    for (std::uint32_t k = 0; k < arrays.hits.plane.count; ++k) {
      search.x_mm[count] = arrays.hits.plane.x_mm[k];
      search.y_mm[count] = arrays.hits.plane.y_mm[k];
      search.time_ns[count] = arrays.hits.time_ns[k];
      search.weight[count] = arrays.weight[k];
      left += arrays.weight[k];
      count += arrays.weight[k] >= kSearchWeightMin ? 1u : 0u;
    }
    search.count = count;
    return {search, left};
  }

  NANET_HD static const SeedView& view_from_seed(Arrays& arrays, const Search& search, std::uint32_t seed, const CircleCuts& cuts) {
    triplets::view_from_seed(search.hits, seed, cuts, arrays.view);
    return arrays.view;
  }

  NANET_HD static void best_of_seed(Arrays& arrays, const SeedView& view, const CircleCuts& cuts, SeedBest& best) {
    triplets::best_of_seed(view, cuts, arrays.list, best);
  }

  NANET_HD static float sum_of_weights(const Arrays& arrays) {
    float sum = 0.0F;
    for (std::uint32_t k = 0; k < arrays.hits.plane.count; ++k) sum += arrays.weight[k];
    return sum;
  }

  NANET_HD static Gain gain_of(const Arrays& arrays, const float* near) {
    Gain gain;
    for (std::uint32_t k = 0; k < arrays.hits.plane.count; ++k) {
      gain.gained += arrays.weight[k] * near[k];
      gain.left += near[k] > 0.0F ? 0.0F : arrays.weight[k];
    }
    return gain;
  }

  // The hits that are nearer to circle `which` than to any other of `count`, and of equal ones to none before it.
  NANET_HD static RingTotals ring_totals(Arrays& arrays, std::uint32_t count, std::uint32_t which, const Circle& circle) {
    RingTotals totals;
    for (std::uint32_t k = 0; k < arrays.hits.plane.count; ++k) {
      const float near = arrays.nearness[which][k];
      bool mine = near > 0.0F;
      for (std::uint32_t r = 0; r < count; ++r)
        mine = mine & ((arrays.nearness[r][k] < near) | ((arrays.nearness[r][k] == near) & (r >= which)));
      if (!mine) continue;
      const float dx = arrays.hits.plane.x_mm[k] - circle.x_mm;
      const float dy = arrays.hits.plane.y_mm[k] - circle.y_mm;
      const float residual = std::sqrt(dx * dx + dy * dy) - circle.radius_mm;
      totals.square += residual * residual;
      totals.time_ns += arrays.hits.time_ns[k];
      totals.octants |= octant_of(dx, dy);
      ++totals.hits;
    }
    return totals;
  }

  // out[k] = max(0, 1 - (r / width)^2) of each hit, times the same in time.
  NANET_HD static void near_to(const PlaneHits& hits, const Circle& circle, float inverse_width2, float inverse_time2, float* out) {
    for (std::uint32_t k = 0; k < hits.plane.count; ++k) {
      const float dx = hits.plane.x_mm[k] - circle.x_mm;
      const float dy = hits.plane.y_mm[k] - circle.y_mm;
      const float dt = hits.time_ns[k] - circle.time_ns;
      const float residual = std::sqrt(dx * dx + dy * dy) - circle.radius_mm;
      out[k] = tent(residual * residual * inverse_width2) * tent(dt * dt * inverse_time2);
    }
  }

  // w = weight (1 - (r / width)^2)^2 times the time's factor. Hit k goes to partial sum k mod 16; these are added 8 apart, 4, 2, 1.
  NANET_HD static FitSums fit_sums(const PlaneHits& hits, const float* weight, const Circle& circle, float inverse_width2,
                                   float inverse_time2) {
    float parts[kFitSumCount][kFitLanes] = {};
    for (std::uint32_t k = 0; k < hits.plane.count; ++k) {
      const float dx = hits.plane.x_mm[k] - circle.x_mm;
      const float dy = hits.plane.y_mm[k] - circle.y_mm;
      const float dt = hits.time_ns[k] - circle.time_ns;
      const float square = dx * dx + dy * dy;
      const float distance = std::sqrt(square > 1.0e-4F ? square : 1.0e-4F);
      const float residual = distance - circle.radius_mm;
      const float inverse = 1.0F / distance;
      const float ux = dx * inverse;
      const float uy = dy * inverse;
      const float near = tent(residual * residual * inverse_width2);
      const float w = (near * near) * (weight[k] * tent(dt * dt * inverse_time2));
      const float wx = w * ux;
      const float wy = w * uy;
      const float terms[kFitSumCount] = {
          w, wx, wy, wx * ux, wx * uy, wy * uy, w * residual, wx * residual, wy * residual, w * hits.time_ns[k]};
      for (std::uint32_t f = 0; f < kFitSumCount; ++f) parts[f][k % kFitLanes] += terms[f];
    }
    FitSums sums;
    for (std::uint32_t f = 0; f < kFitSumCount; ++f) {
      for (std::uint32_t half = kFitLanes / 2; half != 0; half /= 2) {
        for (std::uint32_t lane = 0; lane < half; ++lane) parts[f][lane] = parts[f][lane] + parts[f][lane + half];
      }
      sums.of[f] = parts[f][0];
    }
    return sums;
  }
};

// Solves for the step of a fit and takes it; false: the hits do not say where the circle is, and it stays.
NANET_HD inline bool take_step(const FitSums& sums, Circle& circle) {
  const double n = sums.of[0];
  if (!(n > 2.0)) return false;
  const double mx = quotient(sums.of[1], n);
  const double my = quotient(sums.of[2], n);
  const double mr = quotient(sums.of[6], n);
  const double a = sums.of[3] - mx * sums.of[1];
  const double b = sums.of[4] - mx * sums.of[2];
  const double c = sums.of[5] - my * sums.of[2];
  const double e = sums.of[7] - mx * sums.of[6];
  const double f = sums.of[8] - my * sums.of[6];
  const double det = a * c - b * b;
  if (!(det > 1.0e-4 * (n * n))) return false;
  const double dx = quotient(e * c - f * b, det);
  const double dy = quotient(a * f - b * e, det);
  const double dr = mr - (mx * dx + my * dy);
  const double limit = kStepMaxMm;
  if (!(dx * dx + dy * dy <= limit * limit) || !(dr * dr <= limit * limit)) return false;
  circle.x_mm += static_cast<float>(dx);
  circle.y_mm += static_cast<float>(dy);
  circle.radius_mm += static_cast<float>(dr);
  circle.time_ns = static_cast<float>(quotient(sums.of[9], n));
  return true;
}

NANET_HD inline std::uint32_t at_most(std::uint32_t value, std::uint32_t limit) { return value < limit ? value : limit; }

// weight[k] = 1 - the nearness of the closest of these circles.
template <class Kernels>
NANET_HD NANET_DEVICE_CALL inline void weigh_unexplained(Work<Kernels>& work, const Circle* circles, std::uint32_t count,
                                                         const TripletsCuts& cuts) {
  const std::uint32_t hits = work.hits.plane.count;
  float* const weight = work.weight;
  Kernels::each(hits, [&](std::uint32_t k) { weight[k] = 1.0F; });
  NANET_UNROLL(1)
  for (std::uint32_t r = 0; r < count; ++r) {
    float* near = work.nearness[r];
    Kernels::near_to(work.hits, circles[r], inverse_square(cuts.explained_width_mm), work.inverse_time2, near);
    Kernels::each(hits, [&](std::uint32_t k) {
      const float left = 1.0F - near[k];
      weight[k] = left < weight[k] ? left : weight[k];
    });
  }
}

// The circle explains enough of the weights of now to be a ring, considering what it leaves.
template <class Kernels>
NANET_HD NANET_DEVICE_CALL inline bool gains_enough(Work<Kernels>& work, const Circle& circle, float gain_per_outsider,
                                                    const TripletsCuts& cuts) {
  float* near = work.nearness[0];
  Kernels::near_to(work.hits, circle, inverse_square(cuts.score_width_mm), work.inverse_time2, near);
  const Gain gain = Kernels::gain_of(work, near);
  const float outsiders = gain.left < cuts.gain_outsiders_max ? gain.left : cuts.gain_outsiders_max;
  return gain.gained >= cuts.gain_min + gain_per_outsider * outsiders;
}

// The best circle among the hits with the weights of now, refitted.
template <class Kernels>
NANET_HD NANET_DEVICE_CALL inline bool search_circle(Work<Kernels>& work, const TripletsCuts& cuts, Circle& found) {
  const auto search = Kernels::take_search(work);
  if (search.left < cuts.gain_min) return false;

  const bool timed = cuts.time_use != 0;
  const CircleCuts circle_cuts{.pair_distance_min_mm = cuts.pair_distance_min_mm,
                               .radius_min_mm = cuts.triplet_radius_min_mm,
                               .radius_max_mm = cuts.triplet_radius_max_mm,
                               .center_max_mm = cuts.center_max_mm,
                               .partner_weight_min = cuts.seed_weight_min,
                               .width_mm = cuts.score_width_mm,
                               .penalty_per_mm = cuts.penalty_per_mm,
                               .time_window_ns = timed ? kTimeWindowSigmas * cuts.time_sigma_ns : 0.0F,
                               .time_width_ns = timed ? kTimeWidthSigmas * cuts.time_sigma_ns : 0.0F};
  const float enough = cuts.enough_share * search.left;
  const std::uint32_t count = search.hits.count;
  found.score = 0.0F;
  std::uint32_t seeds = 0;
  NANET_UNROLL(1)
  for (std::uint32_t s = 0; s + 2 < count && seeds < cuts.seeds_max && !(found.score >= enough); ++s) {
    if (search.hits.weight[s] < cuts.seed_weight_min) continue;
    ++seeds;
    auto&& view = Kernels::view_from_seed(work, search, s, circle_cuts);
    if (view.partner_count < 2) continue;
    SeedBest best{.score = found.score};
    Kernels::best_of_seed(work, view, circle_cuts, best);
    if (best.score > found.score) found = circle_of(view, best);
  }
  if (!(found.score > 0.0F)) return false;

  float* ones = work.nearness[0];
  Kernels::each(work.hits.plane.count, [&](std::uint32_t k) { ones[k] = 1.0F; });
  NANET_UNROLL(1)
  for (std::uint32_t step = 0; step < at_most(cuts.refit_steps, kStepsLimit); ++step) {
    const FitSums sums = Kernels::fit_sums(work.hits, ones, found, inverse_square(cuts.refit_width_mm), work.inverse_time2);
    if (!take_step(sums, found)) break;
  }
  return true;
}

// Fits all circles together: a hit counts for each in the share of its nearness.
template <class Kernels>
NANET_HD NANET_DEVICE_CALL inline void fit_together(Work<Kernels>& work, Circle* circles, std::uint32_t count,
                                                    const TripletsCuts& cuts) {
  const std::uint32_t hits = work.hits.plane.count;
  float* const weight = work.weight;
  NANET_UNROLL(1)
  for (std::uint32_t step = 0; step < at_most(cuts.joint_steps, kStepsLimit); ++step) {
    Kernels::each(hits, [&](std::uint32_t k) { weight[k] = kShareFloor; });
    NANET_UNROLL(1)
    for (std::uint32_t r = 0; r < count; ++r) {
      float* near = work.nearness[r];
      if (count > 1) {
        Kernels::near_to(work.hits, circles[r], inverse_square(cuts.share_width_mm), work.inverse_time2, near);
      } else {
        Kernels::each(hits, [&](std::uint32_t k) { near[k] = 1.0F; });
      }
      Kernels::each(hits, [&](std::uint32_t k) {
        near[k] = near[k] * near[k];
        weight[k] = weight[k] + near[k];
      });
    }
    NANET_UNROLL(1)
    for (std::uint32_t r = 0; r < count; ++r) {
      float* share = work.nearness[r];
      Kernels::each(hits, [&](std::uint32_t k) { share[k] = (share[k] + kShareFloor) / weight[k]; });
      const FitSums sums = Kernels::fit_sums(work.hits, share, circles[r], inverse_square(cuts.joint_width_mm), work.inverse_time2);
      take_step(sums, circles[r]);
    }
  }
}

// Sum over hits of the nearness of the closest circle.
template <class Kernels>
NANET_HD NANET_DEVICE_CALL inline float explained_by(Work<Kernels>& work, const Circle* circles, std::uint32_t count,
                                                     const TripletsCuts& cuts) {
  const std::uint32_t hits = work.hits.plane.count;
  float* const weight = work.weight;
  Kernels::each(hits, [&](std::uint32_t k) { weight[k] = 0.0F; });
  NANET_UNROLL(1)
  for (std::uint32_t r = 0; r < count; ++r) {
    float* near = work.nearness[r];
    Kernels::near_to(work.hits, circles[r], inverse_square(cuts.score_width_mm), work.inverse_time2, near);
    Kernels::each(hits, [&](std::uint32_t k) { weight[k] = near[k] > weight[k] ? near[k] : weight[k]; });
  }
  return Kernels::sum_of_weights(work);
}

// The ring of a circle's hits (those nearer to it than to any of `others`); status no_ring where it fails a cut.
template <class Kernels>
NANET_HD NANET_DEVICE_CALL inline Ring ring_of(Work<Kernels>& work, const Circle* circles, std::uint32_t count, std::uint32_t which,
                                               const TripletsCuts& cuts) {
  NANET_UNROLL(1)
  for (std::uint32_t r = 0; r < count; ++r) {
    Kernels::near_to(work.hits, circles[r], inverse_square(cuts.keep_mm), work.inverse_time2, work.nearness[r]);
  }
  const Circle& circle = circles[which];
  Ring ring{.x_mm = circle.x_mm, .y_mm = circle.y_mm, .radius_mm = circle.radius_mm};
  const RingTotals totals = Kernels::ring_totals(work, count, which, circle);
  if (totals.hits < 4 || totals.hits < cuts.hits_min) return ring;
  std::uint32_t octant_count = 0;
  NANET_UNROLL(1)
  for (std::uint32_t octants = totals.octants; octants != 0; octants &= octants - 1) ++octant_count;
  const auto m = static_cast<float>(totals.hits);
  const bool round = totals.square <= cuts.rms_max_mm * cuts.rms_max_mm * (m - 3.0F);
  const bool sized = (ring.radius_mm >= cuts.radius_min_mm) & (ring.radius_mm <= cuts.radius_max_mm);
  if (!round || !sized || octant_count < cuts.octants_min) return ring;
  ring.rms_mm = std::sqrt(totals.square / m);
  ring.time_ns = totals.time_ns / m;
  ring.hits = static_cast<std::uint16_t>(totals.hits);
  ring.status = RingStatus::ring;
  return ring;
}

// One more ring beside those found; false: there is none.
template <class Kernels>
NANET_HD inline bool add_ring(Work<Kernels>& work, const TripletsCuts& cuts) {
  weigh_unexplained<Kernels>(work, work.rings, work.count, cuts);
  Circle circle;
  if (!search_circle<Kernels>(work, cuts, circle)) return false;
  if (!gains_enough<Kernels>(work, circle, 0.0F, cuts)) return false;
  if (!has_ring(ring_of<Kernels>(work, &circle, 1, 0, cuts).status)) return false;
  work.rings[work.count++] = circle;
  fit_together<Kernels>(work, work.rings, work.count, cuts);
  return true;
}

// The circles but one; returns their number.
NANET_HD inline std::uint32_t copy_others(const Circle* circles, std::uint32_t count, std::uint32_t but, Circle* others) {
  std::uint32_t n = 0;
  NANET_UNROLL(1)
  for (std::uint32_t r = 0; r < count; ++r) {
    if (r != but) others[n++] = circles[r];
  }
  return n;
}

// Searches for each ring again beside the others and takes what explains more. True: something changed.
template <class Kernels>
NANET_HD inline bool exchange_rings(Work<Kernels>& work, const TripletsCuts& cuts) {
  bool changed = false;
  float explained = explained_by<Kernels>(work, work.rings, work.count, cuts);
  NANET_UNROLL(1)
  for (std::uint32_t r = 0; r < work.count; ++r) {
    Circle trial[kMaxRings + 1];
    std::uint32_t n = copy_others(work.rings, work.count, r, trial);
    weigh_unexplained<Kernels>(work, trial, n, cuts);
    if (!search_circle<Kernels>(work, cuts, trial[n])) continue;
    ++n;
    fit_together<Kernels>(work, trial, n, cuts);
    const float now = explained_by<Kernels>(work, trial, n, cuts);
    if (!(now > explained + 0.01F)) continue;
    NANET_UNROLL(1)
    for (std::uint32_t k = 0; k < n; ++k) work.rings[k] = trial[k];
    explained = now;
    changed = true;
  }
  return changed;
}

// Takes out rings that the others make superfluous, or that chance may have made of the hits left over.
template <class Kernels>
NANET_HD inline void drop_weak(Work<Kernels>& work, const TripletsCuts& cuts) {
  NANET_UNROLL(1)
  for (std::uint32_t r = 0; r < work.count;) {
    Circle others[kMaxRings + 1];
    const std::uint32_t n = copy_others(work.rings, work.count, r, others);
    weigh_unexplained<Kernels>(work, others, n, cuts);
    if (gains_enough<Kernels>(work, work.rings[r], cuts.gain_per_outsider, cuts)) {
      ++r;
      continue;
    }
    NANET_UNROLL(1)
    for (std::uint32_t k = 0; k < n; ++k) work.rings[k] = others[k];
    work.count = n;
    r = 0;
  }
}

// The rings of a work whose hits are laid out.
template <class Kernels>
NANET_HD inline EventRings find_in(Work<Kernels>& work, const TripletsCuts& cuts) {
  const std::uint32_t hits = work.hits.plane.count;
  EventRings out;
  out.mapped_hits = static_cast<std::uint16_t>(hits);
  out.truncated = static_cast<std::uint16_t>(work.hits.plane.truncated);
  if (hits < 4 || hits < cuts.hits_min) return out;
  work.inverse_time2 = cuts.time_use != 0 ? inverse_square(kTimeWidthSigmas * cuts.time_sigma_ns) : 0.0F;

  const std::uint32_t rings_max = at_most(cuts.rings_max, kMaxRings);
  NANET_UNROLL(1)
  while (work.count < rings_max && add_ring<Kernels>(work, cuts)) {
  }
  NANET_UNROLL(1)
  for (std::uint32_t pass = 0; pass < at_most(cuts.exchange_passes, kStepsLimit) && work.count > 1; ++pass) {
    if (!exchange_rings<Kernels>(work, cuts)) break;
    if (work.count < rings_max) add_ring<Kernels>(work, cuts);
  }
  drop_weak<Kernels>(work, cuts);
  NANET_UNROLL(1)
  for (std::uint32_t r = 0; r < work.count; ++r) {
    const Ring ring = ring_of<Kernels>(work, work.rings, work.count, r, cuts);
    if (has_ring(ring.status)) out.rings[out.count++] = ring;
  }
  sort_rings(out);
  return out;
}

template <class Kernels>
NANET_HD inline EventRings find_with(event::Event event, const PmPoint* points, const TripletsCuts& cuts) {
  Work<Kernels> work;
  lay_out_hits(event, points, work.hits.plane);
  const std::uint32_t hits = work.hits.plane.count;
  for (std::uint32_t k = 0; k < hits; ++k) work.hits.time_ns[k] = static_cast<float>(work.hits.plane.time_code[k]) * kHitTimeUnitNs;
  for (std::uint32_t k = hits; k < ((hits + 15u) & ~15u); ++k) work.hits.time_ns[k] = 0.0F;
  return find_in<Kernels>(work, cuts);
}

}  // namespace triplets

NANET_HD inline EventRings find_triplets(event::Event event, const PmPoint* points, const TripletsCuts& cuts) {
  return triplets::find_with<triplets::ScalarKernels>(event, points, cuts);
}

}  // namespace nanet::rich
