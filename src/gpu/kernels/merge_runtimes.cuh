// SPDX-License-Identifier: Apache-2.0
// The two methods of getting a round of event building, as runtimes.cuh for buffers: a kernel for one round, and a resident kernel whose first
// block waits for rounds and tells the others.
#pragma once

#include "gpu/kernels/merge_work.cuh"
#include "gpu/kernels/runtimes.cuh"

namespace nanet::gpu {

// What the leading warp knows from round to round.
struct MergeLeader {
  std::uint64_t number;            // of the next completion
  std::uint64_t caught_up_ns = 0;  // everything that had arrived by then was worked on
  std::uint32_t index = 0;         // of the round before
};

// Blocks for a round without a buffer: as many as have something to do.
__device__ inline std::uint16_t ranks_for(const Work& work, std::uint32_t things, std::uint32_t threads) {
  return static_cast<std::uint16_t>(min(work.group_blocks, 1 + things / threads));
}

// The leading warp waits for a completion, for open events that are due while none is there, or for the end; and before that for the end of the
// round before, when no block needs the relay any more. All lanes get the same.
template <std::uint32_t threads>
__device__ inline Round wait_for_work(const Work& work, const MergeWork& merge, MergeLeader& leader) {
  const std::uint32_t lane = threadIdx.x % 32;
  const DevicePartTable table(merge.config, merge.table);
  const event::PartTableState& state = *merge.table.state;
  const Completion& entry = work.completions[leader.number & work.completion_mask];
  const void* place = &entry.buffer_index;
  if (lane == 1) place = work.words;
  if (lane == 2) place = &merge.group->done;
  Round round;
  round.index = leader.index + 1;
  round.number = leader.number;
  round.caught_up_ns = leader.caught_up_ns;
  std::uint64_t said_ns = 0;  // by the host, when it was looked at last
  std::uint32_t open = 0;
  std::uint32_t span = 0;
  std::uint64_t oldest_ns = 0;
  for (bool rested = false, looked = false;;) {
    const uint4 seen = lane < kLeaderLanes ? load_relaxed_sys16(place) : uint4{};
    const auto stop = static_cast<Stop>(__shfl_sync(0xffffffffu, seen.x, 1));
    if (stop == Stop::now) {
      if (lane == 0) atomicExch(&work.order->abort, 1u);
      return round;
    }
    if (!rested) {
      rested = __shfl_sync(0xffffffffu, seen.x, 2) == leader.index;
      if (!rested) continue;
      // What the round before left. It was lane 2 that saw its end, and a shuffle orders no memory: the barrier takes that on to the lanes that
      // look at the table and to those that tell the other blocks.
      fence_gpu();
      __syncwarp();
    }
    if (__shfl_sync(0xffffffffu, seen.w, 0) == static_cast<std::uint32_t>(leader.number + 1)) {
      round.kind = RoundKind::buffer;
      round.word = buffer_word({__shfl_sync(0xffffffffu, seen.x, 0), __shfl_sync(0xffffffffu, seen.y, 0), 0, 0});
      round.ranks = static_cast<std::uint16_t>(min(work.group_blocks, max(plan_chunks(round.word).chunks, 1u)));
      return round;
    }
    // Nothing is there, and what the host said before this look holds.
    if (said_ns > leader.caught_up_ns) leader.caught_up_ns = round.caught_up_ns = said_ns;
    said_ns = __shfl_sync(0xffffffffu, second_half(seen), 1);
    if (!looked) {
      looked = true;
      open = table.open_count();
      oldest_ns = load_relaxed_gpu(&state.oldest_ns);
      span = load_relaxed_gpu(&state.next) - load_relaxed_gpu(&state.oldest);
    }
    if (stop == Stop::when_idle) {
      if (open == 0) return round;
      round.kind = RoundKind::drain;
      round.ranks = ranks_for(work, event::part_table_slots(merge.config), threads);
      return round;
    }
    const auto age_ns = static_cast<std::int64_t>(round.caught_up_ns - oldest_ns);
    if (open == 0 || age_ns < static_cast<std::int64_t>(merge.config.window_ns)) continue;
    round.kind = RoundKind::tick;
    round.ranks = ranks_for(work, span, threads);
    return round;
  }
}

// Two pieces of 16 bytes, each with the round's index: no order between them is needed.
__device__ inline void relay(MergeGroup& group, const Round& round) {
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint32_t word[2];
  memcpy(word, &round.word, sizeof word);
  const uint4 piece = lane == 0 ? uint4{round.index, word[0], word[1], static_cast<std::uint32_t>(round.kind) << 16 | round.ranks}
                                : uint4{round.index, static_cast<std::uint32_t>(round.caught_up_ns),
                                        static_cast<std::uint32_t>(round.caught_up_ns >> 32), 0};
  if (lane < 2) store_relaxed_gpu16(group.relay + 4 * lane, piece);
}

// The first warp of another block waits for a round after `index`. It may miss those in which it takes no part.
__device__ inline Round wait_for_round(const MergeGroup& group, std::uint32_t index) {
  const std::uint32_t lane = threadIdx.x % 32;
  for (;;) {
    const uint4 seen = lane < 2 ? load_relaxed_gpu16(group.relay + 4 * lane) : uint4{};
    Round round;
    round.index = __shfl_sync(0xffffffffu, seen.x, 0);
    if (round.index == index || round.index != __shfl_sync(0xffffffffu, seen.x, 1)) continue;
    round.word = buffer_word({__shfl_sync(0xffffffffu, seen.y, 0), __shfl_sync(0xffffffffu, seen.z, 0), 0, 0});
    const std::uint32_t kind_and_ranks = __shfl_sync(0xffffffffu, seen.w, 0);
    round.kind = static_cast<RoundKind>(kind_and_ranks >> 16);
    round.ranks = static_cast<std::uint16_t>(kind_and_ranks);
    round.caught_up_ns = __shfl_sync(0xffffffffu, seen.y, 1) | std::uint64_t{__shfl_sync(0xffffffffu, seen.z, 1)} << 32;
    return round;
  }
}

template <rich::FinderKind kind>
__global__ void __launch_bounds__(TeamFinder<kind>::kThreads)
    run_merge_persistent(const __grid_constant__ rich::FinderConfig config, const DeviceTables tables,
                         const __grid_constant__ Work work, const __grid_constant__ MergeWork merge) {
  extern __shared__ __align__(128) unsigned char dynamic[];
  auto& memory = *reinterpret_cast<MergeMemory<kind>*>(dynamic);
  constexpr std::uint32_t kThreads = TeamFinder<kind>::kThreads;
  const std::uint32_t rank = blockIdx.x;
  MergeLeader leader{work.first_number};
  clear_books<kThreads>(memory.block.chunk);
  // As if the ring were full: whoever needs a descriptor asks first.
  if (threadIdx.x == 0)
    memory.round.tx_consumed = static_cast<std::uint32_t>(load_relaxed_gpu(&work.order->tx_first)) - work.tx_mask - 1;
  const DeviceTables near = memory.block.tables.load(config, tables, kThreads);
  for (;;) {
    if (threadIdx.x < 32) {
      Round round = rank == 0 ? wait_for_work<kThreads>(work, merge, leader) : wait_for_round(*merge.group, leader.index);
      if (rank == 0) relay(*merge.group, round);
      if (threadIdx.x == 0) {
        const DeviceClop& clop = work.clops[round.word.clop];
        round.buffer = clop.buffers + std::uint64_t{round.word.buffer_index} * clop.buffer_bytes;
        memory.round.round = round;
      }
    }
    __syncthreads();
    const RoundKind what = memory.round.round.kind;
    if (what == RoundKind::stop) return;
    leader.index = memory.round.round.index;
    if (what == RoundKind::buffer) ++leader.number;
    if (rank < memory.round.round.ranks && !work_on_round<kind>(config, near, work, merge, rank, memory)) break;
    __syncthreads();  // before the round is written again
  }
  // The host wants an end at once: those that take part in the round know, and the others are told.
  Round none;
  none.index = leader.index + 1;
  if (rank == 0 && threadIdx.x < 32) relay(*merge.group, none);
}

// One round, by all blocks of the grid.
template <rich::FinderKind kind>
__global__ void __launch_bounds__(TeamFinder<kind>::kThreads)
    run_merge_round(const __grid_constant__ rich::FinderConfig config, const DeviceTables tables, const __grid_constant__ Work work,
                    const __grid_constant__ MergeWork merge, const Round round) {
  extern __shared__ __align__(128) unsigned char dynamic[];
  auto& memory = *reinterpret_cast<MergeMemory<kind>*>(dynamic);
  constexpr std::uint32_t kThreads = TeamFinder<kind>::kThreads;
  clear_books<kThreads>(memory.block.chunk);
  if (threadIdx.x == 0) {
    memory.round.round = round;
    memory.round.tx_consumed = round.tx_consumed;
  }
  const DeviceTables near = memory.block.tables.load(config, tables, kThreads);
  __syncthreads();
  work_on_round<kind>(config, near, work, merge, blockIdx.x, memory);
}

}  // namespace nanet::gpu
