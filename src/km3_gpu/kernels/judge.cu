// SPDX-License-Identifier: Apache-2.0
// A thread a seed, as the anchor: the function of the CPU.
#include "km3_gpu/kernels/kernels.hpp"

namespace nanet::km3_gpu {
namespace {

constexpr std::uint32_t kThreads = 128;

__global__ void __launch_bounds__(kThreads)
    judge_kernel(const km3::Seed* seeds, std::uint32_t count, km3::JudgeCuts cuts, const km3::Direction* directions,
                 std::uint32_t direction_count, km3::Judgement* judgements) {
  const std::uint32_t anchor = blockIdx.x * kThreads + threadIdx.x;
  if (anchor < count) judgements[anchor] = km3::judge(seeds, count, anchor, cuts, directions, direction_count);
}

}  // namespace

cudaError_t launch_judge(const km3::Seed* seeds, std::uint32_t count, const km3::JudgeCuts& cuts, const km3::Direction* directions,
                         std::uint32_t direction_count, km3::Judgement* judgements, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  judge_kernel<<<(count - 1) / kThreads + 1, kThreads, 0, stream>>>(seeds, count, cuts, directions, direction_count, judgements);
  return cudaGetLastError();
}

}  // namespace nanet::km3_gpu
