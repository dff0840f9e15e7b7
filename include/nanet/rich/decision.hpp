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

// The fitted ring passes every cut.
NANET_HD inline bool is_good_ring(const Ring& ring, const RingCuts& cuts) {
  if (!has_ring(ring.status) || ring.hits < cuts.min_hits || ring.hits < 4) return false;
  if (!(ring.radius_mm >= cuts.radius_min_mm && ring.radius_mm <= cuts.radius_max_mm)) return false;
  const float hits = ring.hits;
  return ring.rms_mm * ring.rms_mm * hits <= cuts.rms_max_mm * cuts.rms_max_mm * (hits - 3.0F);
}

NANET_HD inline bool is_electron_like(const Ring& ring, const RingCuts& cuts) {
  const float difference_mm = ring.radius_mm - cuts.electron_radius_mm;
  return is_good_ring(ring, cuts) && difference_mm <= cuts.electron_window_mm && -difference_mm <= cuts.electron_window_mm;
}

inline constexpr std::uint16_t kPrimitiveRingFound = 1u << 8;
inline constexpr std::uint16_t kPrimitiveElectron = 1u << 9;

NANET_HD inline std::uint16_t primitive_id(const Ring& ring, const RingCuts& cuts) {
  std::uint32_t id = 1u << 14;
  id |= ring.hits < 63u ? ring.hits : 63u;
  if (is_good_ring(ring, cuts)) {
    const auto radius_class = static_cast<std::uint32_t>(ring.radius_mm * (1.0F / 16.0F));
    id |= 1u << 6;
    id |= 1u << 8;
    id |= (is_electron_like(ring, cuts) ? 1u : 0u) << 9;
    id |= (radius_class < 15u ? radius_class : 15u) << 10;
  }
  return static_cast<std::uint16_t>(id);
}

}  // namespace nanet::rich
