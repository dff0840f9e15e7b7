// SPDX-License-Identifier: Apache-2.0
// TeamFinder: a ring finder run by a team of lanes of one warp. The general one is a single lane with the function that the CPU runs too;
// team_*.cuh specialise it where several lanes do it faster, with the same bits.
//
// Terms
//   team    kLanes (a power of two, 1..32) consecutive lanes of a warp, aligned to kLanes. All of them call find() with the same event.
//   Shared  what a team needs in shared memory; the kernel has one for each team of a block.
#pragma once

#include <cstdint>

#include "gpu/kernels/tables.hpp"
#include "nanet/rich/finder.hpp"
#include "rich/find_event.hpp"

namespace nanet::gpu {

// The lanes of the calling thread's team, for the *_sync functions.
template <unsigned lanes>
__device__ inline unsigned team_mask() {
  if constexpr (lanes == 32) return 0xffffffffu;
  return ((1u << lanes) - 1u) << (threadIdx.x & 31u & ~(lanes - 1u));
}

template <rich::FinderKind kind>
struct TeamFinder {
  static constexpr unsigned kLanes = 1;
  static constexpr unsigned kThreads = 64;    // of a block when nothing else decides it; a multiple of 32
  static constexpr unsigned kBlocksAnSm = 1;  // that many are to fit an SM: bounds the registers of a thread
  struct Shared {};

  // The rings of one event. event.hits lies in global or shared memory, aligned to 2 bytes at least. What comes back is valid in the team's
  // first lane; lanes of a team that has no event must not call.
  __device__ static rich::EventRings find(const rich::FinderConfig& config, event::Event event, const DeviceTables& tables, Shared&) {
    return rich::find_event<kind>(config, event, tables.points);
  }
};

}  // namespace nanet::gpu
