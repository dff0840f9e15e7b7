// SPDX-License-Identifier: Apache-2.0
// The MATH fit by four lanes an event, for low latency: hits go to the lanes four at a time, the sums are integers, and every lane solves the closed form.
#pragma once

#include "gpu/kernels/fast_solve.hpp"
#include "gpu/kernels/packed_points.hpp"
#include "gpu/kernels/team.cuh"
#include "gpu/kernels/team_finder.cuh"

namespace nanet::gpu {

template <>
struct TeamFinder<rich::FinderKind::math> {
  static constexpr unsigned kLanes = 4;
  static constexpr unsigned kThreads = 256;
  static constexpr unsigned kBlocksAnSm = 4;
  static constexpr bool kPackedInShared = true;
  struct Shared {};

  __device__ static rich::EventRings find(const rich::FinderConfig&, rich::EventHits event, const DeviceTables& tables, Shared&) {
    const rich::Ring ring = fast_solve_ring(Team<kLanes>::sum(sums_of_lane(event, tables.packed).sums()));
    rich::EventRings found;
    found.mapped_hits = ring.hits;
    found.truncated = event.count > rich::kMaxHits ? 1 : 0;
    if (!rich::has_ring(ring.status) || ring.hits < 4) return found;
    found.count = 1;
    found.rings[0] = ring;
    return found;
  }

 private:
  // Of every 16 hits a lane takes four that lie together.
  __device__ static PackedSums sums_of_lane(rich::EventHits event, const PackedPoint* packed) {
    const std::uint32_t count = event.count < rich::kMaxHits ? event.count : rich::kMaxHits;
    const bool aligned = (reinterpret_cast<std::uintptr_t>(event.hits) & 7u) == 0;
    PackedSums sums;
    for (std::uint32_t k = 4 * Team<kLanes>::lane(); k < count; k += 4 * kLanes) {
      std::uint32_t hits[4];
      if (aligned && k + 4 <= count) {
        const uint2 words = *reinterpret_cast<const uint2*>(event.hits + k);
        hits[0] = words.x;
        hits[1] = words.x >> 16;
        hits[2] = words.y;
        hits[3] = words.y >> 16;
      } else {
#pragma unroll
        for (std::uint32_t n = 0; n < 4; ++n) hits[n] = k + n < count ? event.hits[k + n] : kNoPmHit;
      }
      sums.add(packed[hits[0] & 1023u], packed[hits[1] & 1023u], packed[hits[2] & 1023u], packed[hits[3] & 1023u]);
    }
    return sums;
  }

  static constexpr std::uint32_t kNoPmHit = 1023;  // a channel without a PM
};

}  // namespace nanet::gpu
