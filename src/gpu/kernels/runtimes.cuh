// SPDX-License-Identifier: Apache-2.0
// The two methods of getting a buffer: a kernel for one buffer, and a resident kernel that waits for buffers itself.
//
// Resident kernel: groups of blocks, a group a buffer in flight; group g takes buffers g, g + group_count, ... Its first block leads: one warp polls the completion
// queue, the host's words and the TX ring's consumer index with a single load instruction, and relays what the others need to know
// through device memory, which they poll (a load from there takes a third of one over PCIe, and PCIe stays free for the data).
#pragma once

#include "gpu/kernels/buffer_work.cuh"

namespace nanet::gpu {

inline constexpr std::uint32_t kLeaderLanes = 3;  // of the polling load: completion, host's words, the group's last buffer

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

// What a leading warp knows from buffer to buffer.
struct Leader {
  std::uint64_t known = 0;        // number of the group's buffer before, + 1
  std::uint64_t tx_next = 0;      // the next descriptor, if there is one group only
  std::uint64_t tx_consumed = 0;  // descriptors that the host had sent when it was asked
};

// Whether the buffer's descriptors have a place in the TX ring, before the host wants an end at once.
__device__ inline bool wait_for_room(const Work& work, std::uint32_t group_index, const Item& item, Leader& leader) {
  if (work.descriptors == nullptr) return true;
  const std::uint64_t end = item.tx_first + plan_chunks(item.word).chunks;
  while (end > leader.tx_consumed + work.tx_mask + 1) {
    leader.tx_consumed = load_relaxed_sys(&work.tx_indexes->consumed);
    if (static_cast<Stop>(load_relaxed_sys(&work.words[group_index].stop)) != Stop::now) continue;
    atomicExch(&work.order->abort, 1u);
    return false;
  }
  return true;
}

// Of the time of which `low` is the low half, the one nearest to now.
__device__ inline std::uint64_t whole_time(std::uint32_t low, std::uint64_t now_ns) {
  return now_ns +
         static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(low - static_cast<std::uint32_t>(now_ns))));
}

// The leading warp waits for completion `number`, for the end of the group's buffer before, when no block needs the relay any more, and for room
// in the TX ring. All lanes get the same.
__device__ inline Next wait_for_completion(const Work& work, std::uint32_t group_index, std::uint64_t number, Leader& leader) {
  const std::uint32_t lane = threadIdx.x % 32;
  const Completion& entry = work.completions[number & work.completion_mask];
  const void* place = &entry.buffer_index;
  if (lane == 1) place = work.words + group_index;
  if (lane == 2) place = &work.groups[group_index].done;
  Next next{};
  next.item.number = number;
  for (;;) {
    const uint4 seen = lane < kLeaderLanes ? load_relaxed_sys16(place) : uint4{};
    const std::uint32_t sequence = __shfl_sync(0xffffffffu, seen.w, 0);
    const auto stop = static_cast<Stop>(__shfl_sync(0xffffffffu, seen.x, 1));
    const bool rested = __shfl_sync(0xffffffffu, first_half(seen), 2) == leader.known;
    const bool there = sequence == static_cast<std::uint32_t>(number + 1);
    if (stop == Stop::now || (rested && stop == Stop::when_idle && !there)) {
      if (stop == Stop::now && lane == 0) atomicExch(&work.order->abort, 1u);
      next.stop = true;
      return next;
    }
    if (!there || !rested) continue;
    next.item.word = buffer_word({__shfl_sync(0xffffffffu, seen.x, 0), __shfl_sync(0xffffffffu, seen.y, 0), 0, 0});
    next.item.arrival_ns = whole_time(__shfl_sync(0xffffffffu, seen.z, 0), __shfl_sync(0xffffffffu, second_half(seen), 1));
    break;
  }
  next.item.tx_first = leader.tx_next;
  next.stop = (work.group_count > 1 && !take_turn(work, number, next.item.tx_first)) ||
              !wait_for_room(work, group_index, next.item, leader);
  return next;
}

// Two pieces of 16 bytes, each with a tag that tells whether it is new: no order between them is needed.
__device__ inline void relay(Group& group, const Next& next) {
  const std::uint32_t lane = threadIdx.x % 32;
  const auto tag = static_cast<std::uint32_t>(next.item.number) + 1;
  const Item& item = next.item;
  const std::uint64_t tx_first_and_stop = item.tx_first << 1 | (next.stop ? 1u : 0u);
  std::uint32_t word[2];
  memcpy(word, &item.word, sizeof word);
  const uint4 piece = lane == 0 ? uint4{tag, word[0], word[1], static_cast<std::uint32_t>(item.arrival_ns)}
                                : uint4{tag, static_cast<std::uint32_t>(tx_first_and_stop),
                                        static_cast<std::uint32_t>(tx_first_and_stop >> 32),
                                        static_cast<std::uint32_t>(item.arrival_ns >> 32)};
  if (lane < 2) store_relaxed_gpu16(group.relay + 4 * lane, piece);
}

