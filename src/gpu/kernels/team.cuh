// SPDX-License-Identifier: Apache-2.0
// Team<lanes>: what the lanes of a team do together. A team is `lanes` (a power of two, 1..32) consecutive lanes of a warp, aligned to `lanes`; all of
// them must call.
#pragma once

#include <cstdint>

#include "rich/ring_sums.hpp"

namespace nanet::gpu {

template <unsigned lanes>
struct Team {
  static_assert(lanes != 0 && lanes <= 32 && (lanes & (lanes - 1)) == 0);

  __device__ static unsigned lane() { return threadIdx.x & (lanes - 1); }
  __device__ static unsigned first_lane() { return threadIdx.x & 31u & ~(lanes - 1); }
  __device__ static unsigned mask() {
    if constexpr (lanes == 32) return 0xffffffffu;
    return ((1u << (lanes & 31u)) - 1u) << first_lane();
  }
  __device__ static void sync() { __syncwarp(mask()); }

  // Bit k: the predicate of lane k.
  __device__ static std::uint32_t ballot(bool predicate) {
    const std::uint32_t all = __ballot_sync(mask(), predicate);
    if constexpr (lanes == 32) return all;
    return all >> first_lane() & ((1u << (lanes & 31u)) - 1u);
  }

  template <class T>
  __device__ static T from_lane(T value, unsigned lane) {
    return __shfl_sync(mask(), value, static_cast<int>(lane), lanes);
  }
  template <class T>
  __device__ static T from_other(T value, unsigned lane_xor) {
    return __shfl_xor_sync(mask(), value, static_cast<int>(lane_xor), lanes);
  }

  __device__ static std::int32_t sum(std::int32_t value) {
    if constexpr (lanes == 32) return __reduce_add_sync(0xffffffffu, value);
#pragma unroll
    for (unsigned step = lanes / 2; step != 0; step /= 2) value += from_other(value, step);
    return value;
  }
  __device__ static std::int32_t max(std::int32_t value) {
    if constexpr (lanes == 32) return __reduce_max_sync(0xffffffffu, value);
#pragma unroll
    for (unsigned step = lanes / 2; step != 0; step /= 2) value = ::max(value, from_other(value, step));
    return value;
  }

  // The sums over all lanes, in every lane: halves are exchanged until a lane has one sum, which it then gives to all.
  __device__ static rich::RingSums sum(const rich::RingSums& s) {
    if constexpr (lanes == 32) {
      return {sum(s.hits_and_i), sum(s.j), sum(s.ii), sum(s.ij), sum(s.jj), sum(s.zi), sum(s.zj), sum(s.zz)};
    } else if constexpr (lanes < 8) {
      return {sum(s.hits_and_i), sum(s.j), sum(s.ii), sum(s.ij), sum(s.jj), sum(s.zi), sum(s.zj), sum(s.zz)};
    } else {
      const bool four = (lane() & 4u) != 0;
      const bool two = (lane() & 2u) != 0;
      const bool one = (lane() & 1u) != 0;
      const std::int32_t a0 = halve(s.hits_and_i, s.jj, four, 4);
      const std::int32_t a1 = halve(s.j, s.zi, four, 4);
      const std::int32_t a2 = halve(s.ii, s.zj, four, 4);
      const std::int32_t a3 = halve(s.ij, s.zz, four, 4);
      const std::int32_t b0 = halve(a0, a2, two, 2);
      const std::int32_t b1 = halve(a1, a3, two, 2);
      std::int32_t mine = halve(b0, b1, one, 1);
      if constexpr (lanes == 16) mine += from_other(mine, 8);
      return {from_lane(mine, 0), from_lane(mine, 1), from_lane(mine, 2), from_lane(mine, 3),
              from_lane(mine, 4), from_lane(mine, 5), from_lane(mine, 6), from_lane(mine, 7)};
    }
  }

 private:
  // Of two sums this lane keeps the second if `second`, and its partner the other.
  __device__ static std::int32_t halve(std::int32_t s0, std::int32_t s1, bool second, unsigned lane_xor) {
    const std::int32_t kept = second ? s1 : s0;
    return kept + from_other(second ? s0 : s1, lane_xor);
  }
};

}  // namespace nanet::gpu
