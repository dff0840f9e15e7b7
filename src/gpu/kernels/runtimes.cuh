// SPDX-License-Identifier: Apache-2.0
// The two ways to get at a buffer: a kernel for one buffer, and a resident kernel that waits for buffers itself.
//
// Resident kernel: groups of blocks, a group a buffer in flight; group g takes buffers g, g + group_count, ... Its first block leads: one warp polls the completion
// queue, the host's words and the TX ring's consumer index with a single load instruction, and relays what the others need to know
// through device memory, which they poll (a load from there takes a third of one over PCIe, and PCIe stays free for the data).
#pragma once

#include "gpu/kernels/buffer_work.cuh"

namespace nanet::gpu {

inline constexpr std::uint32_t kLeaderLanes = 4;  // of the polling load: completion, host's words, the group's last buffer, TX ring

__device__ inline BufferWord buffer_word(uint4 v) {
  BufferWord word;
  const std::uint32_t two[2] = {v.x, v.y};
  memcpy(&word, two, sizeof word);
  return word;
}

__device__ inline std::uint64_t first_half(uint4 v) { return v.x | std::uint64_t{v.y} << 32; }
__device__ inline std::uint64_t second_half(uint4 v) { return v.z | std::uint64_t{v.w} << 32; }

// What a block knows of the next buffer.
struct Next {
  Item item;
  bool stop;
};

// Which descriptors are the next buffer's: said from group to group, in the order of the buffers. False: the host wants an end at once.
__device__ inline bool take_turn(const Work& work, std::uint64_t number, std::uint64_t& tx_first) {
  Order& order = *work.order;
  while (load_acquire_gpu(&order.planned) != number) {
    if (load_relaxed_gpu(&order.abort) != 0) return false;
  }
  tx_first = load_relaxed_gpu(&order.tx_first);
  return true;
}

__device__ inline void pass_turn(const Work& work, std::uint64_t number, std::uint64_t tx_first) {
  work.order->tx_first = tx_first;
  store_release_gpu(&work.order->planned, number + 1);
}

// The leading warp waits for completion `number`, for the end of the group's buffer before (known: its number + 1), when no block needs
// the relay any more, and for room in the TX ring. All lanes get the same. tx_next: the next descriptor, if there is one group only.
__device__ inline Next wait_for_completion(const Work& work, const Group& group, std::uint64_t number, std::uint64_t known,
                                           std::uint64_t tx_next) {
  const std::uint32_t lane = threadIdx.x % 32;
  const bool alone = work.group_count == 1;
  const Completion& entry = work.completions[number & work.completion_mask];
  const void* const places[kLeaderLanes] = {&entry.buffer_index, work.words, &group.done, &work.tx_indexes->consumed};
  const void* const place = places[lane < kLeaderLanes ? lane : 0];
  const bool polling = lane < (work.descriptors != nullptr ? kLeaderLanes : kLeaderLanes - 1);
  Next next{};
  next.item.number = number;
  next.item.tx_first = tx_next;
  bool mine = alone;  // it is this group's turn: tx_first is known
  for (;;) {
    const uint4 seen = polling ? load_relaxed_sys16(place) : uint4{};
    const std::uint64_t sequence = __shfl_sync(0xffffffffu, second_half(seen), 0);
    const auto stop = static_cast<Stop>(__shfl_sync(0xffffffffu, seen.x, 1));
    const bool rested = __shfl_sync(0xffffffffu, first_half(seen), 2) == known;
    if (stop == Stop::now || (rested && stop == Stop::when_idle && sequence != number + 1)) {
      if (stop == Stop::now && lane == 0) atomicExch(&work.order->abort, 1u);
      next.stop = true;
      return next;
    }
    if (sequence != number + 1 || !rested) continue;
    const std::uint64_t word_bits = __shfl_sync(0xffffffffu, first_half(seen), 0);
    next.item.word = buffer_word({static_cast<std::uint32_t>(word_bits), static_cast<std::uint32_t>(word_bits >> 32), 0, 0});
    if (!mine && !take_turn(work, number, next.item.tx_first)) {
      next.stop = true;
      return next;
    }
    mine = true;
    const std::uint64_t tx_end = next.item.tx_first + plan_chunks(next.item.word).chunks;
    const std::uint64_t consumed = __shfl_sync(0xffffffffu, first_half(seen), 3);
    if (work.descriptors != nullptr && tx_end > consumed + work.tx_mask + 1) continue;
    return next;
  }
}

// Two pieces of 16 bytes, each with a tag that tells whether it is new: no order between them is needed.
__device__ inline void relay(Group& group, const Next& next) {
  const std::uint32_t lane = threadIdx.x % 32;
  const auto tag = static_cast<std::uint32_t>(next.item.number) + 1;
  std::uint32_t word[2];
  memcpy(word, &next.item.word, sizeof word);
  const auto tx_first = next.item.tx_first;
  const uint4 piece = lane == 0 ? uint4{tag, word[0], word[1], 0}
                                : uint4{tag, static_cast<std::uint32_t>(tx_first), static_cast<std::uint32_t>(tx_first >> 32),
                                        next.stop ? 1u : 0u};
  if (lane < 2) store_relaxed_gpu16(group.relay + 4 * lane, piece);
}

// The first warp of another block waits for news after `number_before` (of the buffer it knew last; its number + 1, 0 at first).
__device__ inline Next wait_for_relay(const Group& group, std::uint64_t number_before) {
  const std::uint32_t lane = threadIdx.x % 32;
  const auto tag_before = static_cast<std::uint32_t>(number_before);
  for (;;) {
    const uint4 seen = lane < 2 ? load_relaxed_gpu16(group.relay + 4 * lane) : uint4{};
    const std::uint32_t tag = __shfl_sync(0xffffffffu, seen.x, 0);
    if (tag == tag_before || tag != __shfl_sync(0xffffffffu, seen.x, 1)) continue;
    Next next{};
    next.item.number = number_before + (tag - tag_before) - 1;
    next.item.word = buffer_word({__shfl_sync(0xffffffffu, seen.y, 0), __shfl_sync(0xffffffffu, seen.z, 0), 0, 0});
    next.item.tx_first = __shfl_sync(0xffffffffu, seen.y, 1) | std::uint64_t{__shfl_sync(0xffffffffu, seen.z, 1)} << 32;
    next.stop = __shfl_sync(0xffffffffu, seen.w, 1) != 0;
    return next;  // loads of the buffer cannot begin before this one has come back
  }
}

template <rich::FinderKind kind>
__global__ void __launch_bounds__(TeamFinder<kind>::kThreads)
    run_persistent(const __grid_constant__ rich::FinderConfig config, const DeviceTables tables, const __grid_constant__ Work work) {
  extern __shared__ __align__(128) unsigned char dynamic[];
  auto& memory = *reinterpret_cast<BlockMemory<kind>*>(dynamic);
  __shared__ Next next;
  constexpr std::uint32_t kThreads = TeamFinder<kind>::kThreads;
  const std::uint32_t rank = blockIdx.x % work.group_blocks;
  const std::uint32_t group_index = blockIdx.x / work.group_blocks;
  Group& group = work.groups[group_index];
  std::uint64_t known = 0;  // number of the buffer known last, + 1
  std::uint64_t tx_next = load_relaxed_gpu(&work.order->tx_first);
  clear_books<kThreads>(memory.chunk);
  const DeviceTables near = memory.tables.load(tables, kThreads);
  for (std::uint64_t number = work.first_number + group_index;; number += work.group_count) {
    if (threadIdx.x < 32) {
      const Next found = rank == 0 ? wait_for_completion(work, group, number, known, tx_next) : wait_for_relay(group, known);
      if (rank == 0) relay(group, found);
      tx_next = found.item.tx_first + plan_chunks(found.item.word).chunks;
      if (rank == 0 && work.group_count > 1 && threadIdx.x == 0 && !found.stop) pass_turn(work, number, tx_next);
      if (threadIdx.x == 0) {
        next = found;
        const DeviceClop& clop = work.clops[found.item.word.clop];
        next.item.buffer = clop.buffers + std::uint64_t{found.item.word.buffer_index} * clop.buffer_bytes;
      }
    }
    __syncthreads();
    const Item item = next.item;
    if (next.stop) return;
    known = item.number + 1;
    const std::uint32_t ranks = min(work.group_blocks, plan_chunks(item.word).chunks);
    if (rank < ranks) {
      work_on_chunks<kind>(config, near, work, item, rank, ranks, memory);
      arrive(work, item, group, ranks);
      give_books<kThreads>(work, memory.chunk);
    }
    __syncthreads();  // before `next` is written again
  }
}

// One buffer; `ranks` blocks.
template <rich::FinderKind kind>
__global__ void __launch_bounds__(TeamFinder<kind>::kThreads)
    run_item(const __grid_constant__ rich::FinderConfig config, const DeviceTables tables, const __grid_constant__ Work work,
             const Item item) {
  extern __shared__ __align__(128) unsigned char dynamic[];
  auto& memory = *reinterpret_cast<BlockMemory<kind>*>(dynamic);
  constexpr std::uint32_t kThreads = TeamFinder<kind>::kThreads;
  Group& group = work.groups[item.number % work.group_count];
  clear_books<kThreads>(memory.chunk);
  const DeviceTables near = memory.tables.load(tables, kThreads);
  __syncthreads();
  work_on_chunks<kind>(config, near, work, item, blockIdx.x, gridDim.x, memory);
  arrive(work, item, group, gridDim.x);
  give_books<kThreads>(work, memory.chunk);
}

}  // namespace nanet::gpu
