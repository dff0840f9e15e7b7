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

// rings[k] becomes what is found in events[k]. `rings` must be at least as long as `events`.
void find_rings(const FinderConfig& config, std::span<const EventHits> events, std::span<EventRings> rings);

// The same rings, bit for bit, by the scalar function.
EventRings find_rings_scalar(const FinderConfig& config, EventHits event);

}  // namespace nanet::rich
