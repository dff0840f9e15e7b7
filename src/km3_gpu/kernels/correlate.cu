// SPDX-License-Identifier: Apache-2.0
// Degrees of hits: a thread a hit goes through the hits after it, which the block has in shared memory, a tile at a time. Each pair is looked at
// once: a warp's 32 answers for one later hit are one vote, whose bits are counted for that hit.
#include "km3_gpu/kernels/kernels.hpp"

namespace nanet::km3_gpu {
namespace {

constexpr std::uint32_t kThreads = 256;  // hits of a block, and of a tile

__global__ void __launch_bounds__(kThreads)
    pair_degrees_kernel(const km3::Point* points, std::uint32_t count, std::uint32_t window, km3::Match3B match,
                        std::uint32_t* degrees, unsigned long long* pairs) {
  __shared__ km3::Point tile[kThreads];
  __shared__ std::uint32_t tile_degrees[kThreads];
  const std::uint32_t mine = blockIdx.x * kThreads + threadIdx.x;
  const bool is_hit = mine < count;
  const km3::Point point = points[is_hit ? mine : count - 1];
  const std::uint64_t end = min(std::uint64_t{blockIdx.x} * kThreads + kThreads + window, std::uint64_t{count});
  std::uint32_t degree = 0;
  for (std::uint64_t begin = std::uint64_t{blockIdx.x} * kThreads; begin < end; begin += kThreads) {
    const std::uint64_t loaded = begin + threadIdx.x;
    if (loaded < count) tile[threadIdx.x] = points[loaded];
    tile_degrees[threadIdx.x] = 0;
    __syncthreads();
    const auto tile_count = static_cast<std::uint32_t>(min(end - begin, std::uint64_t{kThreads}));
    const std::uint32_t before_tile = static_cast<std::uint32_t>(begin) - mine - 1;  // wraps round where the hit itself is in the tile
#pragma unroll 4
    for (std::uint32_t k = 0; k < tile_count; ++k) {
      const bool matches = is_hit && before_tile + k < window && match(point, tile[k]);
      const std::uint32_t votes = __ballot_sync(0xffffffffu, matches);
      degree += matches ? 1u : 0u;
      if (votes != 0 && threadIdx.x % 32 == 0) atomicAdd(&tile_degrees[k], static_cast<std::uint32_t>(__popc(votes)));
    }
    __syncthreads();
    if (loaded < count && tile_degrees[threadIdx.x] != 0) atomicAdd(&degrees[loaded], tile_degrees[threadIdx.x]);
  }
  if (is_hit && degree != 0) atomicAdd(&degrees[mine], degree);
  const std::uint32_t of_warp = __reduce_add_sync(0xffffffffu, degree);
  if (threadIdx.x % 32 == 0 && of_warp != 0) atomicAdd(pairs, static_cast<unsigned long long>(of_warp));
}

}  // namespace

cudaError_t launch_pair_degrees(const km3::Point* points, std::uint32_t count, std::uint32_t window, const km3::Match3B& match,
                                std::uint32_t* degrees, unsigned long long* pairs, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  pair_degrees_kernel<<<(count - 1) / kThreads + 1, kThreads, 0, stream>>>(points, count, window, match, degrees, pairs);
  return cudaGetLastError();
}

}  // namespace nanet::km3_gpu
