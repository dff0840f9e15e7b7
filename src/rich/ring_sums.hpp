// SPDX-License-Identifier: Apache-2.0
// The sums over hits that the MATH fit needs, as exact 32-bit integers, and a table with one precomputed row for each channel.
//
// With lattice integers i, j (x = 9 i mm, y = 9 sqrt(3) j mm) and z = i i + 3 j j, the squared distance from the disk's centre is 81 z mm^2.
// A row is {1 + 256 i, j, i i, i j, j j, z i, z j, z z}; the sums of an event are one vector add per hit.
//
// Ranges, for at most kMaxHits = 128 hits (|i| <= 33, |j| <= 19, z <= 1213):
//   number of hits   low 8 bits of the first sum, 0..128; sum of i = the rest, |.| <= 4224
//   z z              at most 1.88e8, the largest of the eight, so every sum fits an int32 ten times over
//   centred products N sum(a b) - sum(a) sum(b) of i, j and z i, z j: at most 3.3e8 and each half at most 6.6e8: they fit an int32
//                    too; N sum(z z) - sum(z)^2 is at most 6.1e9 and needs a double (exact) or int64.
//
// Both disks have the same pattern, so the disk's bit of the channel is dropped: 1024 rows of 32 B = 32 KiB, the size of an L1 cache.
// Channels without a PM have a zero row: they add nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/rich/ring.hpp"

namespace nanet::rich {

inline constexpr int kRingSumRows = 1024;

struct alignas(32) RingSums {
  std::int32_t hits_and_i = 0;  // hits + 256 * sum of i
  std::int32_t j = 0;
  std::int32_t ii = 0;
  std::int32_t ij = 0;
  std::int32_t jj = 0;
  std::int32_t zi = 0;
  std::int32_t zj = 0;
  std::int32_t zz = 0;

  friend constexpr bool operator==(const RingSums&, const RingSums&) = default;
};
static_assert(sizeof(RingSums) == 32);

// Row of a hit word (channel and time) in the table.
NANET_HD constexpr std::size_t ring_sums_row_index(std::uint16_t hit) { return hit & (kRingSumRows - 1u); }

// What one hit at lattice point (i, j) adds.
NANET_HD constexpr RingSums make_ring_sums_row(std::int32_t i, std::int32_t j) {
  const std::int32_t z = i * i + 3 * j * j;
  return RingSums{1 + 256 * i, j, i * i, i * j, j * j, z * i, z * j, z * z};
}

NANET_HD constexpr void add(RingSums& sums, const RingSums& row) {
  sums.hits_and_i += row.hits_and_i;
  sums.j += row.j;
  sums.ii += row.ii;
  sums.ij += row.ij;
  sums.jj += row.jj;
  sums.zi += row.zi;
  sums.zj += row.zj;
  sums.zz += row.zz;
}

// The number of mapped hits in the sums.
NANET_HD constexpr std::int32_t hit_count(const RingSums& sums) { return sums.hits_and_i & 255; }
NANET_HD constexpr std::int32_t sum_i(const RingSums& sums) { return sums.hits_and_i >> 8; }

// Host table; a GPU back-end copies it. Starts on a 64-byte boundary.
extern const std::array<RingSums, kRingSumRows> kRingSumTable;

}  // namespace nanet::rich
