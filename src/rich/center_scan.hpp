// SPDX-License-Identifier: Apache-2.0
// What the histogram finders (POMH, DOMH, histogram) share: a histogram of the hits' distances about each candidate centre, its best peak, and the step from it to a ring.
//
// Terms
//   candidate centre  a point of the PMs' lattice: i odd, any j, so 18 mm apart in x and 15.6 mm in y. A row (one j) has 8, 16 or 24 of them, as many as
//                     the range asks for, symmetric about 0: blocks of eight suit every vector unit.
//   bin               one of 64 of 2.5 mm, from 60 to 220 mm. With lattice integers the squared distance is 81 z mm^2, z = di^2 + 3 dj^2, so the bin is a
//                     function of an integer: it is exact, and a table of it is small.
//   score             of a bin: hits in the five bins about it plus hits in the nine bins about it: a sharp peak scores up to twice its hits, a wide one less.
//   peak              the bin with the largest score; of equals the one with the smallest j, then i, then bin.
//
// All of it is integer arithmetic up to the start of the fit. Host and device.
#pragma once

#include <cmath>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/rich/center_scan_cuts.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/circle_refit.hpp"
#include "rich/hit_plane.hpp"

namespace nanet::rich {

inline constexpr std::uint32_t kRadiusBins = 64;
inline constexpr float kRadiusBinMm = 2.5F;
inline constexpr float kRadiusBinsFromMm = 60.0F;
inline constexpr std::int32_t kFarZ = 598;       // from here on (220.08 mm) a hit is in no bin
inline constexpr std::int32_t kMaxCenterJ = 12;  // rows of candidate centres: -12..12
inline constexpr std::int32_t kCentersPerBlock = 8;
inline constexpr std::int32_t kMaxCenterBlocks = 3;  // i from -23 to 23

// Bin of a squared distance z (in lattice units); kRadiusBins: none.
NANET_HD inline std::uint32_t radius_bin(std::int32_t z) {
  if (z >= kFarZ) return kRadiusBins;
  const float above_mm = 9.0F * std::sqrt(static_cast<float>(z)) - kRadiusBinsFromMm;
  if (!(above_mm >= 0.0F)) return kRadiusBins;
  const auto bin = static_cast<std::uint32_t>(static_cast<std::int32_t>(above_mm * 0.4F));
  return bin < kRadiusBins ? bin : kRadiusBins;
}

// Blocks of eight candidate centres in row j, 0 to 3.
NANET_HD inline std::int32_t center_blocks(std::int32_t j, float range_mm) {
  const float y_mm = 15.588457F * static_cast<float>(j);
  const float left = range_mm * range_mm - y_mm * y_mm;
  if (!(left >= 0.0F)) return 0;
  const float blocks = std::sqrt(left) * (1.0F / 72.0F);
  return blocks < static_cast<float>(kMaxCenterBlocks - 1) ? static_cast<std::int32_t>(blocks) + 1 : kMaxCenterBlocks;
}

// Lattice coordinates of the hits of a plane.
struct LatticeHits {
  std::int8_t i[kMaxHits];
  std::int8_t j[kMaxHits];
  std::uint32_t count = 0;
};

struct CenterPeak {
  std::uint32_t score = 0;  // 0: no hit in any bin
  std::int32_t i = 0;
  std::int32_t j = 0;
  std::uint32_t bin = 0;
};

// Looks at the score of each bin of a histogram with four empty bins before the first and after the last.
NANET_HD inline void take_peak(const std::uint8_t* padded_counts, std::int32_t i, std::int32_t j, CenterPeak& peak) {
  std::uint32_t narrow = 0;  // hits in five bins about the last one
  std::uint32_t wide = 0;    // in nine
  const std::uint8_t* counts = padded_counts + 4;
  for (std::int32_t k = 0; k < 2; ++k) narrow += counts[k];
  for (std::int32_t k = 0; k < 4; ++k) wide += counts[k];
  for (std::int32_t bin = 0; bin < static_cast<std::int32_t>(kRadiusBins); ++bin) {
    narrow += counts[bin + 2];
    wide += counts[bin + 4];
    const std::uint32_t score = narrow + wide;
    if (score > peak.score) peak = {score, i, j, static_cast<std::uint32_t>(bin)};
    narrow -= counts[bin - 2];
    wide -= counts[bin - 4];
  }
}

// The peak over all candidate centres.
NANET_HD inline CenterPeak scan_centers(const LatticeHits& hits, float range_mm) {
  CenterPeak peak;
  for (std::int32_t j = -kMaxCenterJ; j <= kMaxCenterJ; ++j) {
    const std::int32_t centers = kCentersPerBlock * center_blocks(j, range_mm);
    for (std::int32_t c = 0; c < centers; ++c) {
      const std::int32_t i = 2 * c + 1 - centers;
      std::uint8_t counts[kRadiusBins + 9] = {};
      for (std::uint32_t k = 0; k < hits.count; ++k) {
        const std::int32_t di = hits.i[k] - i;
        const std::int32_t dj = hits.j[k] - j;
        const std::uint32_t bin = radius_bin(di * di + 3 * dj * dj);
        if (bin < kRadiusBins) ++counts[4 + bin];
      }
      take_peak(counts, i, j, peak);
    }
  }
  return peak;
}

// The parts of any finder's cuts that have these names.
template <class Cuts>
NANET_HD inline RefitCuts refit_cuts(const Cuts& cuts) {
  return {cuts.refit_start_mm, cuts.refit_end_mm, cuts.window_mm, cuts.refit_passes};
}
template <class Cuts>
NANET_HD inline RingLimits ring_limits(const Cuts& cuts) {
  return {cuts.min_hits, cuts.radius_min_mm, cuts.radius_max_mm, cuts.rms_max_mm};
}

// The circle that a peak stands for: the lattice point and the middle of the bin.
NANET_HD inline Circle circle_of(const CenterPeak& peak) {
  return {9.0F * static_cast<float>(peak.i), 15.588457F * static_cast<float>(peak.j),
          kRadiusBinsFromMm + kRadiusBinMm * (static_cast<float>(peak.bin) + 0.5F)};
}

NANET_HD inline void take_lattice(const HitPlane& plane, const PmPoint* points, LatticeHits& lattice) {
  for (std::uint32_t k = 0; k < plane.count; ++k) {
    lattice.i[k] = points[plane.row[k]].i;
    lattice.j[k] = points[plane.row[k]].j;
  }
  lattice.count = plane.count;
}

NANET_HD inline EventRings no_rings(const HitPlane& plane) {
  EventRings event;
  event.mapped_hits = static_cast<std::uint16_t>(plane.count);
  event.truncated = static_cast<std::uint16_t>(plane.truncated);
  return event;
}

// One event by the scalar functions: the ring at the peak.
NANET_HD inline EventRings find_by_center_scan(event::Event event, const PmPoint* points, const CenterScanCuts& cuts) {
  HitPlane plane;
  lay_out_hits(event, points, plane);
  EventRings found = no_rings(plane);
  if (plane.count < 4) return found;
  LatticeHits lattice;
  take_lattice(plane, points, lattice);
  const CenterPeak peak = scan_centers(lattice, cuts.center_range_mm);
  Circle circle = circle_of(peak);
  if (peak.score == 0 || !refit_circle(plane, points, refit_cuts(cuts), circle)) return found;
  const Ring ring = fit_near(plane, points, cuts.window_mm, circle);
  if (!is_within(ring, ring_limits(cuts))) return found;
  found.rings[0] = ring;
  found.count = 1;
  return found;
}

}  // namespace nanet::rich
