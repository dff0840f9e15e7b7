// SPDX-License-Identifier: Apache-2.0
// The kernels of the triplets finder as vectors: triplets in the lanes to draw and score circles, hits in the lanes to fit them.
#include "rich/triplets.hpp"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rich/triplets.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nanet::rich::triplets {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

using VectorKernels = ScalarKernels;

#else

using FloatTag = hn::CappedTag<float, kVectorSlack>;
using FloatVec = hn::Vec<FloatTag>;

HWY_INLINE FloatVec tents(FloatTag d, FloatVec x) { return hn::Max(hn::Sub(hn::Set(d, 1.0F), x), hn::Zero(d)); }

// collect_circles, a partner k in each lane.
HWY_INLINE void collect(const SeedView& view, std::uint32_t j, const CircleCuts& cuts, CircleList& list) {
  const FloatTag d;
  const auto set = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const auto one = set(1.0F);
  const auto half = set(0.5F);
  const auto distance2_min = set(cuts.pair_distance_min_mm * cuts.pair_distance_min_mm);
  const auto r4_min = set(4.0F * (cuts.radius_min_mm * cuts.radius_min_mm));
  const auto r4_max = set(4.0F * (cuts.radius_max_mm * cuts.radius_max_mm));
  const auto center2_max = set(cuts.center_max_mm * cuts.center_max_mm);
  const float window_ns = cuts.time_window_ns > 0.0F ? cuts.time_window_ns : 1.0e9F;
  const auto window2 = set(window_ns * window_ns);
  const auto xj = set(view.partner_x_mm[j]);
  const auto yj = set(view.partner_y_mm[j]);
  const auto zj = set(view.partner_z_mm2[j]);
  const auto tj = set(view.partner_time_ns[j]);
  const auto seed_and_j = hn::Add(set(view.seed_time_ns), tj);
  std::uint32_t count = list.count;
  for (std::uint32_t k = j + 1; k < view.partner_count; k += static_cast<std::uint32_t>(hn::Lanes(d))) {
    const auto xk = hn::LoadU(d, view.partner_x_mm + k);
    const auto yk = hn::LoadU(d, view.partner_y_mm + k);
    const auto zk = hn::LoadU(d, view.partner_z_mm2 + k);
    const auto tk = hn::LoadU(d, view.partner_time_ns + k);
    const auto dx = hn::Sub(xk, xj);
    const auto dy = hn::Sub(yk, yj);
    const auto dt = hn::Sub(tk, tj);
    const auto det = hn::Sub(hn::Mul(xj, yk), hn::Mul(xk, yj));
    const auto steep = hn::Ge(hn::Mul(det, det), one);
    const auto inverse = hn::Div(one, hn::IfThenElse(steep, det, one));
    const auto p = hn::Mul(hn::Sub(hn::Mul(zj, yk), hn::Mul(zk, yj)), inverse);
    const auto q = hn::Mul(hn::Sub(hn::Mul(xj, zk), hn::Mul(xk, zj)), inverse);
    const auto r4 = hn::Add(hn::Mul(p, p), hn::Mul(q, q));
    const auto center_x = hn::Add(hn::Mul(half, p), set(view.seed_x_mm));
    const auto center_y = hn::Add(hn::Mul(half, q), set(view.seed_y_mm));
    const auto center2 = hn::Add(hn::Mul(center_x, center_x), hn::Mul(center_y, center_y));
    const auto apart = hn::And(hn::Ge(hn::Add(hn::Mul(dx, dx), hn::Mul(dy, dy)), distance2_min), hn::Le(hn::Mul(dt, dt), window2));
    const auto sized = hn::And(hn::And(hn::Ge(r4, r4_min), hn::Le(r4, r4_max)), hn::Le(center2, center2_max));
    const auto good = hn::And(hn::And(steep, apart), sized);
    // Compressed in a register and stored whole: a masked store to memory is slow on some processors.
    hn::StoreU(hn::Compress(p, good), d, list.p_mm + count);
    hn::StoreU(hn::Compress(q, good), d, list.q_mm + count);
    hn::StoreU(hn::Compress(r4, good), d, list.r4_mm2 + count);
    hn::StoreU(hn::Compress(hn::Mul(hn::Add(seed_and_j, tk), set(1.0F / 3.0F)), good), d, list.time_ns + count);
    count += static_cast<std::uint32_t>(hn::CountTrue(d, good));
  }
  list.count = count;
}

