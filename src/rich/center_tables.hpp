// SPDX-License-Identifier: Apache-2.0
// Tables of the fast scans over candidate centres: what lies at each displacement of a hit from a centre.
//
// A displacement is |dj| (kFarDj: too far for any bin) and di; di = 2 m + parity - 64 gives parity and m, so that the eight centres of a block (i two apart)
// are eight neighbours in a table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rich/center_scan.hpp"

namespace nanet::rich {

inline constexpr std::uint32_t kFarDj = 15;  // 15 rows are 234 mm
inline constexpr std::uint32_t kDjRows = kFarDj + 1;
inline constexpr std::uint32_t kRowEntries = 128;  // 64 for each parity of di
inline constexpr std::uint32_t kDisplacements = kDjRows * kRowEntries;

// z of a displacement; one too large for any table for kFarDj.
constexpr std::int32_t displacement_z(std::size_t index) {
  const auto dj = static_cast<std::int32_t>(index / kRowEntries);
  const auto parity = static_cast<std::int32_t>(index / 64 % 2);
  const std::int32_t di = 2 * static_cast<std::int32_t>(index % 64) + parity - 64;
  return dj == static_cast<std::int32_t>(kFarDj) ? 1 << 20 : di * di + 3 * dj * dj;
}

// Bin of each z, from integers alone: bin b holds 9 sqrt(z) from 60 + 2.5 b mm on, that is 4 * 81 z >= (120 + 5 b)^2. radius_bin gives the same.
constexpr std::array<std::uint8_t, kFarZ> make_bins() {
  std::array<std::uint8_t, kFarZ> bins{};
  std::int32_t bin = -1;
  for (std::int32_t z = 0; z < kFarZ; ++z) {
    while (324 * z >= (125 + 5 * bin) * (125 + 5 * bin)) ++bin;
    bins[static_cast<std::size_t>(z)] = static_cast<std::uint8_t>(
        bin < 0 || bin >= static_cast<std::int32_t>(kRadiusBins) ? kRadiusBins : static_cast<std::uint32_t>(bin));
  }
  return bins;
}
inline constexpr std::array<std::uint8_t, kFarZ> kBinOfZ = make_bins();

constexpr std::uint32_t displacement_bin(std::size_t index) {
  const std::int32_t z = displacement_z(index);
  return z < kFarZ ? kBinOfZ[static_cast<std::size_t>(z)] : kRadiusBins;
}

// Where a hit finds the first centre of a row that has one block, without the part of |dj|.
constexpr std::uint16_t first_displacement(std::int32_t hit_i) {
  const std::int32_t di = -(kCentersPerBlock - 1) - hit_i;
  const std::int32_t parity = di & 1;
  return static_cast<std::uint16_t>(64 * parity + (di + 64 - parity) / 2);
}

// What |dj| adds.
constexpr std::uint16_t dj_displacement(std::int32_t dj) {
  const std::int32_t distance = dj < 0 ? -dj : dj;
  return static_cast<std::uint16_t>(kRowEntries *
                                    (distance < static_cast<std::int32_t>(kFarDj) ? static_cast<std::uint32_t>(distance) : kFarDj));
}

// What the block adds, block 0 .. blocks - 1 of a row: the first centre is i = 16 block - (8 blocks - 1).
constexpr std::int32_t block_displacement(std::int32_t block, std::int32_t blocks) { return 8 * block - 4 * (blocks - 1); }

// Rows of candidate centres for a range: row j has blocks[j + kMaxCenterJ].
struct CenterRows {
  std::int32_t blocks[2 * kMaxCenterJ + 1];
};
inline CenterRows center_rows(float range_mm) {
  CenterRows rows{};
  for (std::int32_t j = -kMaxCenterJ; j <= kMaxCenterJ; ++j) rows.blocks[j + kMaxCenterJ] = center_blocks(j, range_mm);
  return rows;
}

// Displacements of all hits for the centres of row j.
inline void take_displacements(const LatticeHits& hits, std::int32_t j, const std::uint16_t* firsts, std::uint16_t* displacements) {
  for (std::uint32_t k = 0; k < hits.count; ++k)
    displacements[k] = static_cast<std::uint16_t>(firsts[k] + dj_displacement(hits.j[k] - j));
}

}  // namespace nanet::rich
