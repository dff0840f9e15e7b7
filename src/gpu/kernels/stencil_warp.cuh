// SPDX-License-Identifier: Apache-2.0
// The warp that marches through a field (stencil_march.hpp), a few neighbouring cells in each lane, and its launch.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "gpu/kernels/stencil_march.hpp"

namespace nanet::gpu {

enum class StoreHint : std::uint8_t { none, streaming };

// What a lane has of a row. beside: in lanes 0 to 15 the cell left of the tile, in the others the one right of it.
template <class T, int kCells, Sides kSides>
struct LaneCells {
  T values[kCells];
};
template <class T, int kCells>
struct LaneCells<T, kCells, Sides::loaded> {
  T values[kCells];
  T beside;
};

// kPieces: pieces of 16 bytes a lane.
template <class T, int kPieces, StoreHint kHint, Sides kSides = Sides::margins>
class SweepWarp {
  using Piece = std::conditional_t<std::is_same_v<T, float>, float4, double2>;
  static constexpr int kPieceCells = 16 / static_cast<int>(sizeof(T));
  static constexpr unsigned kAll = 0xffffffffu;

 public:
  static constexpr int kCells = kPieces * kPieceCells;
  using Shape = TileShape<kCells, kSides>;
  using Cells = LaneCells<T, kCells, kSides>;

  __device__ SweepWarp(const SweepArgs<T>& args, std::int32_t tile, int sweeps)
      : stride_(args.stride), memory_begin_(args.memory_begin), columns_(args.columns) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const std::int32_t first = Shape::first_column(tile, sweeps);
    column_ = first + lane * kCells;
    touches_ = Shape::touches_a_column(first, columns_);
    const auto readable = static_cast<std::int32_t>(args.stride - kCells);
    in_ = args.in + min(max(column_, 0), readable);
    if constexpr (kSides == Sides::loaded) {
      const std::int32_t next_to = lane < 16 ? first - 1 : first + Shape::kWidth;  // all lanes load, so that none has to branch
      beside_ = args.in + min(max(next_to, 0), static_cast<std::int32_t>(args.stride) - 1);
      is_first_ = lane == 0;
      is_last_ = lane == 31;
    }
    out_ = args.out + column_;
    stores_ = lane * kCells >= Shape::margin(sweeps) && lane * kCells < Shape::kWidth - Shape::margin(sweeps) && column_ < columns_;
  }

  __device__ bool touches_a_column() const { return touches_; }

  __device__ Cells load(std::int32_t row) const {
    const auto* const from = reinterpret_cast<const Piece*>(in_ + (row - memory_begin_) * stride_);
    Cells cells;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) unpack(__ldg(from + p), cells.values + p * kPieceCells);
    if constexpr (kSides == Sides::loaded) {
      cells.beside = __ldg(beside_ + (row - memory_begin_) * stride_);
    }
    return cells;
  }

  __device__ void store(std::int32_t row, const Cells& cells) const {
    if (!stores_) return;
    auto* const to = reinterpret_cast<Piece*>(out_ + (row - memory_begin_) * stride_);
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      if constexpr (kHint == StoreHint::streaming) {
        __stcs(to + p, packed(cells.values + p * kPieceCells));
      } else {
        to[p] = packed(cells.values + p * kPieceCells);
      }
    }
  }

  // From left to right, each sum rounded once (-fmad=false); a quarter has the bits of a division by 4.
  __device__ Cells mean(const Cells& up, const Cells& mid, const Cells& down) const {
    T left = __shfl_up_sync(kAll, mid.values[kCells - 1], 1);
    T right = __shfl_down_sync(kAll, mid.values[0], 1);
    if constexpr (kSides == Sides::loaded) {
      if (is_first_) left = mid.beside;
      if (is_last_) right = mid.beside;
    }
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
  static __device__ void unpack(const float4& piece, float* values) {
    values[0] = piece.x;
    values[1] = piece.y;
    values[2] = piece.z;
    values[3] = piece.w;
  }
  static __device__ void unpack(const double2& piece, double* values) {
    values[0] = piece.x;
    values[1] = piece.y;
  }
  static __device__ float4 packed(const float* values) { return make_float4(values[0], values[1], values[2], values[3]); }
  static __device__ double2 packed(const double* values) { return make_double2(values[0], values[1]); }

  const T* in_;
  const T* beside_;
  T* out_;
  std::int64_t stride_;
  std::int32_t memory_begin_;
  std::int32_t columns_;
  std::int32_t column_;
  bool touches_;
  bool stores_;
  bool is_first_;
  bool is_last_;
};

constexpr int sweep_threads_max(int sweeps) { return sweeps == 1 ? 512 : 256; }

template <class Warp, int kSweeps, int kAhead, class T>
__global__ void __launch_bounds__(sweep_threads_max(kSweeps)) sweep_kernel(SweepArgs<T> args) {
  // By way of a shuffle the compiler knows that a warp is of one mind, and lets it go without a check before each exchange.
  const auto warp_index = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
  const auto tile = static_cast<std::int32_t>(blockIdx.x * (blockDim.x / 32) + warp_index);
  if (static_cast<std::int64_t>(tile) * Warp::Shape::stored(kSweeps) >= args.columns) return;
  const std::int32_t begin = args.row_begin + static_cast<std::int32_t>(blockIdx.y) * args.band_rows;
  const Warp warp(args, tile, kSweeps);
  March<Warp, kSweeps, kAhead>(warp, args.rows, args.memory_begin, args.memory_end).run(begin, min(begin + args.band_rows, args.row_end));
}

// `threads` a block, whole warps.
template <class Warp, int kSweeps, int kAhead, class T>
cudaError_t launch_sweeps(SweepArgs<T> args, int threads, cudaStream_t stream) {
  constexpr std::int32_t kBandsMax = 65535;  // of a grid
  const std::int32_t rows = args.row_end - args.row_begin;
  if (rows <= 0 || args.columns < 3) return cudaSuccess;
  args.band_rows = std::max(args.band_rows, (rows + kBandsMax - 1) / kBandsMax);
  const std::int32_t tiles = (args.columns + Warp::Shape::stored(kSweeps) - 1) / Warp::Shape::stored(kSweeps);
  const std::int32_t warps = threads / 32;
  const dim3 blocks(static_cast<unsigned>((tiles + warps - 1) / warps),
                    static_cast<unsigned>((rows + args.band_rows - 1) / args.band_rows));
  sweep_kernel<Warp, kSweeps, kAhead><<<blocks, static_cast<unsigned>(threads), 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace nanet::gpu
