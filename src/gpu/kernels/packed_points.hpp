// SPDX-License-Identifier: Apache-2.0
// Sums over hits that come as packed points: four hits a step with the GPU's products of four bytes, exact integers as in rich/ring_sums.hpp.
//
// z (up to 1213) is summed as two bytes, z = low + 256 high. Ranges for kMaxHits = 128 hits: every sum fits an int32 (rich/ring_sums.hpp).
// Host and device; the host's versions of the products are there for tests.
#pragma once

#include <cstdint>

#include "gpu/kernels/tables.hpp"
#include "nanet/host_device.hpp"
#include "rich/ring_sums.hpp"

namespace nanet::gpu {

inline constexpr PackedPoint kPmBit = 0x80000000u;

NANET_HD constexpr PackedPoint pack_point(std::int32_t i, std::int32_t j) {
  return kPmBit | static_cast<std::uint32_t>(i * i + 3 * j * j) << 16 | (static_cast<std::uint32_t>(j) & 0xffu) << 8 |
         (static_cast<std::uint32_t>(i) & 0xffu);
}
NANET_HD constexpr std::int32_t i_of(PackedPoint point) { return static_cast<std::int8_t>(point); }
NANET_HD constexpr std::int32_t j_of(PackedPoint point) { return static_cast<std::int8_t>(point >> 8); }

// Two numbers of 16 bits in a word, the factors of dot2.
NANET_HD constexpr std::uint32_t pair16(std::int32_t low, std::int32_t high) {
  return (static_cast<std::uint32_t>(low) & 0xffffu) | static_cast<std::uint32_t>(high) << 16;
}

// factor.low i + factor.high j + add, for the i and j in bytes 0 and 1 of a packed point.
NANET_HD inline std::int32_t dot2(std::uint32_t factors, PackedPoint point, std::int32_t add) {
#ifdef __CUDA_ARCH__
  return __dp2a_lo(static_cast<int>(factors), static_cast<int>(point), add);
#else
  return static_cast<std::int16_t>(factors) * i_of(point) + static_cast<std::int16_t>(factors >> 16) * j_of(point) + add;
#endif
}

// Byte k of the result is byte (selector >> 4 k) & 7 of the eight bytes a, b.
NANET_HD inline std::uint32_t permute(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
#ifdef __CUDA_ARCH__
  return __byte_perm(a, b, selector);
#else
  const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
  std::uint32_t out = 0;
  for (std::uint32_t k = 0; k < 4; ++k)
    out |= (static_cast<std::uint32_t>(bytes >> (8 * (selector >> (4 * k) & 7u))) & 0xffu) << (8 * k);
  return out;
#endif
}

// Sums of products of the four bytes: signed, unsigned, and unsigned a with signed b.
NANET_HD inline std::int32_t dot4(std::uint32_t a, std::uint32_t b, std::int32_t add) {
#ifdef __CUDA_ARCH__
  return __dp4a(static_cast<int>(a), static_cast<int>(b), add);
#else
  for (std::uint32_t k = 0; k < 32; k += 8) add += static_cast<std::int8_t>(a >> k) * static_cast<std::int8_t>(b >> k);
  return add;
#endif
}
NANET_HD inline std::uint32_t dot4_unsigned(std::uint32_t a, std::uint32_t b, std::uint32_t add) {
#ifdef __CUDA_ARCH__
  return __dp4a(a, b, add);
#else
  for (std::uint32_t k = 0; k < 32; k += 8) add += (a >> k & 0xffu) * (b >> k & 0xffu);
  return add;
#endif
}
NANET_HD inline std::int32_t dot4_mixed(std::uint32_t a, std::uint32_t b, std::int32_t add) {
#ifdef __CUDA_ARCH__
  std::int32_t sum;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(add));
  return sum;
#else
  for (std::uint32_t k = 0; k < 32; k += 8) add += static_cast<std::int32_t>(a >> k & 0xffu) * static_cast<std::int8_t>(b >> k);
  return add;
#endif
}

struct PackedSums {
  std::int32_t hits128 = 0;  // 128 a hit with a PM
  std::int32_t i = 0, j = 0, ii = 0, ij = 0, jj = 0;
  std::int32_t low_i = 0, high_i = 0, low_j = 0, high_j = 0;
  std::uint32_t low_low = 0, low_high = 0, high_high = 0;

  // Points of 0 add nothing.
  NANET_HD void add(PackedPoint p0, PackedPoint p1, PackedPoint p2, PackedPoint p3) {
    constexpr std::uint32_t kOnes = 0x01010101u;
    const std::uint32_t ij01 = permute(p0, p1, 0x5140);
    const std::uint32_t ij23 = permute(p2, p3, 0x5140);
    const std::uint32_t z01 = permute(p0, p1, 0x7362);
    const std::uint32_t z23 = permute(p2, p3, 0x7362);
    const std::uint32_t is = permute(ij01, ij23, 0x5410);
    const std::uint32_t js = permute(ij01, ij23, 0x7632);
    const std::uint32_t lows = permute(z01, z23, 0x5410);
    const std::uint32_t flagged = permute(z01, z23, 0x7632);
    const std::uint32_t highs = flagged & 0x7f7f7f7fu;
    hits128 = static_cast<std::int32_t>(dot4_unsigned(flagged & 0x80808080u, kOnes, static_cast<std::uint32_t>(hits128)));
    i = dot4(is, kOnes, i);
    j = dot4(js, kOnes, j);
    ii = dot4(is, is, ii);
    ij = dot4(is, js, ij);
    jj = dot4(js, js, jj);
    low_i = dot4_mixed(lows, is, low_i);
    high_i = dot4(highs, is, high_i);
    low_j = dot4_mixed(lows, js, low_j);
    high_j = dot4(highs, js, high_j);
    low_low = dot4_unsigned(lows, lows, low_low);
    low_high = dot4_unsigned(lows, highs, low_high);
    high_high = dot4_unsigned(highs, highs, high_high);
  }

  NANET_HD rich::RingSums sums() const {
    return {(hits128 >> 7) + 256 * i,
            j,
            ii,
            ij,
            jj,
            low_i + 256 * high_i,
            low_j + 256 * high_j,
            static_cast<std::int32_t>(low_low + 512 * low_high + 65536 * high_high)};
  }
};

// What one hit adds; 0 for the point 0.
NANET_HD inline rich::RingSums sums_of(PackedPoint point) {
  const std::int32_t i = i_of(point);
  const std::int32_t j = j_of(point);
  const auto z = static_cast<std::int32_t>(point >> 16 & 0x7fffu);
  return {(point != 0 ? 1 : 0) + 256 * i, j, i * i, i * j, j * j, z * i, z * j, z * z};
}

}  // namespace nanet::gpu
