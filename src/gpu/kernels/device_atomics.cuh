// SPDX-License-Identifier: Apache-2.0
// DeviceAtomics: what event::PartTable needs of a GPU, for all its threads; and the commit of a warp's books.
#pragma once

#include <cuda/atomic>

#include "event/part_table.hpp"

namespace nanet::gpu {

struct DeviceAtomics {
  template <class Word>
  using Ref = cuda::atomic_ref<Word, cuda::thread_scope_device>;

  template <class Word>
  NANET_HD static Word load(Word& word) {
    return Ref<Word>(word).load(cuda::memory_order_relaxed);
  }
  template <class Word>
  NANET_HD static void store(Word& word, Word value) {
    Ref<Word>(word).store(value, cuda::memory_order_relaxed);
  }
  NANET_HD static bool compare_exchange(std::uint64_t& word, std::uint64_t& expected, std::uint64_t desired) {
    return Ref<std::uint64_t>(word).compare_exchange_strong(expected, desired, cuda::memory_order_relaxed);
  }
  template <class Word>
  NANET_HD static Word fetch_add(Word& word, Word value) {
    return Ref<Word>(word).fetch_add(value, cuda::memory_order_relaxed);
  }
  template <class Word>
  NANET_HD static void fetch_max(Word& word, Word value) {
    Ref<Word>(word).fetch_max(value, cuda::memory_order_relaxed);
  }
};

using DevicePartTable = event::PartTable<DeviceAtomics>;

// commit() of all 32 lanes' tallies at once, which must all call: one atomic addition a count instead of 32.
__device__ inline void commit_warp(const DevicePartTable& table, event::PartTally& tally) {
  for (std::uint32_t& count : tally.counts) {
    const std::uint32_t sum = __reduce_add_sync(0xffffffffu, count);
    count = (threadIdx.x & 31u) == 0 ? sum : 0u;
  }
  table.commit(tally);
}

}  // namespace nanet::gpu
