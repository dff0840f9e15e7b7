// SPDX-License-Identifier: Apache-2.0
// POMH on vectors: one centre at a time, its 64 scores are 64 bytes, and a hit adds the row of its bin.
#include "rich/pomh.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rich/pomh.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "rich/center_tables.hpp"
#include "rich/circle_refit-inl.hpp"

#ifndef NANET_RICH_POMH_TABLES
#define NANET_RICH_POMH_TABLES
namespace nanet::rich {
namespace {

// At each displacement where the row of the hit's bin starts in kScoreRows.
constexpr std::array<std::uint16_t, kDisplacements> make_row_starts() {
  std::array<std::uint16_t, kDisplacements> starts{};
  for (std::size_t k = 0; k < kDisplacements; ++k) starts[k] = static_cast<std::uint16_t>(kRadiusBins * displacement_bin(k));
  return starts;
}

// What a hit in each bin adds to the 64 scores; the last row, of no bin, adds nothing.
constexpr std::array<std::uint8_t, (kRadiusBins + 1) * kRadiusBins> make_score_rows() {
  std::array<std::uint8_t, (kRadiusBins + 1) * kRadiusBins> rows{};
  for (std::size_t bin = 0; bin < kRadiusBins; ++bin) {
    for (std::size_t k = 0; k < kRadiusBins; ++k) {
      const std::size_t distance = k < bin ? bin - k : k - bin;
      rows[kRadiusBins * bin + k] = distance <= 2 ? 2 : (distance <= 4 ? 1 : 0);
    }
  }
  return rows;
}

alignas(64) constexpr std::array<std::uint16_t, kDisplacements> kRowStarts = make_row_starts();
alignas(64) constexpr std::array<std::uint8_t, (kRadiusBins + 1) * kRadiusBins> kScoreRows = make_score_rows();

}  // namespace
}  // namespace nanet::rich
#endif

HWY_BEFORE_NAMESPACE();
namespace nanet::rich {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void find_pomh_batch(const event::Event* events, std::size_t count, EventRings* rings, const PomhCuts& cuts) {
  for (std::size_t e = 0; e < count; ++e) rings[e] = find_pomh(events[e], kPmPoints.data(), cuts);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// The scores of one centre, a vector of bins at a time; takes what is larger than the best.
HWY_INLINE void score_center(const std::uint16_t* starts, const std::uint16_t* displacements, std::uint32_t count, std::int32_t i,
                             std::int32_t j, CenterPeak& peak) {
  const hn::CappedTag<std::uint8_t, kRadiusBins> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t from = 0; from < kRadiusBins; from += lanes) {
    auto even = hn::Zero(d);
    auto odd = even;
    std::uint32_t k = 0;
    for (; k + 2 <= count; k += 2) {
      even = hn::Add(even, hn::Load(d, &kScoreRows[starts[displacements[k]] + from]));
      odd = hn::Add(odd, hn::Load(d, &kScoreRows[starts[displacements[k + 1]] + from]));
    }
    if (k < count) even = hn::Add(even, hn::Load(d, &kScoreRows[starts[displacements[k]] + from]));
    const auto scores = hn::Add(even, odd);
    if (hn::AllFalse(d, hn::Gt(scores, hn::Set(d, static_cast<std::uint8_t>(peak.score))))) continue;
    alignas(64) std::uint8_t stored[kRadiusBins];
    hn::Store(scores, d, stored);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      if (stored[lane] > peak.score) peak = {stored[lane], i, j, static_cast<std::uint32_t>(from + lane)};
    }
  }
}

HWY_INLINE CenterPeak scan_rows(const LatticeHits& hits, const CenterRows& rows, float range_mm) {
  if (2 * hits.count > 255) return scan_centers(hits, range_mm);  // a score might not fit a byte
  std::uint16_t firsts[kMaxHits];
  std::uint16_t displacements[kMaxHits];
  for (std::uint32_t k = 0; k < hits.count; ++k) firsts[k] = first_displacement(hits.i[k]);
  CenterPeak peak;
  for (std::int32_t j = -kMaxCenterJ; j <= kMaxCenterJ; ++j) {
    const std::int32_t blocks = rows.blocks[j + kMaxCenterJ];
    if (blocks == 0) continue;
    take_displacements(hits, j, firsts, displacements);
    const std::int32_t centers = kCentersPerBlock * blocks;
    const std::uint16_t* starts = kRowStarts.data() + block_displacement(0, blocks);
    for (std::int32_t c = 0; c < centers; ++c) score_center(starts + c, displacements, hits.count, 2 * c + 1 - centers, j, peak);
  }
  return peak;
}

void find_pomh_batch(const event::Event* events, std::size_t count, EventRings* rings, const PomhCuts& cuts) {
  const CenterRows rows = center_rows(cuts.center_range_mm);
  HitPlane plane;
  LatticeHits lattice;
  for (std::size_t e = 0; e < count; ++e) {
    lay_out_hits(events[e], kPmPoints.data(), plane);
    rings[e] = no_rings(plane);
    if (plane.count < 4) continue;
    take_lattice(plane, kPmPoints.data(), lattice);
    const CenterPeak peak = scan_rows(lattice, rows, cuts.center_range_mm);
    if (peak.score != 0) refit::take_ring(plane, cuts, circle_of(peak), rings[e]);
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace nanet::rich
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nanet::rich {

HWY_EXPORT(find_pomh_batch);

void find_pomh(std::span<const event::Event> events, std::span<EventRings> rings, const PomhCuts& cuts) {
  HWY_DYNAMIC_DISPATCH(find_pomh_batch)(events.data(), std::min(events.size(), rings.size()), rings.data(), cuts);
}

}  // namespace nanet::rich
#endif  // HWY_ONCE
