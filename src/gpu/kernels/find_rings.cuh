// SPDX-License-Identifier: Apache-2.0
// find_rings: the rings of a batch of events in device memory, a team of lanes an event.
#pragma once

#include <cuda_runtime.h>

#include "gpu/kernels/kernels.hpp"
#include "gpu/kernels/shared_tables.cuh"
#include "gpu/kernels/team_finders.cuh"

namespace nanet::gpu {

template <class Finder>
__global__ void __launch_bounds__(Finder::kThreads, Finder::kBlocksAnSm)
    find_rings(rich::FinderConfig config, DeviceTables tables, EventTable events) {
  __shared__ SharedTables<Finder> block;
  __shared__ typename Finder::Shared shared[Finder::kThreads / Finder::kLanes];
  const DeviceTables near = block.load(config, tables, Finder::kThreads);
  const std::uint32_t teams = gridDim.x * (Finder::kThreads / Finder::kLanes);
  const std::uint32_t team = (blockIdx.x * Finder::kThreads + threadIdx.x) / Finder::kLanes;
  for (std::uint32_t round = 0; round < events.rounds; ++round) {
    for (std::uint32_t e = team; e < events.count; e += teams) {
      const std::uint64_t first = events.first_hit[e];
      const event::Event event{events.hits + first, static_cast<std::uint32_t>(events.first_hit[e + 1] - first)};
      const rich::EventRings rings = Finder::find(config, event, near, shared[threadIdx.x / Finder::kLanes]);
      if (threadIdx.x % Finder::kLanes == 0) events.rings[e] = rings;
    }
    asm volatile("" ::: "memory");  // a round is not taken out of the loop
  }
}

// As many blocks as there is work for, and as fit the GPU at once.
template <class Finder>
cudaError_t launch_find_rings(const rich::FinderConfig& config, const DeviceTables& tables, const EventTable& events,
                              cudaStream_t stream) {
  constexpr std::uint32_t kTeams = Finder::kThreads / Finder::kLanes;
  int device = 0;
  int processors = 0;
  int blocks_an_sm = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess) {
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_an_sm, find_rings<Finder>, Finder::kThreads, 0);
  }
  if (error != cudaSuccess) return error;
  const std::uint32_t needed = (events.count + kTeams - 1) / kTeams;
  const auto fit = static_cast<std::uint32_t>(processors * blocks_an_sm);
  const std::uint32_t blocks = needed < fit ? needed : fit;
  find_rings<Finder><<<blocks, Finder::kThreads, 0, stream>>>(config, tables, events);
  return cudaGetLastError();
}

template <rich::FinderKind kind>
cudaError_t FinderKernels<kind>::find(const rich::FinderConfig& config, const DeviceTables& tables, const EventTable& events,
                                      cudaStream_t stream) {
  return launch_find_rings<TeamFinder<kind>>(config, tables, events, stream);
}

}  // namespace nanet::gpu