// The first warp of another block waits for news after `known` (number of the buffer that it knew last, + 1; 0 at first).
__device__ inline Next wait_for_relay(const Group& group, std::uint64_t known) {
  const std::uint32_t lane = threadIdx.x % 32;
  const auto tag_before = static_cast<std::uint32_t>(known);
  for (;;) {
    const uint4 seen = lane < 2 ? load_relaxed_gpu16(group.relay + 4 * lane) : uint4{};
    const std::uint32_t tag = __shfl_sync(0xffffffffu, seen.x, 0);
    if (tag == tag_before || tag != __shfl_sync(0xffffffffu, seen.x, 1)) continue;
    const std::uint64_t tx_first_and_stop = __shfl_sync(0xffffffffu, seen.y, 1) | std::uint64_t{__shfl_sync(0xffffffffu, seen.z, 1)}
                                                                                      << 32;
    Next next{};
    next.item.number = known + (tag - tag_before) - 1;
    next.item.word = buffer_word({__shfl_sync(0xffffffffu, seen.y, 0), __shfl_sync(0xffffffffu, seen.z, 0), 0, 0});
    next.item.arrival_ns = __shfl_sync(0xffffffffu, seen.w, 0) | std::uint64_t{__shfl_sync(0xffffffffu, seen.w, 1)} << 32;
    next.item.tx_first = tx_first_and_stop >> 1;
    next.stop = (tx_first_and_stop & 1) != 0;
    return next;  // loads of the buffer cannot begin before this one has come back
  }
}

template <rich::FinderKind kind, bool in_place>
__global__ void __launch_bounds__(TeamFinder<kind>::kThreads, 1)
    run_persistent(const __grid_constant__ rich::FinderConfig config, const DeviceTables tables, const __grid_constant__ Work work) {
  extern __shared__ __align__(128) unsigned char dynamic[];
  auto& memory = *reinterpret_cast<BlockMemory<kind>*>(dynamic);
  __shared__ Next next;
  constexpr std::uint32_t kThreads = TeamFinder<kind>::kThreads;
  const std::uint32_t rank = blockIdx.x % work.group_blocks;
  const std::uint32_t group_index = blockIdx.x / work.group_blocks;
  Group& group = work.groups[group_index];
  Leader leader;  // of a block that does not lead, only `known`
  leader.tx_next = load_relaxed_gpu(&work.order->tx_first);
  clear_books<kThreads>(memory.chunk);
  const DeviceTables near = memory.tables.load(config, tables, kThreads);
  for (std::uint64_t number = work.first_number + group_index;; number += work.group_count) {
    if (threadIdx.x < 32) {
      const Next found = rank == 0 ? wait_for_completion(work, group_index, number, leader) : wait_for_relay(group, leader.known);
      if (rank == 0) relay(group, found);
      if (threadIdx.x == 0) {
        next = found;
        const DeviceClop& clop = work.clops[found.item.word.clop];
        next.item.buffer = clop.buffers + std::uint64_t{found.item.word.buffer_index} * clop.buffer_bytes;
      }
    }
    __syncthreads();
    const Item item = next.item;
    if (next.stop) return;
    const std::uint32_t chunks = plan_chunks(item.word).chunks;
    leader.known = item.number + 1;
    leader.tx_next = item.tx_first + chunks;
    if (rank == 0 && work.group_count > 1 && threadIdx.x == 0) pass_turn(work, number, leader.tx_next);
    const std::uint32_t ranks = min(work.group_blocks, chunks);
    if (rank < ranks) {
      work_on_chunks<kind, in_place>(config, near, work, item, rank, ranks, memory);
      arrive<in_place>(work, item, group, ranks);
      give_books<kThreads, in_place>(work, memory.chunk);
    }
    __syncthreads();  // before `next` is written again
  }
}

// One buffer; `ranks` blocks.
template <rich::FinderKind kind>
__global__ void __launch_bounds__(TeamFinder<kind>::kThreads, 1)
    run_item(const __grid_constant__ rich::FinderConfig config, const DeviceTables tables, const __grid_constant__ Work work,
             const Item item) {
  extern __shared__ __align__(128) unsigned char dynamic[];
  auto& memory = *reinterpret_cast<BlockMemory<kind>*>(dynamic);
  constexpr std::uint32_t kThreads = TeamFinder<kind>::kThreads;
  Group& group = work.groups[item.number % work.group_count];
  clear_books<kThreads>(memory.chunk);
  const DeviceTables near = memory.tables.load(config, tables, kThreads);
  __syncthreads();
  work_on_chunks<kind, true>(config, near, work, item, blockIdx.x, gridDim.x, memory);
  arrive<true>(work, item, group, gridDim.x);
  give_books<kThreads, true>(work, memory.chunk);
}

}  // namespace nanet::gpu
