// SPDX-License-Identifier: Apache-2.0
// FinderKernels<kind>: everything that is compiled once a finder, launched from the host. CMake instantiates each kind in a source of its own
// (finder_kernels.cu.in), so that they compile side by side; kernels.hpp is the host's view.
#pragma once

#include <cuda_runtime.h>

#include "gpu/kernels/find_rings.cuh"
#include "gpu/kernels/kernels.hpp"
#include "gpu/kernels/merge_runtimes.cuh"
#include "gpu/kernels/runtimes.cuh"
#include "gpu/kernels/team_finder.cuh"

namespace nanet::gpu {

template <rich::FinderKind kind>
RuntimeKernels FinderKernels<kind>::runtimes() {
  return {reinterpret_cast<const void*>(&run_persistent<kind, false>), reinterpret_cast<const void*>(&run_persistent<kind, true>),
          reinterpret_cast<const void*>(&run_item<kind>), TeamFinder<kind>::kThreads, sizeof(BlockMemory<kind>)};
}

template <rich::FinderKind kind>
RuntimeKernels FinderKernels<kind>::merge_runtimes() {
  return {reinterpret_cast<const void*>(&run_merge_persistent<kind>), reinterpret_cast<const void*>(&run_merge_persistent<kind>),
          reinterpret_cast<const void*>(&run_merge_round<kind>), TeamFinder<kind>::kThreads, sizeof(MergeMemory<kind>)};
}

}  // namespace nanet::gpu
