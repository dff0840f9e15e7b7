// SPDX-License-Identifier: Apache-2.0
// Variants of the pass of the stencil, for bench_gpu_stencil --tune: what stencil.cu takes is chosen from their table.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "stencil_gpu/kernels/march.hpp"

namespace nanet::gpu {

template <class T>
struct PassVariant {
  int sweeps;
  int ahead;  // rows in flight from memory to a warp
  cudaError_t (*launch)(SweepArgs<T> args, int threads, cudaStream_t stream);
};

template <class T>
std::vector<PassVariant<T>> pass_variants();

}  // namespace nanet::gpu
