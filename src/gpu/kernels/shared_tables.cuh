// SPDX-License-Identifier: Apache-2.0
// SharedTables<Finder>: what a block keeps in shared memory of the finders' tables, for finders that ask for it.
//   Finder::kPackedInShared   the packed points (4 KiB)
//   Finder::kCellsInShared    the cells of distance histograms (1.2 KiB)
//   Finder::kMixtureInShared  what follows from the cuts of the mixture finder
// A kernel has one for each block, calls load() with all of its threads, and gives the tables that it returns to TeamFinder::find.
#pragma once

#include <cstdint>

#include "gpu/kernels/tables.hpp"
#include "nanet/rich/finder.hpp"

namespace nanet::gpu {

template <class T, std::uint32_t rows, bool kept>
struct SharedTable {
  static constexpr bool kKept = kept;
  __device__ const T* load(const T* from, std::uint32_t) { return from; }
};

template <class T, std::uint32_t rows>
struct SharedTable<T, rows, true> {
  static constexpr bool kKept = true;
  static_assert(rows * sizeof(T) % 16 == 0);
  __device__ const T* load(const T* from, std::uint32_t threads) {
    for (std::uint32_t k = threadIdx.x; k < rows * sizeof(T) / 16; k += threads) copy[k] = reinterpret_cast<const uint4*>(from)[k];
    return reinterpret_cast<const T*>(copy);
  }
  uint4 copy[rows * sizeof(T) / 16];
};

template <bool kept>
struct SharedSetup {};

template <>
struct SharedSetup<true> {
  // In shared memory no constructor runs.
  union {
    rich::MixtureSetup setup;
  };
  __device__ SharedSetup() {}
};

template <class Finder>
struct SharedTables {
  static constexpr bool kPacked = [] {
    if constexpr (requires { Finder::kPackedInShared; }) return Finder::kPackedInShared;
    return false;
  }();
  static constexpr bool kCells = [] {
    if constexpr (requires { Finder::kCellsInShared; }) return Finder::kCellsInShared;
    return false;
  }();

  static constexpr bool kMixture = [] {
    if constexpr (requires { Finder::kMixtureInShared; }) return Finder::kMixtureInShared;
    return false;
  }();

  // Waits for all of the block's threads.
  __device__ DeviceTables load(const rich::FinderConfig& config, const DeviceTables& tables, std::uint32_t threads) {
    DeviceTables near{tables.points, packed.load(tables.packed, threads), cells.load(tables.cells, threads)};
    if constexpr (kMixture) {
      if (threadIdx.x == 0) mixture.setup = rich::prepare_mixture(config.mixture);
      near.mixture = &mixture.setup;
    }
    if constexpr (kPacked || kCells || kMixture) __syncthreads();
    return near;
  }

  SharedTable<PackedPoint, rich::kPmPointRows, kPacked> packed;
  SharedTable<std::uint16_t, kCellRows, kCells> cells;
  SharedSetup<kMixture> mixture;
};

}  // namespace nanet::gpu
