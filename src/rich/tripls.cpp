// SPDX-License-Identifier: Apache-2.0
// TRIPLS on vectors: a triplet in each lane, then a circle in each lane.
#include "rich/tripls.hpp"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rich/tripls.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "rich/circle_refit-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace nanet::rich {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void find_tripls_batch(const event::Event* events, std::size_t count, EventRings* rings, const TriplsCuts& cuts) {
  for (std::size_t e = 0; e < count; ++e) rings[e] = find_tripls(events[e], kPmPoints.data(), cuts);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using TripletTag = hn::CappedTag<float, 16>;
using LikeTag = hn::CappedTag<std::int16_t, 32>;

// Coordinates twice in a row, so that hits a + p for neighbouring a are neighbours; finite values after them.
struct TwiceHits {
  float x_mm[2 * kMaxHits + 16];
  float y_mm[2 * kMaxHits + 16];
};

HWY_INLINE void lay_out_twice(const HitPlane& plane, TwiceHits& twice) {
  const TripletTag d;
  const auto copy = [&](std::uint32_t to) HWY_ATTR {
    for (std::uint32_t k = 0; k < plane.count; k += static_cast<std::uint32_t>(hn::Lanes(d))) {
      hn::StoreU(hn::Load(d, plane.x_mm + k), d, twice.x_mm + to + k);
      hn::StoreU(hn::Load(d, plane.y_mm + k), d, twice.y_mm + to + k);
    }
  };
  copy(0);
  copy(plane.count);  // what the first copy wrote past its end is overwritten
  for (std::uint32_t k = 2 * plane.count; k < 2 * plane.count + 16; ++k) twice.x_mm[k] = twice.y_mm[k] = kFarMm;
}

// take_triplet of tripls.hpp for as many first hits as there are lanes; those with keep set.
template <class V, class M>
HWY_INLINE void take_lanes(const TwiceHits& hits, std::uint32_t a, Steps steps, const TripletLimits& limits, V ax, V ay, M keep,
                           CircleList& circles) {
  const TripletTag d;
  const hn::RebindToSigned<TripletTag> di;
  const hn::Rebind<std::int16_t, TripletTag> ds;
  const V bx = hn::Sub(hn::LoadU(d, hits.x_mm + a + steps.first), ax);
  const V by = hn::Sub(hn::LoadU(d, hits.y_mm + a + steps.first), ay);
  const V cx = hn::Sub(hn::LoadU(d, hits.x_mm + a + steps.second), ax);
  const V cy = hn::Sub(hn::LoadU(d, hits.y_mm + a + steps.second), ay);
  const V b2 = hn::Add(hn::Mul(bx, bx), hn::Mul(by, by));
  const V c2 = hn::Add(hn::Mul(cx, cx), hn::Mul(cy, cy));
  const V ex = hn::Sub(cx, bx);
  const V ey = hn::Sub(cy, by);
  const V e2 = hn::Add(hn::Mul(ex, ex), hn::Mul(ey, ey));
  const V det = hn::Mul(hn::Set(d, 2.0F), hn::Sub(hn::Mul(bx, cy), hn::Mul(by, cx)));
  const V distance2 = hn::Set(d, limits.distance2);
  const auto apart = hn::And(hn::And(hn::Ge(b2, distance2), hn::Ge(c2, distance2)), hn::Ge(e2, distance2));
  const auto solvable = hn::And(hn::And(keep, apart), hn::Ne(det, hn::Zero(d)));
  const V inverse = hn::Div(hn::Set(d, 1.0F), hn::IfThenElse(solvable, det, hn::Set(d, 1.0F)));
  const V ux = hn::Mul(hn::Sub(hn::Mul(cy, b2), hn::Mul(by, c2)), inverse);
  const V uy = hn::Mul(hn::Sub(hn::Mul(bx, c2), hn::Mul(cx, b2)), inverse);
  const V radius = hn::Sqrt(hn::Add(hn::Mul(ux, ux), hn::Mul(uy, uy)));
  const V x = hn::Add(ax, ux);
  const V y = hn::Add(ay, uy);
  const V center = hn::Set(d, limits.center);
  const auto sized = hn::And(hn::Ge(radius, hn::Set(d, limits.radius_min)), hn::Le(radius, hn::Set(d, limits.radius_max)));
  const auto placed = hn::And(hn::Le(hn::Abs(x), center), hn::Le(hn::Abs(y), center));
  const auto good = hn::And(hn::And(solvable, sized), placed);
  const auto store = [&](V value, std::int16_t* to) HWY_ATTR {
    const V units = hn::Add(hn::Mul(value, hn::Set(d, kCircleUnitsPerMm)), hn::Set(d, 16384.5F));
    const auto whole = hn::Sub(hn::ConvertTo(di, hn::IfThenElseZero(good, units)), hn::Set(di, 16384));
    hn::StoreU(hn::DemoteTo(ds, hn::Compress(whole, hn::RebindMask(di, good))), ds, to + circles.count);
  };
  store(x, circles.x);
  store(y, circles.y);
  store(radius, circles.radius);
  circles.count += static_cast<std::uint32_t>(hn::CountTrue(d, good));
}

