// SPDX-License-Identifier: Apache-2.0
// What runs on the GPU: all pointers are to its memory, and every call returns before the work is done.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "nanet/km3/judge.hpp"

namespace nanet::km3_gpu {

// degrees and *pairs are added to.
cudaError_t launch_pair_degrees(const km3::Point* points, std::uint32_t count, std::uint32_t window, const km3::Match3B& match,
                                std::uint32_t* degrees, unsigned long long* pairs, cudaStream_t stream);

cudaError_t launch_judge(const km3::Seed* seeds, std::uint32_t count, const km3::JudgeCuts& cuts, const km3::Direction* directions,
                         std::uint32_t direction_count, km3::Judgement* judgements, cudaStream_t stream);

}  // namespace nanet::km3_gpu
