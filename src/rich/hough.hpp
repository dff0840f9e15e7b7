// SPDX-License-Identifier: Apache-2.0
// HOUGH, a single-ring finder: hits vote in an accumulator of centre and radius (x, y, R), first coarse, then fine about the maximum.
//
// Only the name is public; this is our reading. What differs from POMH: a hit votes in all cells near its distance, with a weight that falls with the exact
// distance between hit and circle (not in the one bin that holds it); cells are then smoothed with their neighbours in x and y; and the maximum is
// looked at again twice, each time in cells of half the size, before the fit.
//
//   coarse  x 18 mm, y 15.6 mm (points of the PMs' lattice, i odd), R 32 cells of 5 mm from 62.5 mm. A vote is 0 to 12; a cell stops at 255, as
//           21 hits exactly on its circle make. A cell's value is four times its votes plus those of the four neighbours in x and y.
//   fine    4 x 4 x 4 points at -3/4, -1/4, 1/4 and 3/4 of the step about the maximum; a vote is 1 - (miss / width)^2, in float, added up in order of hits.
//
// Of equal cells the first wins (smallest j, then i, then R). Thread rules: pure functions, no allocation, no exception.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "nanet/host_device.hpp"
#include "nanet/rich/hough_cuts.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/center_scan.hpp"
#include "rich/circle_refit.hpp"
#include "rich/hit_plane.hpp"

