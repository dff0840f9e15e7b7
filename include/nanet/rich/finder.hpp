// SPDX-License-Identifier: Apache-2.0
// One interface to every ring finder: hits of events in, rings out.
//
// Single ring  math, pomh, domh, hough, tripls      several rings  histogram, almagest, triplets, mixture
// Each finder is one host and device function on one event (in its own header), whose bits find_rings gives too, vectorised where that is faster.
// Events with fewer than four hits on PMs, or all of them on a line, have no ring. What is found is finite, always.
// Thread rules: pure functions, no allocation, no exception.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "nanet/rich/almagest.hpp"
#include "nanet/rich/domh.hpp"
#include "nanet/rich/histogram.hpp"
#include "nanet/rich/hough.hpp"
#include "nanet/rich/mixture.hpp"
#include "nanet/rich/pomh.hpp"
#include "nanet/rich/ring.hpp"
#include "nanet/rich/triplets.hpp"
#include "nanet/rich/tripls.hpp"

namespace nanet::rich {

enum class FinderKind : std::uint8_t { math, pomh, domh, hough, tripls, histogram, almagest, triplets, mixture };
inline constexpr std::uint32_t kFinderCount = 9;

const char* finder_name(FinderKind kind);

// Which finder, and the cuts of each (see the finders' headers for their effect).
struct FinderConfig {
  FinderKind kind = FinderKind::math;
  PomhCuts pomh;
  DomhCuts domh;
  HoughCuts hough;
  TriplsCuts tripls;
  HistogramCuts histogram;
  AlmagestCuts almagest;
  TripletsCuts triplets;
  MixtureCuts mixture;

  // Calls visit(name, cuts) for the cuts of each finder that has some; cuts.visit(...) then names each cut.
  template <class Visit>
  void visit_cuts(Visit&& visit) {
    visit("pomh", pomh);
    visit("domh", domh);
    visit("hough", hough);
    visit("tripls", tripls);
    visit("histogram", histogram);
    visit("almagest", almagest);
    visit("triplets", triplets);
    visit("mixture", mixture);
  }
};

// rings[k] becomes what is found in events[k]. `rings` must be at least as long as `events`. Where an answer is full, the hits far from its rings are
// searched once more: a ring there was left out (more_rings).
void find_rings(const FinderConfig& config, std::span<const event::Event> events, std::span<EventRings> rings);

// The same rings, bit for bit, by the function on one event.
EventRings find_rings_scalar(const FinderConfig& config, event::Event event);

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

// Whether a finder may answer as many rings as an answer holds.
constexpr bool finds_several(FinderKind kind) {
  return kind == FinderKind::histogram || kind == FinderKind::almagest || kind == FinderKind::triplets || kind == FinderKind::mixture;
}

// ---- one event, host and device. `points`: kPmPoints, or its copy in the GPU's memory.

// The MATH fit as a finder: its ring, if there are four hits.
NANET_HD inline EventRings find_math(event::Event event, const PmPoint* points) {
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
  if constexpr (kind == FinderKind::math) return find_math(event, points);
  if constexpr (kind == FinderKind::pomh) return find_pomh(event, points, config.pomh);
  if constexpr (kind == FinderKind::domh) return find_domh(event, points, config.domh);
  if constexpr (kind == FinderKind::hough) return find_hough(event, points, config.hough);
  if constexpr (kind == FinderKind::tripls) return find_tripls(event, points, config.tripls);
  if constexpr (kind == FinderKind::histogram) return find_histogram(event, points, config.histogram);
  if constexpr (kind == FinderKind::almagest) return find_almagest(event, points, config.almagest);
  if constexpr (kind == FinderKind::triplets) return find_triplets(event, points, config.triplets);
  if constexpr (kind == FinderKind::mixture) return find_mixture(event, points, config.mixture);
}

// Calls take(constant) with the kind as a std::integral_constant, so that take can be a template.
template <class Take>
decltype(auto) with_finder(FinderKind kind, Take&& take) {
  switch (kind) {
    case FinderKind::pomh: return take(std::integral_constant<FinderKind, FinderKind::pomh>{});
    case FinderKind::domh: return take(std::integral_constant<FinderKind, FinderKind::domh>{});
    case FinderKind::hough: return take(std::integral_constant<FinderKind, FinderKind::hough>{});
    case FinderKind::tripls: return take(std::integral_constant<FinderKind, FinderKind::tripls>{});
    case FinderKind::histogram: return take(std::integral_constant<FinderKind, FinderKind::histogram>{});
    case FinderKind::almagest: return take(std::integral_constant<FinderKind, FinderKind::almagest>{});
    case FinderKind::triplets: return take(std::integral_constant<FinderKind, FinderKind::triplets>{});
    case FinderKind::mixture: return take(std::integral_constant<FinderKind, FinderKind::mixture>{});
    case FinderKind::math: break;
  }
  return take(std::integral_constant<FinderKind, FinderKind::math>{});
}

}  // namespace nanet::rich