// Scores of the vector of circles at `at`.
template <bool kTimed>
HWY_INLINE FloatVec score_lanes(FloatTag d, const SeedView& view, const CircleList& list, std::uint32_t at, FloatVec inverse_width2,
                                FloatVec inverse_time2, FloatVec penalty) {
  const auto p = hn::Load(d, list.p_mm + at);
  const auto q = hn::Load(d, list.q_mm + at);
  const auto r4 = hn::Load(d, list.r4_mm2 + at);
  const auto time = hn::Load(d, list.time_ns + at);
  const auto scale = hn::Div(inverse_width2, r4);
  auto score = hn::Zero(d);
  for (std::uint32_t k = 0; k < view.count; ++k) {
    const auto u = hn::Sub(hn::Sub(hn::Set(d, view.z_mm2[k]), hn::Mul(p, hn::Set(d, view.x_mm[k]))),
                           hn::Mul(q, hn::Set(d, view.y_mm[k])));
    auto add = hn::Mul(hn::Set(d, view.weight[k]), tents(d, hn::Mul(hn::Mul(u, u), scale)));
    if constexpr (kTimed) {
      const auto dt = hn::Sub(hn::Set(d, view.time_ns[k]), time);
      add = hn::Mul(add, tents(d, hn::Mul(hn::Mul(dt, dt), inverse_time2)));
    }
    score = hn::Add(score, add);
  }
  return hn::Sub(score, hn::Mul(penalty, hn::Mul(hn::Set(d, 0.5F), hn::Sqrt(r4))));
}

// score_circles, a circle in each lane. Each lane remembers its first best; of the lanes the lowest index wins, as in a loop over all.
template <bool kTimed>
HWY_INLINE void score(const SeedView& view, const CircleCuts& cuts, CircleList& list, SeedBest& best) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const auto lanes = static_cast<std::uint32_t>(hn::Lanes(d));
  const auto inverse_width2 = hn::Set(d, inverse_square(cuts.width_mm));
  const auto inverse_time2 = hn::Set(d, inverse_square(cuts.time_width_ns));
  const auto penalty = hn::Set(d, cuts.penalty_per_mm);
  for (std::uint32_t k = list.count; k % lanes != 0; ++k)
    list.p_mm[k] = list.q_mm[k] = list.time_ns[k] = 0.0F, list.r4_mm2[k] = 1.0F;
  const auto count = hn::Set(di, static_cast<std::int32_t>(list.count));
  auto best_score = hn::Set(d, best.score);
  auto best_at = hn::Set(di, -1);
  for (std::uint32_t at = 0; at < list.count; at += lanes) {
    const auto index = hn::Iota(di, static_cast<std::int32_t>(at));
    const auto scores = score_lanes<kTimed>(d, view, list, at, inverse_width2, inverse_time2, penalty);
    const auto better = hn::And(hn::Gt(scores, best_score), hn::RebindMask(d, hn::Lt(index, count)));
    best_score = hn::IfThenElse(better, scores, best_score);
    best_at = hn::IfThenElse(hn::RebindMask(di, better), index, best_at);
  }
  alignas(64) float scores[kVectorSlack];
  alignas(64) std::int32_t indices[kVectorSlack];
  hn::Store(best_score, d, scores);
  hn::Store(best_at, di, indices);
  std::int32_t winner = -1;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    const bool first = (scores[lane] == best.score) & (indices[lane] < winner);
    if ((indices[lane] < 0) | !((scores[lane] > best.score) | first)) continue;
    best.score = scores[lane];
    winner = indices[lane];
  }
  list.count = 0;
  if (winner < 0) return;
  best.p_mm = list.p_mm[winner];
  best.q_mm = list.q_mm[winner];
  best.r4_mm2 = list.r4_mm2[winner];
  best.time_ns = list.time_ns[winner];
}

