// SPDX-License-Identifier: Apache-2.0
// The histogram finder with DOMH's scan and the vectorised fit; what it does between them is the header's own code.
#include "rich/histogram.hpp"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rich/histogram.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "rich/circle_refit-inl.hpp"
#include "rich/domh_scan-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace nanet::rich {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void find_histogram_batch(const event::Event* events, std::size_t count, EventRings* rings, const HistogramCuts& cuts) {
  for (std::size_t e = 0; e < count; ++e) rings[e] = find_histogram(events[e], kPmPoints.data(), cuts);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// Not inlined: the header's code that calls them is not compiled for this instruction set.
HWY_NOINLINE CenterPeak find_peak(const LatticeHits& lattice, const CenterRows& rows) { return domh::scan_centers(lattice, rows); }
HWY_NOINLINE bool refit_to(const HitPlane& plane, const RefitCuts& cuts, Circle& circle) {
  return refit::refit_circle(plane, cuts, circle);
}
HWY_NOINLINE Ring fit_to(const HitPlane& plane, float window_mm, const Circle& circle) {
  return refit::fit_near(plane, window_mm, circle);
}

// nearest_circle for all hits.
HWY_NOINLINE void take_owners(const HitPlane& plane, const Circle* circles, std::uint32_t count, std::uint8_t* owners) {
  const refit::FloatTag d;
  const refit::IntTag di;
  alignas(64) std::int32_t nearest[kMaxHits];
  for (std::uint32_t k = 0; k < plane.count; k += static_cast<std::uint32_t>(hn::Lanes(d))) {
    auto best = hn::Set(d, kFarMm);
    auto owner = hn::Set(di, std::int32_t{kNoOwner});
    for (std::uint32_t r = 0; r < count; ++r) {
      const auto miss = hn::Abs(refit::misses(plane, k, circles[r], hn::Set(d, circles[r].radius_mm)));
      const auto nearer = hn::Lt(miss, best);
      best = hn::IfThenElse(nearer, miss, best);
      owner = hn::IfThenElse(hn::RebindMask(di, nearer), hn::Set(di, static_cast<std::int32_t>(r)), owner);
    }
    hn::Store(owner, di, nearest + k);
  }
  for (std::uint32_t k = 0; k < plane.count; ++k) owners[k] = static_cast<std::uint8_t>(nearest[k]);
}

struct VectorSteps {
  const CenterRows* rows;

  CenterPeak peak(const LatticeHits& lattice, float) const { return find_peak(lattice, *rows); }
  bool refit(const HitPlane& plane, const RefitCuts& cuts, Circle& circle) const { return refit_to(plane, cuts, circle); }
  Ring fit(const HitPlane& plane, float window_mm, const Circle& circle) const { return fit_to(plane, window_mm, circle); }
  void owners(const HitPlane& plane, const Circle* circles, std::uint32_t count, std::uint8_t* owner) const {
    take_owners(plane, circles, count, owner);
  }
};

void find_histogram_batch(const event::Event* events, std::size_t count, EventRings* rings, const HistogramCuts& cuts) {
  const CenterRows rows = center_rows(cuts.center_range_mm);
  for (std::size_t e = 0; e < count; ++e) rings[e] = find_rings_by_steps(events[e], kPmPoints.data(), cuts, VectorSteps{&rows});
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace nanet::rich
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nanet::rich {

HWY_EXPORT(find_histogram_batch);

void find_histogram(std::span<const event::Event> events, std::span<EventRings> rings, const HistogramCuts& cuts) {
  HWY_DYNAMIC_DISPATCH(find_histogram_batch)(events.data(), std::min(events.size(), rings.size()), rings.data(), cuts);
}

}  // namespace nanet::rich
#endif  // HWY_ONCE