HWY_INLINE void take_triplets_fast(const HitPlane& plane, const TriplsCuts& cuts, CircleList& circles) {
  const TripletTag d;
  const TripletLimits limits = triplet_limits(cuts);
  TwiceHits twice;
  lay_out_twice(plane, twice);
  const std::uint32_t firsts = plane.count < kMaxFirstHits ? plane.count : kMaxFirstHits;
  const std::uint32_t pairs = cuts.step_pairs < kMaxStepPairs ? cuts.step_pairs : kMaxStepPairs;
  circles.count = 0;
  for (std::uint32_t pair = 0; pair < pairs; ++pair) {
    const Steps steps = steps_of(pair, plane.count);
    for (std::uint32_t a = 0; a < firsts; a += static_cast<std::uint32_t>(hn::Lanes(d))) {
      take_lanes(twice, a, steps, limits, hn::LoadU(d, twice.x_mm + a), hn::LoadU(d, twice.y_mm + a), hn::FirstN(d, firsts - a),
                 circles);
    }
  }
  const LikeTag ds;
  for (std::uint32_t k = 0; k < 32; k += static_cast<std::uint32_t>(hn::Lanes(ds))) {  // like no circle
    hn::StoreU(hn::Set(ds, std::int16_t{32767}), ds, circles.x + circles.count + k);
    hn::StoreU(hn::Set(ds, std::int16_t{32767}), ds, circles.y + circles.count + k);
    hn::StoreU(hn::Set(ds, std::int16_t{32767}), ds, circles.radius + circles.count + k);
  }
}

// Circles from k on that are like (x, y, radius).
template <class V>
HWY_INLINE hn::Mask<LikeTag> like_lanes(const CircleList& circles, std::uint32_t k, V center, V radius_limit, V x, V y, V radius) {
  const LikeTag d;
  const V dx = hn::Abs(hn::Sub(hn::Load(d, circles.x + k), x));
  const V dy = hn::Abs(hn::Sub(hn::Load(d, circles.y + k), y));
  const V dr = hn::Abs(hn::Sub(hn::Load(d, circles.radius + k), radius));
  return hn::Not(hn::Or(hn::Gt(hn::Max(dx, dy), center), hn::Gt(dr, radius_limit)));  // there is no Le of int16
}

HWY_INLINE CircleSums sum_like_fast(const CircleList& circles, const Likeness& like, std::int32_t x, std::int32_t y,
                                    std::int32_t radius) {
  const LikeTag d;
  const hn::RepartitionToWide<LikeTag> dw;
  const hn::Half<LikeTag> dh;
  const auto set = [&](std::int32_t value) HWY_ATTR { return hn::Set(d, static_cast<std::int16_t>(value)); };
  auto sum_x = hn::Zero(dw), sum_y = sum_x, sum_radius = sum_x;
  CircleSums sums;
  for (std::uint32_t k = 0; k < circles.count; k += static_cast<std::uint32_t>(hn::Lanes(d))) {
    const auto alike = like_lanes(circles, k, set(like.center), set(like.radius), set(x), set(y), set(radius));
    const auto add = [&](const std::int16_t* from, auto& sum) HWY_ATTR {
      const auto value = hn::IfThenElseZero(alike, hn::Load(d, from + k));
      sum = hn::Add(sum, hn::PromoteTo(dw, hn::LowerHalf(dh, value)));
      sum = hn::Add(sum, hn::PromoteTo(dw, hn::UpperHalf(dh, value)));
    };
    add(circles.x, sum_x);
    add(circles.y, sum_y);
    add(circles.radius, sum_radius);
    sums.count += static_cast<std::int32_t>(hn::CountTrue(d, alike));
  }
  sums.x = hn::GetLane(hn::SumOfLanes(dw, sum_x));
  sums.y = hn::GetLane(hn::SumOfLanes(dw, sum_y));
  sums.radius = hn::GetLane(hn::SumOfLanes(dw, sum_radius));
  return sums;
}

// mean_circle of tripls.hpp.
HWY_INLINE CircleSums mean_circle_fast(const CircleList& circles, const Likeness& like) {
  const LikeTag d;
  const auto center = hn::Set(d, static_cast<std::int16_t>(like.center));
  const auto radius_limit = hn::Set(d, static_cast<std::int16_t>(like.radius));
  std::uint32_t best = 0;
  std::size_t best_count = 0;
  for (std::uint32_t s = 0; s < circles.count; ++s) {
    const auto x = hn::Set(d, circles.x[s]);
    const auto y = hn::Set(d, circles.y[s]);
    const auto radius = hn::Set(d, circles.radius[s]);
    std::size_t count = 0;
    for (std::uint32_t k = 0; k < circles.count; k += static_cast<std::uint32_t>(hn::Lanes(d)))
      count += hn::CountTrue(d, like_lanes(circles, k, center, radius_limit, x, y, radius));
    if (count > best_count) {
      best_count = count;
      best = s;
    }
  }
  if (best_count == 0) return {};
  const CircleSums mean = mean_of(sum_like_fast(circles, like, circles.x[best], circles.y[best], circles.radius[best]));
  const CircleSums again = sum_like_fast(circles, like, mean.x, mean.y, mean.radius);
  return again.count > 0 ? mean_of(again) : mean;
}

void find_tripls_batch(const event::Event* events, std::size_t count, EventRings* rings, const TriplsCuts& cuts) {
  const Likeness like = likeness(cuts);
  HitPlane plane;
  CircleList circles;
  for (std::size_t e = 0; e < count; ++e) {
    lay_out_hits(events[e], kPmPoints.data(), plane);
    rings[e] = no_rings(plane);
    if (plane.count < 4) continue;
    take_triplets_fast(plane, cuts, circles);
    const CircleSums mean = mean_circle_fast(circles, like);
    if (mean.count != 0) refit::take_ring(plane, cuts, circle_of(mean), rings[e]);
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace nanet::rich
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nanet::rich {

HWY_EXPORT(find_tripls_batch);

void find_tripls(std::span<const event::Event> events, std::span<EventRings> rings, const TriplsCuts& cuts) {
  HWY_DYNAMIC_DISPATCH(find_tripls_batch)(events.data(), std::min(events.size(), rings.size()), rings.data(), cuts);
}

}  // namespace nanet::rich
#endif  // HWY_ONCE
