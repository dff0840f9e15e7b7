// SPDX-License-Identifier: Apache-2.0
#include "stencil_gpu/kernels/stencil.hpp"

#include "stencil_gpu/kernels/warp.cuh"

namespace nanet::gpu {
namespace {

constexpr int kThreads = 128;  // a block

// The quickest of bench_gpu_stencil --tune on an H200, of fields of 16384 x 16384, fp32 and fp64 together.
struct Choice {
  int ahead;  // rows in flight from memory to a warp
  int band_rows;
};
constexpr Choice kChoices[kPassSweepsMax] = {{6, 8}, {6, 12}, {6, 18}, {6, 28}, {6, 96}, {6, 96}, {6, 96}, {4, 96}};

template <int kSweeps, class T>
cudaError_t launch_chosen(const SweepArgs<T>& args, cudaStream_t stream) {
  return launch_sweeps<kSweeps, kChoices[kSweeps - 1].ahead>(args, kThreads, stream);
}

constexpr unsigned kSums = 16;  // of a row: cell j, counted from column 1, goes to sum j mod 16, and these are added in order
constexpr unsigned kChangeThreads = 256;

// Half a warp a row. What is done for a row past the end is thrown away, so that all lanes take part.
template <class T>
__global__ void __launch_bounds__(kChangeThreads) row_change_kernel(SweepArgs<T> args, RowChange* changes) {
  const std::int64_t count = args.row_end - args.row_begin;
  const std::int64_t index = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kSums;
  const std::int64_t place = (args.row_begin - args.memory_begin + min(index, count - 1)) * args.stride + 1;
  const T* const was = args.in + place;
  const T* const is = args.out + place;
  double max = 0.0;
  double square_sum = 0.0;
#pragma unroll 8
  for (std::int32_t j = static_cast<std::int32_t>(threadIdx.x % kSums); j < args.columns - 2; j += static_cast<std::int32_t>(kSums)) {
    const double change = fabs(static_cast<double>(is[j]) - static_cast<double>(was[j]));
    square_sum += change * change;
    max = fmax(max, change);
  }
  RowChange total{0.0, 0.0};
  for (unsigned k = 0; k < kSums; ++k) {
    total.max = fmax(total.max, __shfl_sync(0xffffffffu, max, static_cast<int>(k), kSums));
    total.square_sum += __shfl_sync(0xffffffffu, square_sum, static_cast<int>(k), kSums);
  }
  if (threadIdx.x % kSums == 0 && index < count) changes[index] = total;
}

}  // namespace

template <class T>
cudaError_t launch_pass(const SweepArgs<T>& args, int sweeps, cudaStream_t stream) {
  switch (sweeps) {
    case 1: return launch_chosen<1>(args, stream);
    case 2: return launch_chosen<2>(args, stream);
    case 3: return launch_chosen<3>(args, stream);
    case 4: return launch_chosen<4>(args, stream);
    case 5: return launch_chosen<5>(args, stream);
    case 6: return launch_chosen<6>(args, stream);
    case 7: return launch_chosen<7>(args, stream);
    case 8: return launch_chosen<8>(args, stream);
    default: return cudaErrorInvalidValue;
  }
}

int best_band_rows(int sweeps) { return kChoices[sweeps - 1].band_rows; }

template <class T>
cudaError_t launch_row_changes(const SweepArgs<T>& args, RowChange* changes, cudaStream_t stream) {
  const std::int64_t rows = args.row_end - args.row_begin;
  if (rows <= 0) return cudaSuccess;
  const std::int64_t blocks = (rows * kSums + kChangeThreads - 1) / kChangeThreads;
  row_change_kernel<<<static_cast<unsigned>(blocks), kChangeThreads, 0, stream>>>(args, changes);
  return cudaGetLastError();
}

template cudaError_t launch_pass(const SweepArgs<float>&, int, cudaStream_t);
template cudaError_t launch_pass(const SweepArgs<double>&, int, cudaStream_t);
template cudaError_t launch_row_changes(const SweepArgs<float>&, RowChange*, cudaStream_t);
template cudaError_t launch_row_changes(const SweepArgs<double>&, RowChange*, cudaStream_t);

}  // namespace nanet::gpu
