// SPDX-License-Identifier: Apache-2.0
// FinderKernels<kind>: everything that is compiled once a finder, launched from the host. CMake instantiates each kind in a source of its own
// (finder_kernels.cu.in), so that they compile side by side; kernels.hpp is the host's view.
#pragma once

#include <cuda_runtime.h>

#include "gpu/kernels/kernels.hpp"
#include "gpu/kernels/runtimes.cuh"
#include "gpu/kernels/team_finder.cuh"

namespace nanet::gpu {

// A team an event; events in device memory.
template <rich::FinderKind kind>
__global__ void __launch_bounds__(TeamFinder<kind>::kThreads, TeamFinder<kind>::kBlocksAnSm)
    find_rings(rich::FinderConfig config, DeviceTables tables, EventTable events) {
  using Finder = TeamFinder<kind>;
  __shared__ typename Finder::Shared shared[Finder::kThreads / Finder::kLanes];
  const std::uint32_t teams = gridDim.x * (Finder::kThreads / Finder::kLanes);
  const std::uint32_t team = (blockIdx.x * Finder::kThreads + threadIdx.x) / Finder::kLanes;
  for (std::uint32_t e = team; e < events.count; e += teams) {
    const std::uint64_t first = events.first_hit[e];
    const rich::EventHits event{events.hits + first, static_cast<std::uint32_t>(events.first_hit[e + 1] - first)};
    const rich::EventRings rings = Finder::find(config, event, tables, shared[threadIdx.x / Finder::kLanes]);
    if (threadIdx.x % Finder::kLanes == 0) events.rings[e] = rings;
  }
}

template <rich::FinderKind kind>
cudaError_t FinderKernels<kind>::find(const rich::FinderConfig& config, const DeviceTables& tables, const EventTable& events,
                                      cudaStream_t stream) {
  using Finder = TeamFinder<kind>;
  const std::uint32_t teams = Finder::kThreads / Finder::kLanes;
  find_rings<kind><<<(events.count + teams - 1) / teams, Finder::kThreads, 0, stream>>>(config, tables, events);
  return cudaGetLastError();
}

template <rich::FinderKind kind>
RuntimeKernels FinderKernels<kind>::runtimes() {
  return {reinterpret_cast<const void*>(&run_persistent<kind>), reinterpret_cast<const void*>(&run_item<kind>),
          TeamFinder<kind>::kThreads, sizeof(BlockMemory<kind>)};
}

}  // namespace nanet::gpu
