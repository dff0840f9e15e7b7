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

  __device__ static rich::EventRings find(const rich::FinderConfig&, event::Event event, const DeviceTables& tables, Shared&) {
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
  // Of every 32 hits a lane takes eight that lie together: their loads do not wait for one another.
  __device__ static PackedSums sums_of_lane(event::Event event, const PackedPoint* packed) {
    const std::uint32_t count = event.count < rich::kMaxHits ? event.count : rich::kMaxHits;
    const bool aligned = (reinterpret_cast<std::uintptr_t>(event.hits) & 7u) == 0;
    PackedSums sums;
    for (std::uint32_t k = 8 * Team<kLanes>::lane(); k < count; k += 8 * kLanes) {
      const uint2 first = four_hits(event.hits, k, count, aligned);
      const uint2 second = four_hits(event.hits, k + 4, count, aligned);
      PackedPoint points[8];
      take_points(packed, first, points);
      take_points(packed, second, points + 4);
      sums.add(points[0], points[1], points[2], points[3]);
      sums.add(points[4], points[5], points[6], points[7]);
    }
    return sums;
  }

  // Hits k to k + 3, those from `count` on as a channel without a PM.
  __device__ static uint2 four_hits(const std::uint16_t* hits, std::uint32_t k, std::uint32_t count, bool aligned) {
    if (aligned && k + 4 <= count) return *reinterpret_cast<const uint2*>(hits + k);
    std::uint32_t four[4];
#pragma unroll
    for (std::uint32_t n = 0; n < 4; ++n) four[n] = k + n < count ? hits[k + n] : kNoPmHit;
    return {four[0] | four[1] << 16, four[2] | four[3] << 16};
  }

  __device__ static void take_points(const PackedPoint* packed, const uint2& hits, PackedPoint* points) {
    points[0] = packed[hits.x & 1023u];
    points[1] = packed[hits.x >> 16 & 1023u];
    points[2] = packed[hits.y & 1023u];
    points[3] = packed[hits.y >> 16 & 1023u];
  }

  static constexpr std::uint32_t kNoPmHit = 1023;  // a channel without a PM
};

}  // namespace nanet::gpu
