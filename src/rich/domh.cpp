// SPDX-License-Identifier: Apache-2.0
// DOMH on vectors: centres in the lanes, 64 bins as 64 bits (domh_scan-inl.hpp).
#include "rich/domh.hpp"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rich/domh.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "rich/circle_refit-inl.hpp"
#include "rich/domh_scan-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace nanet::rich {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void find_domh_batch(const event::Event* events, std::size_t count, EventRings* rings, const DomhCuts& cuts) {
  for (std::size_t e = 0; e < count; ++e) rings[e] = find_domh(events[e], kPmPoints.data(), cuts);
}

#else

void find_domh_batch(const event::Event* events, std::size_t count, EventRings* rings, const DomhCuts& cuts) {
  const CenterRows rows = center_rows(cuts.center_range_mm);
  HitPlane plane;
  LatticeHits lattice;
  for (std::size_t e = 0; e < count; ++e) {
    lay_out_hits(events[e], kPmPoints.data(), plane);
    rings[e] = no_rings(plane);
    if (plane.count < 4) continue;
    take_lattice(plane, kPmPoints.data(), lattice);
    const CenterPeak peak = domh::scan_centers(lattice, rows);
    if (peak.score != 0) refit::take_ring(plane, cuts, circle_of(peak), rings[e]);
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace nanet::rich
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nanet::rich {

HWY_EXPORT(find_domh_batch);

void find_domh(std::span<const event::Event> events, std::span<EventRings> rings, const DomhCuts& cuts) {
  HWY_DYNAMIC_DISPATCH(find_domh_batch)(events.data(), std::min(events.size(), rings.size()), rings.data(), cuts);
}

}  // namespace nanet::rich
#endif  // HWY_ONCE
