// SPDX-License-Identifier: Apache-2.0
// The kernels of the stencil, as the host sees them: several sweeps in one pass through memory, and what a sweep changed.
#pragma once

#include <cuda_runtime.h>

#include "stencil_gpu/kernels/march.hpp"

namespace nanet::gpu {

inline constexpr int kPassSweepsMax = 8;  // of one launch

// Each row begins at a multiple of this.
inline constexpr std::size_t kRowAlignBytes = 128;

// max |new - old| and the sum of (new - old)^2 of the inner cells of one row, in fp64.
struct RowChange {
  double max;
  double square_sum;
};

// Takes the rows args.row_begin .. row_end-1 on by 1 to kPassSweepsMax sweeps, from args.in to args.out. Writes these rows alone, all of their columns.
template <class T>
cudaError_t launch_pass(const SweepArgs<T>& args, int sweeps, cudaStream_t stream);

// How high the bands of such a pass should be, as long as there are enough of them.
int best_band_rows(int sweeps);

// changes[r - args.row_begin] of each of these rows, the change being args.out - args.in. The same bits as stencil::row_change.
template <class T>
cudaError_t launch_row_changes(const SweepArgs<T>& args, RowChange* changes, cudaStream_t stream);

}  // namespace nanet::gpu
