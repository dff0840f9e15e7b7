// SPDX-License-Identifier: Apache-2.0
// circle_refit.hpp on vectors: weights of several hits at a time, then one vector add a hit. The same operations in the same order, so the same bits.
// Included once an instruction set (see Highway's foreach_target.h), not with HWY_SCALAR.
#include "rich/circle_refit.hpp"

#if defined(NANET_RICH_CIRCLE_REFIT_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef NANET_RICH_CIRCLE_REFIT_INL_HPP
#undef NANET_RICH_CIRCLE_REFIT_INL_HPP
#else
#define NANET_RICH_CIRCLE_REFIT_INL_HPP
#endif

#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR

HWY_BEFORE_NAMESPACE();
namespace nanet::rich {
namespace HWY_NAMESPACE {
namespace refit {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;  // columns of a plane are readable up to a multiple of 16
using IntTag = hn::RebindToSigned<FloatTag>;

// sums = weights times rows. Weights and the eight sums are int32.
HWY_INLINE void sum_rows(const HitPlane& plane, const std::int32_t* weights, RingSums& sums) {
#if HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE
  const hn::FixedTag<std::int32_t, 8> d;
  auto sum0 = hn::Zero(d);
  auto sum1 = sum0;
  std::uint32_t k = 0;
  for (; k + 2 <= plane.count; k += 2) {
    sum0 = hn::Add(sum0, hn::Mul(hn::Set(d, weights[k]), hn::Load(d, &kRingSumTable[plane.row[k]].hits_and_i)));
    sum1 = hn::Add(sum1, hn::Mul(hn::Set(d, weights[k + 1]), hn::Load(d, &kRingSumTable[plane.row[k + 1]].hits_and_i)));
  }
  if (k < plane.count) sum0 = hn::Add(sum0, hn::Mul(hn::Set(d, weights[k]), hn::Load(d, &kRingSumTable[plane.row[k]].hits_and_i)));
  hn::Store(hn::Add(sum0, sum1), d, &sums.hits_and_i);
#else
  const hn::FixedTag<std::int32_t, 4> d;
  auto low = hn::Zero(d);
  auto high = low;
  for (std::uint32_t k = 0; k < plane.count; ++k) {
    const std::int32_t* row = &kRingSumTable[plane.row[k]].hits_and_i;
    const auto weight = hn::Set(d, weights[k]);
    low = hn::Add(low, hn::Mul(weight, hn::Load(d, row)));
    high = hn::Add(high, hn::Mul(weight, hn::Load(d, row + 4)));
  }
  hn::Store(low, d, &sums.hits_and_i);
  hn::Store(high, d, &sums.jj);
#endif
}

// Signed distance of hits from the circle.
template <class V>
HWY_INLINE V misses(const HitPlane& plane, std::uint32_t k, const Circle& circle, V radius) {
  const FloatTag d;
  const V dx = hn::Sub(hn::Load(d, plane.x_mm + k), hn::Set(d, circle.x_mm));
  const V dy = hn::Sub(hn::Load(d, plane.y_mm + k), hn::Set(d, circle.y_mm));
  return hn::Sub(hn::Sqrt(hn::Add(hn::Mul(dx, dx), hn::Mul(dy, dy))), radius);
}

HWY_INLINE bool refit_circle(const HitPlane& plane, const RefitCuts& cuts, Circle& circle) {
  const FloatTag d;
  const IntTag di;
  const auto one = hn::Set(d, 1.0F);
  alignas(64) std::int32_t weights[kMaxHits];
  const std::uint32_t passes = cuts.passes < kMaxRefitPasses ? cuts.passes : kMaxRefitPasses;
  for (std::uint32_t pass = 0; pass < passes; ++pass) {
    const auto inverse = hn::Set(d, inverse_scale2(cuts, pass));
    const auto radius = hn::Set(d, circle.radius_mm);
    for (std::uint32_t k = 0; k < plane.count; k += static_cast<std::uint32_t>(hn::Lanes(d))) {
      const auto miss = misses(plane, k, circle, radius);
      const auto left = hn::Sub(one, hn::Mul(hn::Mul(miss, miss), inverse));
      const auto weight = hn::Add(hn::Mul(hn::Mul(left, left), hn::Set(d, kBiweightSteps)), hn::Set(d, 0.5F));
      hn::Store(hn::ConvertTo(di, hn::IfThenElseZero(hn::Gt(left, hn::Zero(d)), weight)), di, weights + k);
    }
    WeightedSums sums;
    sum_rows(plane, weights, sums.sums);
    for (std::uint32_t k = 0; k < plane.count; ++k) sums.weight += weights[k];
    if (!solve_circle(sums, circle)) return false;
  }
  return true;
}

HWY_INLINE Ring fit_near(const HitPlane& plane, float window_mm, const Circle& circle) {
  const FloatTag d;
  const IntTag di;
  alignas(64) std::int32_t weights[kMaxHits];
  const auto window = hn::Set(d, window_mm);
  const auto radius = hn::Set(d, circle.radius_mm);
  for (std::uint32_t k = 0; k < plane.count; k += static_cast<std::uint32_t>(hn::Lanes(d))) {
    const auto miss = misses(plane, k, circle, radius);
    const auto near = hn::And(hn::Le(miss, window), hn::Le(hn::Neg(miss), window));
    hn::Store(hn::IfThenElseZero(hn::RebindMask(di, near), hn::Set(di, 1)), di, weights + k);
  }
  RingSums sums;
  sum_rows(plane, weights, sums);
  std::int32_t time_codes = 0;
  for (std::uint32_t k = 0; k < plane.count; ++k) time_codes += weights[k] * plane.time_code[k];
  Ring ring = solve_ring(sums);
  if (ring.hits > 0) ring.time_ns = static_cast<float>(time_codes) / static_cast<float>(ring.hits) * kHitTimeUnitNs;
  return ring;
}

// What a single-ring finder does once it has a circle.
template <class Cuts>
HWY_INLINE void take_ring(const HitPlane& plane, const Cuts& cuts, Circle circle, EventRings& found) {
  if (!refit_circle(plane, refit_cuts(cuts), circle)) return;
  const Ring ring = fit_near(plane, cuts.window_mm, circle);
  if (!is_within(ring, ring_limits(cuts))) return;
  found.rings[0] = ring;
  found.count = 1;
}

}  // namespace refit
}  // namespace HWY_NAMESPACE
}  // namespace nanet::rich
HWY_AFTER_NAMESPACE();

#endif  // not scalar
#endif  // include guard a target