template <bool kTimed>
HWY_INLINE void best_of_seed_lanes(const SeedView& view, const CircleCuts& cuts, CircleList& list, SeedBest& best) {
  list.count = 0;
  for (std::uint32_t j = 0; j + 1 < view.partner_count; ++j) {
    if (list.count + kPartnersMax > kCirclesInWork) score<kTimed>(view, cuts, list, best);
    collect(view, j, cuts, list);
  }
  if (list.count != 0) score<kTimed>(view, cuts, list, best);
}

// A vector of hits seen from a circle.
struct FromCircle {
  FloatVec dx, dy, square, time_factor;
};

HWY_INLINE FromCircle from_circle(FloatTag d, const PlaneHits& hits, std::uint32_t at, const Circle& circle, FloatVec inverse_time2) {
  const auto dx = hn::Sub(hn::Load(d, hits.plane.x_mm + at), hn::Set(d, circle.x_mm));
  const auto dy = hn::Sub(hn::Load(d, hits.plane.y_mm + at), hn::Set(d, circle.y_mm));
  const auto dt = hn::Sub(hn::Load(d, hits.time_ns + at), hn::Set(d, circle.time_ns));
  return {dx, dy, hn::Add(hn::Mul(dx, dx), hn::Mul(dy, dy)), tents(d, hn::Mul(hn::Mul(dt, dt), inverse_time2))};
}

// Adds the hits in lanes `at`, `at` + 16 ... to the partial sums of these lanes.
HWY_INLINE void sum_lanes(FloatTag d, const PlaneHits& hits, const float* weight, const Circle& circle, FloatVec inverse_width2,
                          FloatVec inverse_time2, std::uint32_t lane, float (*parts)[kFitLanes]) {
  const auto one = hn::Set(d, 1.0F);
  const auto radius = hn::Set(d, circle.radius_mm);
  const auto count = hn::Set(d, static_cast<float>(hits.plane.count));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0, s8 = s0, s9 = s0;
  for (std::uint32_t at = lane; at < hits.plane.count; at += kFitLanes) {
    const FromCircle hit = from_circle(d, hits, at, circle, inverse_time2);
    const auto distance = hn::Sqrt(hn::Max(hit.square, hn::Set(d, 1.0e-4F)));
    const auto residual = hn::Sub(distance, radius);
    const auto inverse = hn::Div(one, distance);
    const auto ux = hn::Mul(hit.dx, inverse);
    const auto uy = hn::Mul(hit.dy, inverse);
    const auto near = tents(d, hn::Mul(hn::Mul(residual, residual), inverse_width2));
    const auto inside = hn::Lt(hn::Iota(d, static_cast<float>(at)), count);
    const auto given = hn::IfThenElseZero(inside, hn::Load(d, weight + at));
    const auto w = hn::Mul(hn::Mul(near, near), hn::Mul(given, hit.time_factor));
    const auto wx = hn::Mul(w, ux);
    const auto wy = hn::Mul(w, uy);
    s0 = hn::Add(s0, w);
    s1 = hn::Add(s1, wx);
    s2 = hn::Add(s2, wy);
    s3 = hn::Add(s3, hn::Mul(wx, ux));
    s4 = hn::Add(s4, hn::Mul(wx, uy));
    s5 = hn::Add(s5, hn::Mul(wy, uy));
    s6 = hn::Add(s6, hn::Mul(w, residual));
    s7 = hn::Add(s7, hn::Mul(wx, residual));
    s8 = hn::Add(s8, hn::Mul(wy, residual));
    s9 = hn::Add(s9, hn::Mul(w, hn::Load(d, hits.time_ns + at)));
  }
  hn::Store(s0, d, parts[0] + lane);
  hn::Store(s1, d, parts[1] + lane);
  hn::Store(s2, d, parts[2] + lane);
  hn::Store(s3, d, parts[3] + lane);
  hn::Store(s4, d, parts[4] + lane);
  hn::Store(s5, d, parts[5] + lane);
  hn::Store(s6, d, parts[6] + lane);
  hn::Store(s7, d, parts[7] + lane);
  hn::Store(s8, d, parts[8] + lane);
  hn::Store(s9, d, parts[9] + lane);
}

