// SPDX-License-Identifier: Apache-2.0
// fit_records: the MATH fit of many events in device memory, a thread an event, made to run at the speed of the memory.
//
//   record   64 bytes: 8 of header as in an MGP packet (hit_count in byte 5), then room for 28 hits of 16 bits; what stands after hit_count is not looked at
//   tile     the records of a warp, 2 KiB: copied to shared memory by whole lines while the warp works on the tile before
//
// In shared memory the 16-byte pieces of a record are exchanged (by XOR) so that neither the copy nor the reading meets bank conflicts. A hit's point is
// one word from a table in shared memory, of which there are kCopies: with 32, each lane has its own bank.
#pragma once

#include "gpu/kernels/fast_solve.hpp"
#include "gpu/kernels/fit_records.hpp"
#include "gpu/kernels/packed_points.hpp"

namespace nanet::gpu {

// The fit of one record from its four pieces. point(hit): the packed point of the channel in bits 9..0 of a word.
template <class Point>
NANET_HD inline rich::RingSums sum_record(const std::uint32_t (&words)[16], std::uint32_t count, Point point) {
  constexpr std::uint32_t kNoHits = 0xffffffffu;  // channel 1023 twice: there is no PM
  const std::uint32_t rest = count & 3u;
  const std::uint32_t fill_low = rest == 1 ? 0xffff0000u : 0u;
  const std::uint32_t fill_high = rest == 3 ? 0xffff0000u : kNoHits;
  PackedSums sums;
#pragma unroll
  for (std::uint32_t four = 0; four < kRecordHitsMax / 4; ++four) {
    if (count <= 4 * four) break;
    const bool partly = count < 4 * four + 4;
    const std::uint32_t low = words[2 + 2 * four] | (partly ? fill_low : 0u);
    const std::uint32_t high = words[3 + 2 * four] | (partly ? fill_high : 0u);
    sums.add(point(low), point(low >> 16), point(high), point(high >> 16));
  }
  return sums.sums();
}

// Warps, copies of the table, and blocks that are to fit an SM.
template <unsigned warps, unsigned copies, unsigned blocks>
struct RecordFitter {
  static constexpr unsigned kThreads = 32 * warps;
  static constexpr unsigned kBlocksAnSm = blocks;

  struct Shared {
    uint4 tiles[warps][32 * 4];
    PackedPoint points[rich::kPmPointRows * copies];
    InverseCount inverses[kRecordHitsMax + 1];
  };

  __device__ static void fit(Shared& shared, const RecordBatch& batch, const PackedPoint* packed) {
    const unsigned lane = threadIdx.x & 31u;
    uint4* const tile = shared.tiles[threadIdx.x / 32];
    const std::uint32_t tiles = (batch.count + 31) / 32;
    const std::uint32_t step = gridDim.x * warps;
    std::uint32_t at = blockIdx.x * warps + threadIdx.x / 32;
    if (at < tiles) fetch(tile, batch, at);
    for (std::uint32_t k = threadIdx.x; k < rich::kPmPointRows * copies; k += kThreads) shared.points[k] = packed[k / copies];
    for (std::uint32_t n = threadIdx.x; n <= kRecordHitsMax; n += kThreads) shared.inverses[n] = inverse_count(static_cast<int>(n));
    __syncthreads();
    for (; at < tiles; at += step) {
      asm volatile("cp.async.wait_all;" ::: "memory");
      __syncwarp();
      uint4 pieces[4];
#pragma unroll
      for (unsigned piece = 0; piece < 4; ++piece) pieces[piece] = tile[place_of(lane, piece)];
      __syncwarp();
      if (at + step < tiles) fetch(tile, batch, at + step);
      const FittedCircle circle = fit_one(shared, pieces, lane);
      const std::uint32_t record = 32 * at + lane;
      if (record < batch.count)
        __stcs(reinterpret_cast<float4*>(batch.circles) + record,
               make_float4(circle.x_mm, circle.y_mm, circle.radius_mm, circle.rms_mm));
    }
  }

 private:
  __device__ static unsigned place_of(unsigned record, unsigned piece) { return 4 * record + (piece ^ (record >> 1 & 3u)); }

  // Starts the copy of a tile.
  __device__ static void fetch(uint4* tile, const RecordBatch& batch, std::uint32_t at) {
    const unsigned lane = threadIdx.x & 31u;
    const auto* from = reinterpret_cast<const uint4*>(batch.records) + std::uint64_t{at} * 128 + lane;
    const std::uint32_t left = 4 * (batch.count - 32 * at);  // pieces
#pragma unroll
    for (unsigned n = 0; n < 4; ++n) {
      const unsigned record = (32 * n + lane) / 4;
      const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile + place_of(record, lane & 3u)));
      if (32 * n + lane < left) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from + 32 * n) : "memory");
    }
  }

  __device__ static FittedCircle fit_one(const Shared& shared, const uint4 (&pieces)[4], unsigned lane) {
    std::uint32_t words[16];
#pragma unroll
    for (unsigned piece = 0; piece < 4; ++piece) {
      words[4 * piece] = pieces[piece].x;
      words[4 * piece + 1] = pieces[piece].y;
      words[4 * piece + 2] = pieces[piece].z;
      words[4 * piece + 3] = pieces[piece].w;
    }
    const std::uint32_t hit_count = words[1] >> 8 & 0xffu;
    const std::uint32_t count = hit_count < kRecordHitsMax ? hit_count : kRecordHitsMax;
    const rich::RingSums sums = sum_record(
        words, count, [&](std::uint32_t hit) { return shared.points[(hit & 1023u) * copies + (lane & (copies - 1))]; });
    const std::int32_t hits = rich::hit_count(sums);
    FittedCircle circle;
    fast_solve(sums, hits, shared.inverses[hits], circle);
    return circle;
  }
};

template <class Fitter>
__global__ void __launch_bounds__(Fitter::kThreads, Fitter::kBlocksAnSm) fit_records(RecordBatch batch, const PackedPoint* packed) {
  extern __shared__ uint4 memory[];
  Fitter::fit(*reinterpret_cast<typename Fitter::Shared*>(memory), batch, packed);
}

template <class Fitter>
cudaError_t launch_fit(const RecordBatch& batch, const PackedPoint* packed, cudaStream_t stream) {
  int device = 0;
  int processors = 0;
  const auto kernel = fit_records<Fitter>;
  const auto bytes = static_cast<int>(sizeof(typename Fitter::Shared));
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess) error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  kernel<<<static_cast<unsigned>(processors) * Fitter::kBlocksAnSm, Fitter::kThreads, bytes, stream>>>(batch, packed);
  return cudaGetLastError();
}

}  // namespace nanet::gpu
