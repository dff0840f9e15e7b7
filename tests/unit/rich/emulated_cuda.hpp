// SPDX-License-Identifier: Apache-2.0
// What the GPU's teams of lanes use of CUDA, on an emulated warp, so that src/gpu/kernels/team_*.cuh run on a CPU. Include it before them.
//
// All 32 lanes must ask the same at one time: teams of fewer lanes all work on the same event, each in memory of its own.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "emulated_warp.hpp"

#define __device__  // NOLINT
#define __host__    // NOLINT

struct EmulatedThreadIndex {
  struct {
    operator unsigned() const { return nanet::rich::EmulatedWarp::lane(); }
  } x;
};
inline constexpr EmulatedThreadIndex threadIdx{};

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

using std::abs;
constexpr int min(int a, int b) { return a < b ? a : b; }
constexpr int max(int a, int b) { return a > b ? a : b; }
constexpr unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }

constexpr int __popc(unsigned word) { return std::popcount(word); }
constexpr int __float_as_int(float value) { return std::bit_cast<int>(value); }
constexpr float __int_as_float(int value) { return std::bit_cast<float>(value); }
constexpr unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (bits & 31u));
}
constexpr unsigned __vmaxu2(unsigned a, unsigned b) { return max(a >> 16, b >> 16) << 16 | max(a & 0xffffu, b & 0xffffu); }
inline unsigned atomicAdd(unsigned* word, unsigned add) {
  const unsigned old = *word;
  *word += add;
  return old;
}

inline void __syncwarp(unsigned) { nanet::rich::EmulatedWarp::sync(); }
inline unsigned __ballot_sync(unsigned mask, bool vote) { return nanet::rich::EmulatedWarp::ballot(vote) & mask; }
template <class T>
T __shfl_sync(unsigned, T value, int lane, int width) {
  const auto mask = static_cast<unsigned>(width - 1);
  const unsigned from = (nanet::rich::EmulatedWarp::lane() & ~mask) | (static_cast<unsigned>(lane) & mask);
  return nanet::rich::EmulatedWarp::from_lane(value, from);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int lanes, int) {
  return nanet::rich::EmulatedWarp::from_other(value, static_cast<std::uint32_t>(lanes));
}
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned lanes) {
  const unsigned lane = nanet::rich::EmulatedWarp::lane();
  return nanet::rich::EmulatedWarp::from_lane(value, lane >= lanes ? lane - lanes : lane);
}
template <class T, class Together>
T emulated_reduce(T value, Together together) {
  for (std::uint32_t step = 16; step != 0; step /= 2) value = together(value, nanet::rich::EmulatedWarp::from_other(value, step));
  return value;
}
inline int __reduce_add_sync(unsigned, int value) {
  return emulated_reduce(value, [](int a, int b) { return a + b; });
}
inline unsigned __reduce_or_sync(unsigned, unsigned value) {
  return emulated_reduce(value, [](unsigned a, unsigned b) { return a | b; });
}
inline int __reduce_max_sync(unsigned, int value) { return nanet::rich::EmulatedWarp::max(value); }
