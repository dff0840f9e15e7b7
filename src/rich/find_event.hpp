// SPDX-License-Identifier: Apache-2.0
// The ring finders on one event, on host and device, by kind; and what a full answer leaves out.
//
// Thread rules: pure functions, no allocation, no exception.
#pragma once

#include <cstdint>
#include <type_traits>

#include "nanet/host_device.hpp"
#include "nanet/rich/finder.hpp"
#include "rich/almagest.hpp"
#include "rich/domh.hpp"
#include "rich/histogram.hpp"
#include "rich/hough.hpp"
#include "rich/mixture.hpp"
#include "rich/pomh.hpp"
#include "rich/triplets.hpp"
#include "rich/tripls.hpp"

namespace nanet::rich {

// ---- more rings than an answer holds

// A ring's hit is hardly ever further from it.
inline constexpr float kFarFromRingMm = 16.0F;
inline constexpr std::uint32_t kMoreHitsMin = 5;  // of hits far from all rings, fewer are noise

NANET_HD inline bool is_far_from_rings(const PmPoint& point, const EventRings& found) {
  for (std::uint32_t r = 0; r < found.count; ++r) {
    const Ring& ring = found.rings[r];
    const float x = point.x_mm - ring.x_mm;
    const float y = point.y_mm - ring.y_mm;
    const float square = x * x + y * y;
    const float inner = ring.radius_mm > kFarFromRingMm ? ring.radius_mm - kFarFromRingMm : 0.0F;
    const float outer = ring.radius_mm + kFarFromRingMm;
    if (square >= inner * inner && square <= outer * outer) return false;
  }
  return true;
}

// Brings the hits on PMs that are far from all rings of `found` to the front, and returns how many they are.
NANET_HD inline std::uint32_t far_hits_first(std::uint16_t* hits, std::uint32_t count, const PmPoint* points,
                                             const EventRings& found) {
  std::uint32_t far = 0;
  for (std::uint32_t k = 0; k < count; ++k) {
    const std::uint16_t hit = hits[k];
    const PmPoint& point = points[hit & (kPmPointRows - 1)];
    if (point.mapped == 0 || !is_far_from_rings(point, found)) continue;
    hits[k] = hits[far];
    hits[far++] = hit;
  }
  return far;
}

// ---- one event, host and device. `points`: kPmPoints, or its copy in the GPU's memory.

// The MATH fit as a finder: its ring, if there are four hits.
NANET_HD inline EventRings find_math(event::Event event, const PmPoint* points, const NoCuts&) {
  const std::uint32_t count = event.count < kMaxHits ? event.count : kMaxHits;
  RingSums sums;
  for (std::uint32_t k = 0; k < count; ++k) {
    const PmPoint& point = points[event.hits[k] & (kPmPointRows - 1)];
    if (point.mapped != 0) add(sums, make_ring_sums_row(point.i, point.j));
  }
  EventRings found;
  found.rings[0] = solve_ring(sums);
  found.mapped_hits = found.rings[0].hits;
  found.truncated = event.count > kMaxHits ? 1 : 0;
  found.count = has_ring(found.rings[0].status) && found.mapped_hits >= 4 ? 1 : 0;
  if (found.count == 0) found.rings[0] = Ring{};
  return found;
}

template <FinderKind kind>
NANET_HD inline EventRings find_event(const FinderConfig& config, event::Event event, const PmPoint* points) {
#define X(name, cuts, several, help) \
  if constexpr (kind == FinderKind::name) return find_##name(event, points, config.name);
  NANET_FINDERS(X)
#undef X
}

}  // namespace nanet::rich