namespace nanet::rich {

NANET_HD inline EventRings find_hough(event::Event event, const PmPoint* points, const HoughCuts& cuts);

// rings[k] becomes what is found in events[k], the same bits. `rings` must be at least as long as `events`.
void find_hough(std::span<const event::Event> events, std::span<EventRings> rings, const HoughCuts& cuts);

// ---------------------------------------------------------------------------------------------------------------------------------

inline constexpr std::int32_t kHoughRadii = 32;
inline constexpr float kHoughRadiusStepMm = 5.0F;
inline constexpr float kHoughRadiusFromMm = 62.5F;
inline constexpr std::int32_t kMaxHoughColumns = kCentersPerBlock * kMaxCenterBlocks;
inline constexpr std::int32_t kHoughFarZ = 668;  // 9 sqrt(668) = 232.6 mm: votes in no cell
inline constexpr float kHoughVoteWidthMm = 15.0F;
inline constexpr float kHoughVote = 12.0F;

// Vote of a hit for a radius.
NANET_HD inline std::uint32_t hough_vote(float distance_mm, std::int32_t radius_index) {
  const float radius_mm = kHoughRadiusFromMm + kHoughRadiusStepMm * static_cast<float>(radius_index);
  const float miss_mm = std::abs(distance_mm - radius_mm);
  const float vote = (kHoughVoteWidthMm - miss_mm) * (kHoughVote / kHoughVoteWidthMm) + 0.5F;
  return vote > 0.0F ? static_cast<std::uint32_t>(static_cast<std::int32_t>(vote)) : 0u;
}

// Columns and rows of the coarse accumulator: i = 2 c + 1 - columns, j = -last_row .. last_row.
struct HoughGrid {
  std::int32_t columns;
  std::int32_t last_row;
};
NANET_HD inline HoughGrid hough_grid(float range_mm) {
  const float rows = range_mm * (1.0F / 15.588457F);
  const std::int32_t last_row = rows >= 0.0F
                                    ? (rows < static_cast<float>(kMaxCenterJ) ? static_cast<std::int32_t>(rows) : kMaxCenterJ)
                                    : 0;
  return {kCentersPerBlock * center_blocks(0, range_mm), last_row};
}

// Votes of one row of centres, with an empty column before the first and after the last.
struct HoughRow {
  alignas(64) std::uint8_t votes[kMaxHoughColumns + 2][kHoughRadii];
};

NANET_HD inline void clear_row(HoughRow& row) {
  for (auto& column : row.votes) {
    for (std::uint8_t& cell : column) cell = 0;
  }
}

NANET_HD inline void vote_row(const LatticeHits& hits, std::int32_t columns, std::int32_t j, HoughRow& row) {
  clear_row(row);
  for (std::int32_t c = 0; c < columns; ++c) {
    std::uint8_t* votes = row.votes[c + 1];
    for (std::uint32_t k = 0; k < hits.count; ++k) {
      const std::int32_t di = hits.i[k] - (2 * c + 1 - columns);
      const std::int32_t dj = hits.j[k] - j;
      const std::int32_t z = di * di + 3 * dj * dj;
      if (z >= kHoughFarZ) continue;
      // Cells farther away get 0 anyway.
      const float distance_mm = 9.0F * std::sqrt(static_cast<float>(z));
      const float at = (distance_mm - kHoughRadiusFromMm) * (1.0F / kHoughRadiusStepMm);
      const auto middle = static_cast<std::int32_t>(at);
      for (std::int32_t r = middle - 2; r <= middle + 3; ++r) {
        if (r < 0 || r >= kHoughRadii) continue;
        const std::uint32_t sum = votes[r] + hough_vote(distance_mm, r);
        votes[r] = static_cast<std::uint8_t>(sum < 255u ? sum : 255u);
      }
    }
  }
}

struct HoughPeak {
  std::uint32_t value = 0;
  std::int32_t column = 0;
  std::int32_t j = 0;
  std::int32_t radius_index = 0;
};

// The maximum of the smoothed coarse accumulator. Three rows are kept at a time.
NANET_HD inline HoughPeak scan_hough(const LatticeHits& hits, HoughGrid grid) {
  HoughRow rows[3];
  HoughRow* below = &rows[0];
  HoughRow* middle = &rows[1];
  HoughRow* above = &rows[2];
  HoughPeak peak;
  clear_row(*below);
  vote_row(hits, grid.columns, -grid.last_row, *middle);
  for (std::int32_t j = -grid.last_row; j <= grid.last_row; ++j) {
    if (j < grid.last_row) {
      vote_row(hits, grid.columns, j + 1, *above);
    } else {
      clear_row(*above);
    }
    for (std::int32_t c = 1; c <= grid.columns; ++c) {
      for (std::int32_t r = 0; r < kHoughRadii; ++r) {
        const std::uint32_t value = 4u * middle->votes[c][r] + middle->votes[c - 1][r] + middle->votes[c + 1][r] +
                                    below->votes[c][r] + above->votes[c][r];
        if (value > peak.value) peak = {value, c - 1, j, r};
      }
    }
    HoughRow* const oldest = below;
    below = middle;
    middle = above;
    above = oldest;
  }
  return peak;
}

NANET_HD inline Circle circle_of(const HoughPeak& peak, HoughGrid grid) {
  return {9.0F * static_cast<float>(2 * peak.column + 1 - grid.columns), 15.588457F * static_cast<float>(peak.j),
          kHoughRadiusFromMm + kHoughRadiusStepMm * static_cast<float>(peak.radius_index)};
}

inline constexpr std::int32_t kFinePoints = 4;

// Place of point 0..3 of a fine step.
NANET_HD inline float fine_offset(std::int32_t point) { return 0.5F * static_cast<float>(point) - 0.75F; }

// Moves the circle to the best of the 4 x 4 x 4 about it.
NANET_HD inline void step_fine(const HitPlane& plane, float scale, float width_mm, Circle& circle) {
  const float inverse_width2 = 1.0F / (width_mm * width_mm);
  float best = -1.0F;
  Circle best_circle = circle;
  for (std::int32_t r = 0; r < kFinePoints; ++r) {
    const float radius_mm = circle.radius_mm + fine_offset(r) * (kHoughRadiusStepMm * scale);
    for (std::int32_t lane = 0; lane < kFinePoints * kFinePoints; ++lane) {
      const float x_mm = circle.x_mm + fine_offset(lane & 3) * (18.0F * scale);
      const float y_mm = circle.y_mm + fine_offset(lane >> 2) * (15.588457F * scale);
      float sum = 0.0F;
      for (std::uint32_t k = 0; k < plane.count; ++k) {
        const float dx_mm = plane.x_mm[k] - x_mm;
        const float dy_mm = plane.y_mm[k] - y_mm;
        const float miss_mm = std::sqrt(dx_mm * dx_mm + dy_mm * dy_mm) - radius_mm;
        const float vote = 1.0F - miss_mm * miss_mm * inverse_width2;
        sum += vote > 0.0F ? vote : 0.0F;
      }
      if (sum > best) {
        best = sum;
        best_circle = {x_mm, y_mm, radius_mm};
      }
    }
  }
  circle = best_circle;
}

NANET_HD inline float second_width_mm(float width_mm) {
  const float half_mm = 0.5F * width_mm;
  return half_mm > 10.0F ? half_mm : 10.0F;
}

NANET_HD inline EventRings find_hough(event::Event event, const PmPoint* points, const HoughCuts& cuts) {
  HitPlane plane;
  lay_out_hits(event, points, plane);
  EventRings found = no_rings(plane);
  if (plane.count < 4) return found;
  LatticeHits lattice;
  take_lattice(plane, points, lattice);
  const HoughGrid grid = hough_grid(cuts.center_range_mm);
  const HoughPeak peak = scan_hough(lattice, grid);
  if (peak.value == 0) return found;
  Circle circle = circle_of(peak, grid);
  step_fine(plane, 1.0F, cuts.fine_width_mm, circle);
  step_fine(plane, 0.5F, second_width_mm(cuts.fine_width_mm), circle);
  if (!refit_circle(plane, points, refit_cuts(cuts), circle)) return found;
  const Ring ring = fit_near(plane, points, cuts.window_mm, circle);
  if (!is_within(ring, ring_limits(cuts))) return found;
  found.rings[0] = ring;
  found.count = 1;
  return found;
}

}  // namespace nanet::rich
