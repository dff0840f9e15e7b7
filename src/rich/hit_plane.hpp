// SPDX-License-Identifier: Apache-2.0
// HitPlane: the hits of one event as columns of coordinates, in an order that does not depend on how they came. Most finders start here.
//
// Both disks are laid over one another (they have the same pattern, and a ring whose light is shared by both mirrors is one circle). Hits on
// channels without a PM are left out; of an event with more than kMaxHits hits the first kMaxHits are looked at.
// Order: by channel in the disk, then time, then disk: the same hits in another order give the same plane, so a finder that starts from a
// plane gives the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/rich/ring.hpp"

namespace nanet::rich {

inline constexpr std::size_t kPmPointRows = 1024;

// Where the PM of a channel (disk bit dropped) sits.
struct PmPoint {
  float x_mm = 0;  // 9 i, exact
  float y_mm = 0;  // 9 sqrt(3) j, rounded once
  std::int8_t i = 0;
  std::int8_t j = 0;
  std::uint16_t mapped = 0;  // 0: no PM at this channel
};
static_assert(sizeof(PmPoint) == 12);

// Host table; a GPU back-end copies it.
extern const std::array<PmPoint, kPmPointRows> kPmPoints;

struct HitPlane {
  // Columns are readable, and hold finite values, up to the next multiple of 16 after `count`; what lies there is a hit far outside
  // (kFarMm), which lies on no ring.
  alignas(64) float x_mm[kMaxHits];
  alignas(64) float y_mm[kMaxHits];
  alignas(64) std::int8_t time_code[kMaxHits];  // -16..15, in units of kHitTimeUnitNs
  alignas(64) std::uint16_t row[kMaxHits];      // of kPmPoints and of kRingSumTable
  std::uint32_t count = 0;
  std::uint32_t truncated = 0;  // 1: the event had more than kMaxHits hits
};
inline constexpr float kFarMm = 1.0e5F;

// Sort key of a hit word: channel in the disk, time, disk.
NANET_HD constexpr std::uint16_t hit_order(std::uint16_t hit) { return static_cast<std::uint16_t>((hit & 1023u) << 6 | hit >> 10); }

// Fills `plane`. `points`: kPmPoints, or its copy in the GPU's memory.
NANET_HD inline void lay_out_hits(event::Event event, const PmPoint* points, HitPlane& plane) {
  const std::uint32_t looked_at = event.count < kMaxHits ? event.count : kMaxHits;
  std::uint16_t keys[kMaxHits];
  std::uint32_t count = 0;
  for (std::uint32_t k = 0; k < looked_at; ++k) {
    const std::uint16_t hit = event.hits[k];
    if (points[hit & 1023u].mapped == 0) continue;
    const std::uint16_t key = hit_order(hit);
    std::uint32_t at = count++;  // boards send in order of channel: an insertion sort has next to nothing to do
    for (; at > 0 && keys[at - 1] > key; --at) keys[at] = keys[at - 1];
    keys[at] = key;
  }
  for (std::uint32_t k = 0; k < count; ++k) {
    const std::uint16_t row = keys[k] >> 6;
    plane.row[k] = row;
    plane.x_mm[k] = points[row].x_mm;
    plane.y_mm[k] = points[row].y_mm;
    const int code = (keys[k] >> 1) & 31;
    plane.time_code[k] = static_cast<std::int8_t>((code ^ 16) - 16);
  }
  for (std::uint32_t k = count; k < ((count + 15u) & ~15u); ++k) {
    plane.row[k] = 1023;  // a row without a PM: adds nothing to any sum
    plane.x_mm[k] = kFarMm;
    plane.y_mm[k] = kFarMm;
    plane.time_code[k] = 0;
  }
  plane.count = count;
  plane.truncated = event.count > kMaxHits ? 1u : 0u;
}

// Puts the rings into the order that EventRings promises.
NANET_HD NANET_DEVICE_CALL inline void sort_rings(EventRings& event) {
  for (std::uint32_t k = 1; k < event.count; ++k) {
    const Ring ring = event.rings[k];
    std::uint32_t at = k;
    for (; at > 0; --at) {
      const Ring& before = event.rings[at - 1];
      if (before.hits > ring.hits || (before.hits == ring.hits && before.rms_mm <= ring.rms_mm)) break;
      event.rings[at] = before;
    }
    event.rings[at] = ring;
  }
}

}  // namespace nanet::rich
