// SPDX-License-Identifier: Apache-2.0
// What comes out of a ring finder: the rings of an event.
#pragma once

#include <cstdint>
#include <type_traits>

#include "nanet/event/event.hpp"
#include "nanet/host_device.hpp"

namespace nanet::rich {

inline constexpr std::uint32_t kMaxHits = 128;  // of an event; a finder uses the first kMaxHits and says so
inline constexpr std::uint32_t kMaxRings = 4;   // of an event

// Of a hit's five time bits: 2/256 of the 24.951059536 ns clock.
inline constexpr float kHitTimeUnitNs = 0.19492765F;

// Bit 0: a ring was found; bit 1: the event had more than kMaxHits hits and only the first kMaxHits were used.
enum class RingStatus : std::uint16_t { no_ring = 0, ring = 1, no_ring_truncated = 2, ring_truncated = 3 };

NANET_HD constexpr bool has_ring(RingStatus status) { return (static_cast<unsigned>(status) & 1u) != 0; }
NANET_HD constexpr bool is_truncated(RingStatus status) { return (static_cast<unsigned>(status) & 2u) != 0; }

// Without a ring (fewer than three different PMs, or all on one line) the figures are 0. They are always finite.
struct Ring {
  float x_mm = 0;  // centre, in the disk's own coordinates
  float y_mm = 0;
  float radius_mm = 0;     // from a plain fit up to 1e17 where the hits are nearly on a line
  float rms_mm = 0;        // of the distances of the ring's hits from the circle; 0 with three hits
  float time_ns = 0;       // mean time of the ring's hits relative to the event; 0 from finders that do not look at time
  std::uint16_t hits = 0;  // of the ring, with a PM; a channel that appears twice counts twice
  RingStatus status = RingStatus::no_ring;
};
static_assert(sizeof(Ring) == 24 && std::is_trivially_copyable_v<Ring>);

// Sum over the ring's hits of (distance / sigma)^2, with hits - 3 degrees of freedom. A PM alone gives 4.7 mm.
NANET_HD constexpr float chi2(const Ring& ring, float sigma_mm = 4.7F) {
  const float pull = ring.rms_mm / sigma_mm;
  return static_cast<float>(ring.hits) * pull * pull;
}

// Rings in order of hits, most first; of equals the one with the smaller rms_mm. All of them have status ring.
struct EventRings {
  std::uint16_t count = 0;
  std::uint16_t mapped_hits = 0;  // of the event (at most kMaxHits are looked at), with a PM
  std::uint16_t truncated = 0;    // 1: more than kMaxHits hits
  std::uint16_t more_rings = 0;   // 1: kMaxRings were found, and the hits far from them make another one; only find_rings says so
  Ring rings[kMaxRings];
};
static_assert(sizeof(EventRings) == 104 && std::is_trivially_copyable_v<EventRings>);

}  // namespace nanet::rich
