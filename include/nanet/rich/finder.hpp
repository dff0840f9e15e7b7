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

#include "nanet/rich/almagest_cuts.hpp"
#include "nanet/rich/center_scan_cuts.hpp"
#include "nanet/rich/histogram_cuts.hpp"
#include "nanet/rich/hough_cuts.hpp"
#include "nanet/rich/mixture_cuts.hpp"
#include "nanet/rich/ring.hpp"
#include "nanet/rich/triplets_cuts.hpp"
#include "nanet/rich/tripls_cuts.hpp"

namespace nanet::rich {

// The cuts of a finder that has none.
struct NoCuts {};

// X(name, cuts, several, help): find_NAME is the finder, in two forms, for one event and for many; several: it may answer as many rings as an answer holds; help: for a person.
// Append only: the order is that of FinderKind's numbers. NanetCuda.cmake reads it too.
#define NANET_FINDERS(X)                                                                                                         \
  X(math, NoCuts, false, "One ring by the algebraic fit of all hits: the fastest, but any noise corrupts it.")                   \
  X(pomh, PomhCuts, false, "One ring: the sharpest peak of the distance histograms of all candidate centres, centre by centre.") \
  X(domh, DomhCuts, false, "The same rings as pomh, laid out for vector units: centres side by side.")                           \
  X(hough, HoughCuts, false, "One ring: the highest cell of an accumulator over centre and radius, coarse and then fine.")       \
  X(tripls, TriplsCuts, false,                                                                                                   \
    "One ring: the circles through many triplets of hits that agree, and a fit of the hits close to them.")                      \
  X(histogram, HistogramCuts, true, "Several rings: peaks of the distance histograms, ring by ring, which then share the hits.") \
  X(almagest, AlmagestCuts, true, "Several rings from Almagest's triplets: the fastest finder of several rings.")                \
  X(triplets, TripletsCuts, true, "Several rings: best-scoring circle through three hits, robust joint refit.")                  \
  X(mixture, MixtureCuts, true,                                                                                                  \
    "Several rings and noise as a mixture, fitted by expectation maximisation: the best rings, but slow.")

enum class FinderKind : std::uint8_t {
#define X(name, cuts, several, help) name,
  NANET_FINDERS(X)
#undef X
};
inline constexpr const char* kFinderNames[] = {
#define X(name, cuts, several, help) #name,
    NANET_FINDERS(X)
#undef X
};
inline constexpr const char* kFinderHelp[] = {
#define X(name, cuts, several, help) help,
    NANET_FINDERS(X)
#undef X
};
inline constexpr std::uint32_t kFinderCount = std::size(kFinderNames);

constexpr const char* finder_name(FinderKind kind) { return kFinderNames[static_cast<std::size_t>(kind)]; }

// Which finder, and the cuts of each (see the finders' headers for their effect).
struct FinderConfig {
  FinderKind kind = FinderKind::math;
#define X(name, cuts, several, help) cuts name;
  NANET_FINDERS(X)
#undef X

  // Calls visit(name, cuts) for the cuts of each finder that has some; cuts.visit(...) then names each cut, with what is known of it.
  template <class Visit>
  void visit_cuts(Visit&& visit) {
#define X(name, cuts, several, help) \
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

// Whether a finder may answer as many rings as an answer holds.
constexpr bool finds_several(FinderKind kind) {
  constexpr bool kSeveral[] = {
#define X(name, cuts, several, help) several,
      NANET_FINDERS(X)
#undef X
  };
  return kSeveral[static_cast<std::size_t>(kind)];
}

// Calls take(constant) with the kind as a std::integral_constant, so that take can be a template.
template <class Take>
decltype(auto) with_finder(FinderKind kind, Take&& take) {
  switch (kind) {
#define X(name, cuts, several, help) \
  case FinderKind::name: return take(std::integral_constant<FinderKind, FinderKind::name>{});
    NANET_FINDERS(X)
#undef X
  }
  return take(std::integral_constant<FinderKind, FinderKind::math>{});
}

}  // namespace nanet::rich
