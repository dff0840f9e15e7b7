// SPDX-License-Identifier: Apache-2.0
// The tables of the ring finders, as kernels see them. gpu/tables.hpp owns them in device memory.
#pragma once

#include <cstdint>

#include "rich/center_scan.hpp"
#include "rich/hit_plane.hpp"
#include "rich/mixture_model.hpp"

namespace nanet::gpu {

// A PM in one word: bits 7..0 i, 15..8 j (two's complement), 26..16 z = i^2 + 3 j^2, 31 set. 0: no PM at this channel.
using PackedPoint = std::uint32_t;

// Where a distance histogram counts a hit at squared distance z: 128 times the word that holds the bin of four (rich::radius_bin), plus the bin's first
// bit in it. Distances in no bin have a word of their own, number kRadiusBins / 4.
inline constexpr std::uint32_t kCellRows = (rich::kFarZ + 8u) & ~7u;
constexpr std::uint16_t cell_of(std::uint32_t bin) { return static_cast<std::uint16_t>(bin / 4 * 128 + bin % 4 * 8); }

struct DeviceTables {
  const rich::PmPoint* points;                  // a copy of rich::kPmPoints
  const PackedPoint* packed;                    // the same rows; a kernel may put a copy in shared memory in its place
  const std::uint16_t* cells;                   // kCellRows; those from kFarZ on are in no bin
  const rich::MixtureSetup* mixture = nullptr;  // what follows from the cuts; a kernel makes it, for the finder that needs it
};

}  // namespace nanet::gpu
