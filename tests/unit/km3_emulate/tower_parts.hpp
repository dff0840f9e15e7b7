// SPDX-License-Identifier: Apache-2.0
// What tests of the emulated tower share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "km3_emulate/units.hpp"
#include "nanet/km3/detector.hpp"
#include "nanet/km3/hit.hpp"

namespace nanet::km3_emulate {

inline km3::Detector standard_tower() { return km3::make_towers({}); }

struct RawHit {
  std::uint32_t pm;
  std::int32_t time_ns;
  std::uint32_t charge;
  std::vector<std::byte> samples;
};

// The records of a unit, read without the code that wrote them.
inline std::vector<RawHit> read_hits(std::span<const std::byte> unit, bool sampled) {
  std::vector<RawHit> hits;
  for (std::size_t at = 0; at + 6 <= unit.size();) {
    RawHit hit{
        std::to_integer<std::uint32_t>(unit[at]), km3::load_be32(&unit[at + 1]), std::to_integer<std::uint32_t>(unit[at + 5]), {}};
    at += 6;
    if (sampled) {
      const auto count = std::to_integer<std::size_t>(unit[at]);
      hit.samples.assign(unit.begin() + static_cast<std::ptrdiff_t>(at + 2),
                         unit.begin() + static_cast<std::ptrdiff_t>(at + 2 + count));
      at += 2 + count;
    }
    hits.push_back(std::move(hit));
  }
  return hits;
}

inline std::vector<std::byte> unit_of(UnitMaker& maker, std::uint64_t slice, std::uint32_t floor, Kind kind,
                                      const FloorSettings& settings = kFloorSettings) {
  std::vector<std::byte> bytes;
  maker.unit(slice, floor, kind, settings, bytes);
  return bytes;
}

}  // namespace nanet::km3_emulate
