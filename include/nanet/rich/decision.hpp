// SPDX-License-Identifier: Apache-2.0
// From a fitted ring to the 16 bits of a primitive: is it good, is it electron-like, which class of radius.
//
// Primitive ID (docs/formats.md): bits 5..0 mapped hits, saturating at 63 · 7..6 number of rings · 8 ring found · 9 electron-like · 13..10 class of
// radius = floor(radius_mm / 16), saturating at 15, 0 without ring · 14 always 1 · 15 calibration, 0 here.
#pragma once

#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/rich/math_fit.hpp"
#include "nanet/rich/optics.hpp"

namespace nanet::rich {

// What a ring must be to be answered as one. The defaults come from the study in docs/design/rings.md.
struct RingCuts {
  // Hits with a PM. Too small: three random hits make a ring, since any three do; too big: rings with little light are lost.
  std::uint32_t min_hits = 4;
  // mm. Too small: noise near one place makes rings; too big: slow pions and muons are lost.
  float radius_min_mm = 70.0F;
  // mm. Too small: electron rings with few hits are lost; too big: hits nearly on a line make rings.
  float radius_max_mm = 210.0F;
  // mm, of one hit about the circle, corrected for the three fitted parameters: rms sqrt(hits / (hits - 3)). A PM alone gives 4.8 mm, with the
  // optics 5.4 mm. Too small: good rings are lost; too big: rings spoiled by noise pass with a wrong radius.
  float rms_max_mm = 10.0F;
  // mm. Radius of the ring of a particle at the speed of light. It moves with the gas density: 1e-6 in n - 1 is 1.5 mm.
  float electron_radius_mm = static_cast<float>(kElectronRadiusMm);
  // mm, half width. Too small: electrons are lost (the radius of a 12-hit ring has 1.5 to 1.8 mm); too big: fast muons (182.5 mm at 35 GeV/c) pass.
  float electron_window_mm = 6.0F;
};

// Conditions are combined without branches here: what an event holds is random, so a processor guesses each branch wrongly and
// pays more for it than for the arithmetic.

// The fitted ring passes every cut.
NANET_HD inline bool is_good_ring(const Ring& ring, const RingCuts& cuts) {
  const float hits = ring.hits;
  const bool enough = has_ring(ring.status) & (ring.hits >= cuts.min_hits) & (ring.hits >= 4);
  const bool sized = (ring.radius_mm >= cuts.radius_min_mm) & (ring.radius_mm <= cuts.radius_max_mm);
  const bool round = ring.rms_mm * ring.rms_mm * hits <= cuts.rms_max_mm * cuts.rms_max_mm * (hits - 3.0F);
  return enough & sized & round;
}

NANET_HD inline bool is_electron_like(const Ring& ring, const RingCuts& cuts) {
  const float difference_mm = ring.radius_mm - cuts.electron_radius_mm;
  return is_good_ring(ring, cuts) & (difference_mm <= cuts.electron_window_mm) & (-difference_mm <= cuts.electron_window_mm);
}

inline constexpr std::uint16_t kPrimitiveRingFound = 1u << 8;
inline constexpr std::uint16_t kPrimitiveElectron = 1u << 9;

NANET_HD inline std::uint16_t primitive_id(const Ring& ring, const RingCuts& cuts) {
  const std::uint32_t good = is_good_ring(ring, cuts) ? 1u : 0u;
  const std::uint32_t electron = is_electron_like(ring, cuts) ? 1u : 0u;
  const float radius_mm = ring.radius_mm < 255.0F ? ring.radius_mm : 255.0F;
  const auto radius_class = static_cast<std::uint32_t>(static_cast<std::int32_t>(radius_mm * (1.0F / 16.0F)));
  const std::uint32_t hits = ring.hits < 63u ? ring.hits : 63u;
  return static_cast<std::uint16_t>(1u << 14 | hits | good << 6 | good << 8 | electron << 9 | (good * radius_class) << 10);
}

}  // namespace nanet::rich
