// SPDX-License-Identifier: Apache-2.0
// The warp that marches through a field (stencil_march.hpp), a few neighbouring cells in each lane, and its launch.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "stencil_gpu/kernels/march.hpp"

namespace nanet::gpu {

// 16 bytes of a row in each lane.
template <class T>
class SweepWarp {
  using Piece = std::conditional_t<std::is_same_v<T, float>, float4, double2>;
  static constexpr unsigned kAll = 0xffffffffu;

 public:
  static constexpr int kCells = 16 / static_cast<int>(sizeof(T));
  using Shape = TileShape<kCells>;
  struct Cells {
    T values[kCells];
  };

  __device__ SweepWarp(const SweepArgs<T>& args, std::int32_t tile, int sweeps)
      : stride_(args.stride), memory_begin_(args.memory_begin), columns_(args.columns) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const std::int32_t first = Shape::first_column(tile, sweeps);
    column_ = first + lane * kCells;
    touches_ = Shape::touches_a_column(first, columns_);
    const auto readable = static_cast<std::int32_t>(args.stride - kCells);
    in_ = args.in + min(max(column_, 0), readable);
    out_ = args.out + column_;
    stores_ = lane * kCells >= Shape::margin(sweeps) && lane * kCells < Shape::kWidth - Shape::margin(sweeps) && column_ < columns_;
  }

  __device__ bool touches_a_column() const { return touches_; }

  __device__ Cells load(std::int32_t row) const {
    return unpacked(__ldg(reinterpret_cast<const Piece*>(in_ + (row - memory_begin_) * stride_)));
  }

  __device__ void store(std::int32_t row, const Cells& cells) const {
    if (stores_) *reinterpret_cast<Piece*>(out_ + (row - memory_begin_) * stride_) = packed(cells);
  }

  // From left to right, each sum rounded once (-fmad=false); a quarter has the bits of a division by 4.
  __device__ Cells mean(const Cells& up, const Cells& mid, const Cells& down) const {
    const T left = __shfl_up_sync(kAll, mid.values[kCells - 1], 1);
    const T right = __shfl_down_sync(kAll, mid.values[0], 1);
    Cells next;
#pragma unroll
    for (int k = 0; k < kCells; ++k) {
      const T vertical = up.values[k] + down.values[k];
      next.values[k] = ((vertical + (k == 0 ? left : mid.values[k - 1])) + (k == kCells - 1 ? right : mid.values[k + 1])) * T{0.25};
    }
    return next;
  }

  __device__ Cells with_boundary_columns(Cells next, const Cells& mid) const {
#pragma unroll
    for (int k = 0; k < kCells; ++k) {
      if ((k == 0 && column_ == 0) || column_ + k == columns_ - 1) next.values[k] = mid.values[k];
    }
    return next;
  }

 private:
  static __device__ Cells unpacked(const Piece& piece) {
    if constexpr (kCells == 4) {
      return {{piece.x, piece.y, piece.z, piece.w}};
    } else {
      return {{piece.x, piece.y}};
    }
  }
  static __device__ Piece packed(const Cells& cells) {
    if constexpr (kCells == 4) {
      return {cells.values[0], cells.values[1], cells.values[2], cells.values[3]};
    } else {
      return {cells.values[0], cells.values[1]};
    }
  }

  const T* in_;
  T* out_;
  std::int64_t stride_;
  std::int32_t memory_begin_;
  std::int32_t columns_;
  std::int32_t column_;
  bool touches_;
  bool stores_;
};

inline constexpr int kSweepThreadsMax = 256;  // a block

template <class T, int kSweeps, int kAhead>
__global__ void __launch_bounds__(kSweepThreadsMax) sweep_kernel(SweepArgs<T> args) {
  using Warp = SweepWarp<T>;
  // From a shuffle the compiler knows that the value is the same in a whole warp, and omits a check before each exchange.
  const auto warp_index = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
  const auto tile = static_cast<std::int32_t>(blockIdx.x * (blockDim.x / 32) + warp_index);
  if (static_cast<std::int64_t>(tile) * Warp::Shape::stored(kSweeps) >= args.columns) return;
  const std::int32_t begin = args.row_begin + static_cast<std::int32_t>(blockIdx.y) * args.band_rows;
  const Warp warp(args, tile, kSweeps);
  March<Warp, kSweeps, kAhead>(warp, args.rows, args.memory_begin, args.memory_end).run(begin, min(begin + args.band_rows, args.row_end));
}

// `threads` a block, whole warps.
template <int kSweeps, int kAhead, class T>
cudaError_t launch_sweeps(SweepArgs<T> args, int threads, cudaStream_t stream) {
  using Shape = typename SweepWarp<T>::Shape;
  constexpr std::int32_t kBandsMax = 65535;  // of a grid
  const std::int32_t rows = args.row_end - args.row_begin;
  if (rows <= 0 || args.columns < 3) return cudaSuccess;
  args.band_rows = std::max(args.band_rows, (rows + kBandsMax - 1) / kBandsMax);
  const std::int32_t tiles = (args.columns + Shape::stored(kSweeps) - 1) / Shape::stored(kSweeps);
  const std::int32_t warps = threads / 32;
  const dim3 blocks(static_cast<unsigned>((tiles + warps - 1) / warps),
                    static_cast<unsigned>((rows + args.band_rows - 1) / args.band_rows));
  sweep_kernel<T, kSweeps, kAhead><<<blocks, static_cast<unsigned>(threads), 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace nanet::gpu
