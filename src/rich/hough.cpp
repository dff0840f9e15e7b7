// SPDX-License-Identifier: Apache-2.0
// HOUGH on vectors: coarse, the 32 radii of a centre are 32 bytes and a hit adds a row of votes; fine, the 16 points in x and y are lanes.
#include "rich/hough.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rich/hough.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "rich/center_tables.hpp"
#include "rich/circle_refit-inl.hpp"

#ifndef NANET_RICH_HOUGH_TABLES
#define NANET_RICH_HOUGH_TABLES
namespace nanet::rich {
namespace {

// Votes for the 32 radii by z, and at each displacement where its row starts; the last row has no votes.
struct VoteTable {
  alignas(64) std::array<std::uint8_t, (kHoughFarZ + 1) * kHoughRadii> votes;
  alignas(64) std::array<std::uint16_t, kDisplacements> row_starts;

  VoteTable() : votes{}, row_starts{} {
    for (std::int32_t z = 0; z < kHoughFarZ; ++z) {
      for (std::int32_t r = 0; r < kHoughRadii; ++r)
        votes[static_cast<std::size_t>(z * kHoughRadii + r)] = static_cast<std::uint8_t>(
            hough_vote(9.0F * std::sqrt(static_cast<float>(z)), r));
    }
    for (std::size_t k = 0; k < kDisplacements; ++k)
      row_starts[k] = static_cast<std::uint16_t>(kHoughRadii * std::min(displacement_z(k), kHoughFarZ));
  }
};
static_assert(kHoughFarZ * kHoughRadii < 65536);

const VoteTable kVoteTable;

}  // namespace
}  // namespace nanet::rich
#endif

HWY_BEFORE_NAMESPACE();
namespace nanet::rich {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void find_hough_batch(const event::Event* events, std::size_t count, EventRings* rings, const HoughCuts& cuts) {
  for (std::size_t e = 0; e < count; ++e) rings[e] = find_hough(events[e], kPmPoints.data(), cuts);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using VoteTag = hn::CappedTag<std::uint8_t, kHoughRadii>;

// vote_row of hough.hpp.
HWY_INLINE void vote_row_fast(const LatticeHits& hits, const std::uint16_t* firsts, std::int32_t columns, std::int32_t j,
                              HoughRow& row) {
  const VoteTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::uint16_t displacements[kMaxHits];
  take_displacements(hits, j, firsts, displacements);
  const std::uint16_t* starts = kVoteTable.row_starts.data() + block_displacement(0, columns / kCentersPerBlock);
  const std::uint8_t* votes = kVoteTable.votes.data();
  for (std::int32_t c = 0; c < columns; ++c) {
    for (std::size_t from = 0; from < kHoughRadii; from += lanes) {
      auto even = hn::Zero(d);
      auto odd = even;
      std::uint32_t k = 0;
      for (; k + 2 <= hits.count; k += 2) {
        even = hn::SaturatedAdd(even, hn::Load(d, votes + starts[displacements[k] + c] + from));
        odd = hn::SaturatedAdd(odd, hn::Load(d, votes + starts[displacements[k + 1] + c] + from));
      }
      if (k < hits.count) even = hn::SaturatedAdd(even, hn::Load(d, votes + starts[displacements[k] + c] + from));
      hn::Store(hn::SaturatedAdd(even, odd), d, row.votes[c + 1] + from);
    }
  }
}

// Takes the largest smoothed cell of column c, if it is larger than the peak.
HWY_INLINE void smooth_cells(const HoughRow& below, const HoughRow& middle, const HoughRow& above, std::int32_t c, std::int32_t j,
                             HoughPeak& peak) {
  const hn::CappedTag<std::uint16_t, kHoughRadii> d;
  const hn::Rebind<std::uint8_t, decltype(d)> db;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t from = 0; from < kHoughRadii; from += lanes) {
    const auto votes = [&](const HoughRow& row, std::int32_t column)
                           HWY_ATTR { return hn::PromoteTo(d, hn::Load(db, row.votes[column] + from)); };
    const auto sides = hn::Add(hn::Add(votes(middle, c), votes(middle, c + 2)), hn::Add(votes(below, c + 1), votes(above, c + 1)));
    const auto value = hn::Add(hn::ShiftLeft<2>(votes(middle, c + 1)), sides);
    if (hn::AllFalse(d, hn::Gt(value, hn::Set(d, static_cast<std::uint16_t>(peak.value))))) continue;
    alignas(64) std::uint16_t stored[kHoughRadii];
    hn::Store(value, d, stored);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      if (stored[lane] > peak.value) peak = {stored[lane], c, j, static_cast<std::int32_t>(from + lane)};
    }
  }
}