struct VectorKernels : ScalarKernels {
  static void best_of_seed(Arrays& arrays, const SeedView& view, const CircleCuts& cuts, SeedBest& best) {
    if (cuts.time_width_ns > 0.0F) return best_of_seed_lanes<true>(view, cuts, arrays.list, best);
    best_of_seed_lanes<false>(view, cuts, arrays.list, best);
  }

  static void near_to(const PlaneHits& hits, const Circle& circle, float inverse_width2, float inverse_time2, float* out) {
    const FloatTag d;
    for (std::uint32_t at = 0; at < hits.plane.count; at += static_cast<std::uint32_t>(hn::Lanes(d))) {
      const FromCircle hit = from_circle(d, hits, at, circle, hn::Set(d, inverse_time2));
      const auto residual = hn::Sub(hn::Sqrt(hit.square), hn::Set(d, circle.radius_mm));
      const auto near = tents(d, hn::Mul(hn::Mul(residual, residual), hn::Set(d, inverse_width2)));
      hn::Store(hn::Mul(near, hit.time_factor), d, out + at);
    }
  }

  static FitSums fit_sums(const PlaneHits& hits, const float* weight, const Circle& circle, float inverse_width2,
                          float inverse_time2) {
    const FloatTag d;
    alignas(64) float parts[kFitSumCount][kFitLanes];
    for (std::uint32_t lane = 0; lane < kFitLanes; lane += static_cast<std::uint32_t>(hn::Lanes(d))) {
      sum_lanes(d, hits, weight, circle, hn::Set(d, inverse_width2), hn::Set(d, inverse_time2), lane, parts);
    }
    const hn::FixedTag<float, 4> d4;
    FitSums sums;
    for (std::uint32_t f = 0; f < kFitSumCount; ++f) {
      const float* part = parts[f];
      const auto even = hn::Add(hn::Load(d4, part), hn::Load(d4, part + 8));
      const auto odd = hn::Add(hn::Load(d4, part + 4), hn::Load(d4, part + 12));
      const auto four = hn::Add(even, odd);
      const auto two = hn::Add(four, hn::Shuffle1032(four));
      sums.of[f] = hn::GetLane(hn::Add(two, hn::Shuffle2301(two)));
    }
    return sums;
  }
};

#endif  // scalar

void find_batch(const event::Event* events, std::size_t count, EventRings* rings, const TripletsCuts& cuts) {
  for (std::size_t k = 0; k < count; ++k) rings[k] = find_with<VectorKernels>(events[k], kPmPoints.data(), cuts);
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace nanet::rich::triplets
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nanet::rich {
namespace triplets {
HWY_EXPORT(find_batch);
HWY_EXPORT(target_name);
}  // namespace triplets

void find_triplets(std::span<const event::Event> events, std::span<EventRings> rings, const TripletsCuts& cuts) {
  using namespace triplets;
  HWY_DYNAMIC_DISPATCH(find_batch)(events.data(), std::min(events.size(), rings.size()), rings.data(), cuts);
}

const char* find_triplets_target() {
  using namespace triplets;
  return HWY_DYNAMIC_DISPATCH(target_name)();
}

}  // namespace nanet::rich
#endif  // HWY_ONCE
