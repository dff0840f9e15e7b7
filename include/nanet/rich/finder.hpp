// SPDX-License-Identifier: Apache-2.0
// One interface to every ring finder: hits of events in, rings out.
//
// Single ring  math, pomh, domh, hough, tripls      several rings  histogram, almagest, triplets, mixture
// Each finder is one host and device function on one event (in its own header), whose bits find_rings gives too, vectorised where that is faster.
// Events with fewer than four hits on PMs, or all of them on a line, have no ring. Results are always finite.
// A finder is added by its header, its source and a line in NANET_FINDERS: all else, the GPU's kernels and the models of a configuration too, is made from that list.
// Thread rules: pure functions, no allocation, no exception.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
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

// The cuts of a finder that has none.
struct NoCuts {};

// X(name, cuts, several): find_NAME is the finder, in two forms, for one event and for many; several: it may answer as many rings as an answer holds.
// Append only: the order is that of FinderKind's numbers. NanetCuda.cmake reads it too.
#define NANET_FINDERS(X)            \
  X(math, NoCuts, false)            \
  X(pomh, PomhCuts, false)          \
  X(domh, DomhCuts, false)          \
  X(hough, HoughCuts, false)        \
  X(tripls, TriplsCuts, false)      \
  X(histogram, HistogramCuts, true) \
  X(almagest, AlmagestCuts, true)   \
  X(triplets, TripletsCuts, true)   \
  X(mixture, MixtureCuts, true)

enum class FinderKind : std::uint8_t {
#define X(name, cuts, several) name,
  NANET_FINDERS(X)
#undef X
};
inline constexpr const char* kFinderNames[] = {
#define X(name, cuts, several) #name,
    NANET_FINDERS(X)
#undef X
};
inline constexpr std::uint32_t kFinderCount = std::size(kFinderNames);

constexpr const char* finder_name(FinderKind kind) { return kFinderNames[static_cast<std::size_t>(kind)]; }

// Which finder, and the cuts of each (see the finders' headers for their effect).
struct FinderConfig {
  FinderKind kind = FinderKind::math;
#define X(name, cuts, several) cuts name;
  NANET_FINDERS(X)
#undef X

  // Calls visit(name, cuts) for the cuts of each finder that has some; cuts.visit(...) then names each cut.
  template <class Visit>
  void visit_cuts(Visit&& visit) {
#define X(name, cuts, several) \
  if constexpr (!std::is_same_v<cuts, NoCuts>) visit(#name, name);
    NANET_FINDERS(X)
#undef X
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
  constexpr bool kSeveral[] = {
#define X(name, cuts, several) several,
      NANET_FINDERS(X)
#undef X
  };
  return kSeveral[static_cast<std::size_t>(kind)];
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
#define X(name, cuts, several) \
  if constexpr (kind == FinderKind::name) return find_##name(event, points, config.name);
  NANET_FINDERS(X)
#undef X
}

// Calls take(constant) with the kind as a std::integral_constant, so that take can be a template.
template <class Take>
decltype(auto) with_finder(FinderKind kind, Take&& take) {
  switch (kind) {
#define X(name, cuts, several) \
  case FinderKind::name: return take(std::integral_constant<FinderKind, FinderKind::name>{});
    NANET_FINDERS(X)
#undef X
  }
  return take(std::integral_constant<FinderKind, FinderKind::math>{});
}

}  // namespace nanet::rich