HWY_INLINE HoughPeak scan_hough_fast(const LatticeHits& hits, HoughGrid grid) {
  std::uint16_t firsts[kMaxHits];
  for (std::uint32_t k = 0; k < hits.count; ++k) firsts[k] = first_displacement(hits.i[k]);
  HoughRow rows[3];
  for (HoughRow& row : rows) clear_row(row);
  HoughRow* below = &rows[0];
  HoughRow* middle = &rows[1];
  HoughRow* above = &rows[2];
  HoughPeak peak;
  vote_row_fast(hits, firsts, grid.columns, -grid.last_row, *middle);
  for (std::int32_t j = -grid.last_row; j <= grid.last_row; ++j) {
    if (j < grid.last_row) {
      vote_row_fast(hits, firsts, grid.columns, j + 1, *above);
    } else {
      clear_row(*above);
    }
    for (std::int32_t c = 0; c < grid.columns; ++c) smooth_cells(*below, *middle, *above, c, j, peak);
    HoughRow* const oldest = below;
    below = middle;
    middle = above;
    above = oldest;
  }
  return peak;
}

// step_fine of hough.hpp with the points of a plane in the lanes.
HWY_INLINE void step_fine_fast(const HitPlane& plane, float scale, float width_mm, Circle& circle) {
  const hn::CappedTag<float, kFinePoints * kFinePoints> d;
  constexpr std::int32_t kPlacePoints = kFinePoints * kFinePoints;
  const auto inverse_width2 = hn::Set(d, 1.0F / (width_mm * width_mm));
  const auto one = hn::Set(d, 1.0F);
  alignas(64) float x_mm[kPlacePoints];
  alignas(64) float y_mm[kPlacePoints];
  alignas(64) float sums[kFinePoints][kPlacePoints];
  float radius_mm[kFinePoints];
  for (std::int32_t lane = 0; lane < kPlacePoints; ++lane) {
    x_mm[lane] = circle.x_mm + fine_offset(lane & 3) * (18.0F * scale);
    y_mm[lane] = circle.y_mm + fine_offset(lane >> 2) * (15.588457F * scale);
  }
  for (std::int32_t r = 0; r < kFinePoints; ++r) radius_mm[r] = circle.radius_mm + fine_offset(r) * (kHoughRadiusStepMm * scale);
  for (std::size_t from = 0; from < kPlacePoints; from += hn::Lanes(d)) {
    const auto x = hn::Load(d, x_mm + from);
    const auto y = hn::Load(d, y_mm + from);
    auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    for (std::uint32_t k = 0; k < plane.count; ++k) {
      const auto dx = hn::Sub(hn::Set(d, plane.x_mm[k]), x);
      const auto dy = hn::Sub(hn::Set(d, plane.y_mm[k]), y);
      const auto distance = hn::Sqrt(hn::Add(hn::Mul(dx, dx), hn::Mul(dy, dy)));
      const auto vote = [&](std::int32_t r) HWY_ATTR {
        const auto miss = hn::Sub(distance, hn::Set(d, radius_mm[r]));
        const auto share = hn::Sub(one, hn::Mul(hn::Mul(miss, miss), inverse_width2));
        return hn::IfThenElseZero(hn::Gt(share, hn::Zero(d)), share);
      };
      sum0 = hn::Add(sum0, vote(0));
      sum1 = hn::Add(sum1, vote(1));
      sum2 = hn::Add(sum2, vote(2));
      sum3 = hn::Add(sum3, vote(3));
    }
    hn::Store(sum0, d, sums[0] + from);
    hn::Store(sum1, d, sums[1] + from);
    hn::Store(sum2, d, sums[2] + from);
    hn::Store(sum3, d, sums[3] + from);
  }
  float best = -1.0F;
  for (std::int32_t r = 0; r < kFinePoints; ++r) {
    for (std::int32_t lane = 0; lane < kPlacePoints; ++lane) {
      if (sums[r][lane] > best) {
        best = sums[r][lane];
        circle = {x_mm[lane], y_mm[lane], radius_mm[r]};
      }
    }
  }
}

void find_hough_batch(const event::Event* events, std::size_t count, EventRings* rings, const HoughCuts& cuts) {
  const HoughGrid grid = hough_grid(cuts.center_range_mm);
  HitPlane plane;
  LatticeHits lattice;
  for (std::size_t e = 0; e < count; ++e) {
    lay_out_hits(events[e], kPmPoints.data(), plane);
    rings[e] = no_rings(plane);
    if (plane.count < 4) continue;
    take_lattice(plane, kPmPoints.data(), lattice);
    const HoughPeak peak = scan_hough_fast(lattice, grid);
    if (peak.value == 0) continue;
    Circle circle = circle_of(peak, grid);
    step_fine_fast(plane, 1.0F, cuts.fine_width_mm, circle);
    step_fine_fast(plane, 0.5F, second_width_mm(cuts.fine_width_mm), circle);
    refit::take_ring(plane, cuts, circle, rings[e]);
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace nanet::rich
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nanet::rich {

HWY_EXPORT(find_hough_batch);

void find_hough(std::span<const event::Event> events, std::span<EventRings> rings, const HoughCuts& cuts) {
  HWY_DYNAMIC_DISPATCH(find_hough_batch)(events.data(), std::min(events.size(), rings.size()), rings.data(), cuts);
}

}  // namespace nanet::rich
#endif  // HWY_ONCE
