// SPDX-License-Identifier: Apache-2.0
// L0 and L1: which hits are kept, and which of them begin a seed.
//
// Terms (R: as the tower's trigger is described in the literature)
//   L0                  a hit over threshold.
//   simple coincidence  two hits on different PMs of one place at most simple_ns apart.
//   floor coincidence   two hits at opposite ends of a floor at most floor_ns apart.
//   charge              one hit of more than charge_pe.
//   seed                a hit that has a large charge, or is the earlier one of a coincidence. It may be several of these at once, and is one seed
//                       then. Time and place are the hit's (ours).
#pragma once

#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/km3/detector.hpp"
#include "nanet/km3/hit.hpp"
#include "nanet/km3/match3b.hpp"

namespace nanet::km3 {

inline constexpr std::uint32_t kSimple = 1;
inline constexpr std::uint32_t kFloor = 2;
inline constexpr std::uint32_t kCharge = 4;

struct L1Cuts {
  float threshold_pe = 0.3F;  // L0: at least
  double simple_ns = 20.0;
  double floor_ns = 200.0;
  float charge_pe = 2.5F;  // more than
};

// What a coincidence has to know of a PM, and where it is.
struct PmFacts {
  double x = 0;
  double y = 0;
  double z = 0;
  std::uint32_t floor = 0;
  std::uint16_t place = 0;
  std::uint16_t end = 0;  // 0: none
};

inline PmFacts facts_of(const Pm& pm) {
  return {pm.position_m.x, pm.position_m.y, pm.position_m.z, pm.floor, pm.place, static_cast<std::uint16_t>(pm.end)};
}

struct Seed {
  Point point;
  std::uint32_t pm = 0;
  std::uint32_t kinds = 0;  // kSimple, kFloor, kCharge
};

// Kinds of the seed that hit `index` begins, 0: none. Hits are those of one floor in the order of their times; pms of the whole detector.
NANET_HD inline std::uint32_t seed_kinds(const Hit* hits, std::uint32_t count, std::uint32_t index, const PmFacts* pms,
                                         const L1Cuts& cuts) {
  const Hit& hit = hits[index];
  const double longest_ns = cuts.floor_ns > cuts.simple_ns ? cuts.floor_ns : cuts.simple_ns;
  std::uint32_t kinds = hit.charge_pe > cuts.charge_pe ? kCharge : 0u;
  for (std::uint32_t k = index + 1; k < count; ++k) {
    const double later_ns = hits[k].time_ns - hit.time_ns;
    if (later_ns > longest_ns) break;
    if (hits[k].pm == hit.pm) continue;
    const PmFacts& one = pms[hit.pm];
    const PmFacts& other = pms[hits[k].pm];
    if (later_ns <= cuts.simple_ns && one.place == other.place) kinds |= kSimple;
    if (later_ns <= cuts.floor_ns && one.end + other.end == 3) kinds |= kFloor;  // 1 and 2
  }
  return kinds;
}

}  // namespace nanet::km3
