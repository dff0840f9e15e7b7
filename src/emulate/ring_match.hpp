// SPDX-License-Identifier: Apache-2.0
// Found rings against true rings: which belong together, and the least error of a radius that the ring's own hits allow.
//
// A found ring matches a true one when the centres are within 20 mm and the radii within 15 mm. Pairs are taken nearest first, each ring once.
//   efficiency  true rings with a match / true rings
//   clone       a found ring without a partner that matches a true ring (which has another partner)
//   fake        a found ring that matches no true ring
// Rings without light (radius 0) are ignored.
// Thread rules: pure functions.
#pragma once

#include <array>
#include <cstdint>

#include "emulate/monte_carlo.hpp"
#include "nanet/rich/ring.hpp"

namespace nanet::emulate {

inline constexpr float kMatchCenterMm = 20.0F;
inline constexpr float kMatchRadiusMm = 15.0F;
inline constexpr std::int8_t kUnmatched = -1;

struct RingMatch {
  std::array<std::int8_t, kMaxEventRings> found_of{kUnmatched, kUnmatched, kUnmatched,
                                                   kUnmatched};  // index of the found ring of each true ring
  std::uint8_t fakes = 0;
  std::uint8_t clones = 0;
};

RingMatch match_rings(const McTruth& truth, const rich::EventRings& found);

// Cramer-Rao bound of the radius for the hits that the ring's light fired, in units of the error of one hit: sqrt of the radius element of (J^T J)^-1,
// where J has a row (cos phi, sin phi, 1) a hit, phi its direction from the true centre. 0: fewer than three hits, or on a line.
double radius_bound(const McEvent& event, std::uint32_t ring_index);

// Signed distance of each of the ring's hits from the true circle, in mm; returns how many were written.
std::uint32_t hit_residuals(const McEvent& event, std::uint32_t ring_index, std::array<float, kMaxEventHits>& residuals_mm);

// What a finder that knows which hits belong to each ring could do: least squares on the distances from the circle, from the true ring on. A ring
// with fewer than min_hits hits is not found.
rich::EventRings oracle_rings(const McEvent& event, std::uint32_t min_hits = 4);

}  // namespace nanet::emulate
