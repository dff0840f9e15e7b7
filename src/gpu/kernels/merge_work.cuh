// SPDX-License-Identifier: Apache-2.0
// A block's work in a round of event building: parts of a buffer -> the table of events -> those that are complete or due -> rings -> answers.
// docs/design/gpu-merge.md tells the phases and what the barriers are for.
//
// All threads of a block call these functions together, except where one warp or one thread is said to. A function that returns bool says
// false when the host wants an end at once; then the block returns from the kernel.
//
// What other blocks wrote is read after a barrier of the round (meet), or with loads that go to the second-level cache: before the round's first barrier
// there are only such.
#pragma once

#include "gpu/kernels/buffer_work.cuh"
#include "gpu/kernels/device_atomics.cuh"
#include "gpu/kernels/team.cuh"
#include "gpu/merge_layout.hpp"

namespace nanet::gpu {

inline constexpr unsigned kPartLanes = 4;  // that copy a part's hits; one of them finds the place

struct RoundMemory {
  event::PartTableState near;  // the table's state after the barrier passed last
  Round round;
  std::uint64_t tx_first;    // number of the next descriptor, likewise
  std::uint64_t arrival_ns;  // of the buffer's newest packet; the answers' tag
  std::uint64_t add_ns;      // now, for the table
  std::uint64_t expire_ns;   // everything that had arrived by then is in the table when the buffer is
  std::uint32_t tx_consumed;  // descriptors that the sender had done with when it was asked last, modulo 2^32; stays from round to round
  std::uint32_t status;       // of the completion
  std::uint32_t sources;  // bit s: source s has sent data in this run; before this buffer, or before the split
  std::uint32_t split;    // packet with which a new run begins
  std::uint32_t part_source[kChunkPacketsMax];  // of the staged packets
};

template <rich::FinderKind kind>
struct MergeMemory {
  BlockMemory<kind> block;
  RoundMemory round;
};

// A block that takes part in a round.
struct Member {
  const Work& work;
  const MergeWork& merge;
  const Round& round;
  RoundMemory& shared;
  std::uint32_t rank;
  std::uint32_t arrivals = 0;  // of all blocks at the barriers so far

  __device__ DevicePartTable table() const { return {merge.config, merge.table}; }
};

template <std::uint32_t threads>
__device__ inline event::Share share_of(const Member& me) {
  return {me.rank * threads + threadIdx.x, me.round.ranks * threads};
}

// For each turn of a loop that waits. One block asks the host, the others are told.
__device__ inline bool must_end(const Work& work, bool asks_host, std::uint32_t& turns) {
  if (++turns % 32 != 0) return false;
  if (asks_host && static_cast<Stop>(load_relaxed_sys(&work.words->stop)) == Stop::now) atomicExch(&work.order->abort, 1u);
  return load_relaxed_gpu(&work.order->abort) != 0;
}

// Thread 0.
__device__ inline bool wait_for_others(const Member& me) {
  if (me.round.ranks > 1) {
    fence_gpu();
    std::uint32_t arrived = add_relaxed_gpu(&me.merge.group->arrived, 1) + 1;
    for (std::uint32_t turns = 0; static_cast<std::int32_t>(arrived - me.arrivals) < 0;) {
      if (must_end(me.work, me.rank == 0, turns)) return false;
      arrived = load_relaxed_gpu(&me.merge.group->arrived);
    }
  }
  fence_gpu();
  return true;
}

// The table's state and the next descriptor, into shared memory by one load. One warp.
__device__ inline void look(const Member& me) {
  constexpr std::uint32_t kPieces = (offsetof(event::PartTableState, totals) + sizeof(event::PartTableState::totals) + 15) / 16;
  static_assert(kPieces < 32 && kPieces * 16 <= sizeof(event::PartTableState));
  const std::uint32_t lane = threadIdx.x % 32;
  if (lane < kPieces) {
    reinterpret_cast<uint4*>(&me.shared.near)[lane] = load_relaxed_gpu16(reinterpret_cast<const uint4*>(me.merge.table.state) + lane);
  } else if (lane == kPieces) {
    me.shared.tx_first = load_relaxed_gpu(&me.work.order->tx_first);
  }
}

// The barrier of the round's blocks: after it each thread sees what any of them wrote before, and shared.near and tx_first are new.
__device__ inline bool meet(Member& me) {
  me.arrivals += me.round.ranks;
  __syncthreads();
  bool ended = false;
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) ended = !wait_for_others(me);
    __syncwarp();
    look(me);
  }
  return __syncthreads_or(ended ? 1 : 0) == 0;
}

// ---- the beginning: what the completion says of times

// Of the buffer's completion: {index, status, arrival}. One warp; all lanes get it. `mine`: what begin_round loaded.
__device__ inline bool learn_head(const Member& me, uint4 mine, uint4& head) {
  const Round& round = me.round;
  if (round.is_told || round.kind != RoundKind::buffer) {
    head = {round.index, round.status, static_cast<std::uint32_t>(round.arrival_ns),
            static_cast<std::uint32_t>(round.arrival_ns >> 32)};
    return true;
  }
  if (me.rank == 0) {
    head = {round.index, __shfl_sync(0xffffffffu, mine.y & 0xFFFFu, 1), __shfl_sync(0xffffffffu, mine.z, 0),
            __shfl_sync(0xffffffffu, mine.w, 0)};
    if (round.ranks > 1 && threadIdx.x == 0) store_relaxed_gpu16(me.merge.group->head, head);
    return true;
  }
  for (std::uint32_t turns = 0;;) {
    const uint4 seen = threadIdx.x == 0 ? load_relaxed_gpu16(me.merge.group->head) : uint4{};
    head = {__shfl_sync(0xffffffffu, seen.x, 0), __shfl_sync(0xffffffffu, seen.y, 0), __shfl_sync(0xffffffffu, seen.z, 0),
            __shfl_sync(0xffffffffu, seen.w, 0)};
    if (head.x == round.index) return true;
    const bool ended = threadIdx.x == 0 && must_end(me.work, false, turns);
    if (__any_sync(0xffffffffu, ended)) return false;
  }
}

__device__ inline std::uint64_t min_of_warp(std::uint64_t value) {
  for (std::uint32_t step = 16; step != 0; step /= 2) {
    const std::uint64_t other = __shfl_xor_sync(0xffffffffu, value, step);
    value = other < value ? other : value;
  }
  return value;
}

// One warp. `seen_ns`: lane c's CLOP.
__device__ inline void set_times(const Member& me, uint4 head, std::uint64_t seen_ns, std::uint64_t clock_ns) {
  const Round& round = me.round;
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint64_t arrival_ns = round.kind == RoundKind::buffer ? head.z | std::uint64_t{head.w} << 32 : round.caught_up_ns;
  if (round.kind == RoundKind::buffer && lane == round.word.clop && seen_ns < arrival_ns) seen_ns = arrival_ns;
  const std::uint64_t all_seen_ns = min_of_warp(seen_ns);
  if (lane != 0) return;
  me.shared.status = head.y;
  me.shared.arrival_ns = arrival_ns;
  me.shared.add_ns = arrival_ns > clock_ns ? arrival_ns : clock_ns;
  me.shared.expire_ns = all_seen_ns > round.caught_up_ns ? all_seen_ns : round.caught_up_ns;
}

// ---- add

// Packets first .. first + count - 1 into m.staged, and their sources.
template <std::uint32_t threads>
__device__ inline void stage_parts(const Member& me, const Item& item, std::uint32_t first, std::uint32_t count, ChunkMemory& m) {
  const DeviceClop& clop = me.work.clops[item.word.clop];
  const PacketRef* const index = clop.index + std::uint64_t{item.word.buffer_index} * clop.index_capacity + first;
  const bool strided = item.word.stride_bytes != 0;  // then nothing else needs the index, and it comes with the packets
  std::uint64_t ref = 0;
  if (strided && threadIdx.x < count) ref = load_relaxed_sys(reinterpret_cast<const std::uint64_t*>(index + threadIdx.x));
  stage_packets<threads, true>(me.work, item, first, count, m);
  if (threadIdx.x >= count) return;
  const std::uint32_t source = strided ? static_cast<std::uint32_t>(ref >> 48) : m.refs[threadIdx.x].source;
  me.shared.part_source[threadIdx.x] = me.merge.first_source[item.word.clop] + (source & PacketRef::source_mask);
}

// Puts the events of the staged packets into the table: a few lanes a part.
template <std::uint32_t threads>
__device__ inline void add_parts(const Member& me, const DevicePartTable& table, const ChunkEvents& events, const ChunkMemory& m,
                                 event::PartTally& tally) {
  using Lanes = Team<kPartLanes>;
  for (std::uint32_t e = threadIdx.x / kPartLanes; e < events.count; e += threads / kPartLanes) {
    const ChunkEvent event = event_of(events, e, m);
    const wire::MgpEvent header = wire::event_from_word(event.header);
    event::PartPlace place;
    if (Lanes::lane() == 0) {
      place = table.place_part(me.shared.part_source[event.packet], event::event_key(header.timestamp, header.fine_time),
                               header.hit_count, me.shared.add_ns, tally);
    }
    const std::uint32_t kept = Lanes::from_lane(place.kept_count, 0);
    auto* const to = reinterpret_cast<std::uint16_t*>(Lanes::from_lane(reinterpret_cast<std::uintptr_t>(place.hits), 0));
    const ChunkPacket& packet = m.packets[threadIdx.x / 32][event.packet];
    const std::byte* const payload = m.staged[event.packet].bytes + packet.first_byte;
    for (std::uint32_t k = Lanes::lane(); k < kept; k += kPartLanes) to[k] = wire::load_hit(payload, packet.head, event.offset, k);
  }
}

// Packets begin .. end - 1, by chunks. `staged`: the block's first chunk is.
template <std::uint32_t threads>
__device__ inline void add_packets(const Member& me, const Item& item, std::uint32_t begin, std::uint32_t end, bool staged,
                                   ChunkMemory& m) {
  const DevicePartTable table = me.table();
  const std::uint32_t packets = plan_chunks(item.word).packets;
  event::PartTally tally;
  std::uint32_t sources = 0;
  for (std::uint32_t first = begin + me.rank * packets; first < end; first += me.round.ranks * packets) {
    const std::uint32_t count = min(packets, end - first);
    if (!staged) {
      __syncthreads();
      stage_parts<threads>(me, item, first, count, m);
      __syncthreads();
    }
    staged = false;
    if (is_in_place<true>(me.work, item)) check_placed<threads>(count, m.staged, m.placed);
    if (threadIdx.x < count) sources |= 1u << me.shared.part_source[threadIdx.x];
    const ChunkEvents events = look_at_packets(item, first, count, m);
    if (!events.all_padded) {
      list_events<threads>(count, m);
      __syncthreads();
    }
    add_parts<threads>(me, table, events, m, tally);
  }
  commit_warp(table, tally);
  static_assert(kChunkPacketsMax <= 32);
  if (threadIdx.x >= 32) return;
  sources = __reduce_or_sync(0xffffffffu, sources) & ~me.shared.sources;
  if (threadIdx.x == 0 && sources != 0) atomicOr(&me.merge.state->sources, sources);
}

// ---- close

enum class Closing { nothing, expire, drain, flush };

// Closes events by all blocks. Of those ready then, the first `complete` are complete and all others are not.
template <std::uint32_t threads>
__device__ inline bool close_events(Member& me, Closing closing, std::uint32_t& complete) {
  complete = me.shared.near.ready_count;
  if (closing == Closing::nothing) return true;
  if (me.merge.drop_incomplete && !meet(me)) return false;  // each block knows how many are complete before more become ready
  const DevicePartTable table = me.table();
  const event::Share share = share_of<threads>(me);
  event::PartTally tally;
  if (closing == Closing::expire) table.expire(me.shared.expire_ns, share, tally);
  if (closing == Closing::drain) table.drain(me.shared.add_ns, share, tally);
  if (closing == Closing::flush) table.flush(share, tally);
  if (!meet(me)) return false;
  commit_warp(table, tally);
  return true;
}

// ---- read

// Rings, verdicts and primitives of ready events first .. first + count - 1, a team an event; their places are given back.
template <rich::FinderKind kind>
__device__ inline void judge_ready(const rich::FinderConfig& config, const DeviceTables& tables, const Member& me,
                                   std::uint32_t first, std::uint32_t count, BlockMemory<kind>& memory) {
  using Finder = TeamFinder<kind>;
  constexpr std::uint32_t kTeams = Finder::kThreads / Finder::kLanes;
  const DevicePartTable table = me.table();
  const std::uint32_t team = threadIdx.x / Finder::kLanes;
  for (std::uint32_t e = team; e < count; e += kTeams) {
    const event::TableEvent& event = table.ready(first + e);
    const std::uint32_t lane = threadIdx.x % Finder::kLanes;
    const event::Event all{event.hits, event.hit_count};
    const event::Event hits = admit_hits<Finder::kLanes>(me.work, all, lane);
    const rich::EventRings rings = rings_of<kind>(config, tables, hits, lane, memory.teams[team]);
    if (lane != 0) continue;
    answer_event(me.work, hits, rings, event::key_timestamp(event.key), event::key_fine_time(event.key), all.count - hits.count, e,
                 memory.chunk);
    table.release(first + e, me.shared.add_ns);
  }
}

// Whether descriptor `number` is free for us.
__device__ inline bool wait_for_slot(const Member& me, std::uint64_t number) {
  const auto is_free = [&](std::uint32_t consumed) { return static_cast<std::uint32_t>(number) - consumed <= me.work.tx_mask; };
  if (is_free(me.shared.tx_consumed)) return true;
  __syncthreads();  // the others have looked at tx_consumed
  bool ended = false;
  if (threadIdx.x == 0) {
    std::uint32_t consumed = 0;
    for (std::uint32_t turns = 0; !ended;) {
      consumed = static_cast<std::uint32_t>(load_relaxed_sys(&me.work.tx_indexes->consumed));
      if (is_free(consumed)) break;
      ended = must_end(me.work, true, turns);
    }
    me.shared.tx_consumed = consumed;
  }
  return __syncthreads_or(ended ? 1 : 0) == 0;
}

// Rings the doorbell in the middle of a round, for what all blocks have written.
__device__ inline bool ring_now(Member& me, std::uint64_t tx_end) {
  __syncthreads();
  if (threadIdx.x == 0) fence_sys();
  if (!meet(me)) return false;
  if (me.rank == 0 && threadIdx.x == 0 && me.work.descriptors != nullptr) store_relaxed_sys(&me.work.tx_indexes->produced, tx_end);
  return true;
}

// Answers the first `kept` ready events in packets of kChunkEvents, and drops the others. tx_first: the number of the first descriptor, then of the next one.
template <rich::FinderKind kind>
__device__ inline bool answer_ready(const rich::FinderConfig& config, const DeviceTables& tables, Member& me, std::uint32_t kept,
                                    std::uint64_t& tx_first, BlockMemory<kind>& memory) {
  constexpr std::uint32_t kThreads = TeamFinder<kind>::kThreads;
  static_assert(kThreads > 32);
  ChunkMemory& m = memory.chunk;
  const bool answering = me.work.descriptors != nullptr;
  const std::uint32_t ready = me.shared.near.ready_count;
  const std::uint32_t chunks = (kept + kChunkEvents - 1) / kChunkEvents;
  const std::uint32_t at_once = answering ? me.work.tx_mask + 1 : chunks;  // the doorbell is rung before a descriptor is used again
  const event::Share share = share_of<kThreads>(me);
  for (std::uint32_t i = kept + share.index; i < ready; i += share.count) me.table().release(i, me.shared.add_ns);
  if (share.index == 0 && ready > kept) {
    atomicAdd(reinterpret_cast<unsigned long long*>(&me.merge.state->discarded), static_cast<unsigned long long>(ready - kept));
  }
  for (std::uint32_t begin = 0; begin < chunks; begin += at_once) {
    if (begin != 0 && !ring_now(me, tx_first + begin)) return false;
    const std::uint32_t end = min(chunks, begin + at_once);
    for (std::uint32_t chunk = begin + me.rank; chunk < end; chunk += me.round.ranks) {
      if (chunk != me.rank) __syncthreads();
      const std::uint32_t count = min(kChunkEvents, kept - chunk * kChunkEvents);
      judge_ready<kind>(config, tables, me, chunk * kChunkEvents, count, memory);
      if (answering && !wait_for_slot(me, tx_first + chunk)) return false;
      __syncthreads();
      // The first warp answers, the others keep the books.
      if (threadIdx.x >= 32) {
        add_tallies(count, 32, kThreads, m);
      } else if (answering) {
        write_answers(me.work, tx_first + chunk, me.shared.arrival_ns, count, m);
      }
    }
  }
  if (me.rank >= chunks) __syncthreads();  // what was dropped is before what thread 0 does next
  if (answering) tx_first += chunks;
  return true;
}

// ---- the end

// What was done, for the host: a lane a word of Report. The last block's first warp.
__device__ inline void report(const Work& work, const MergeWork& merge) {
  constexpr std::uint32_t kMerger = offsetof(Report, merger) / sizeof(std::uint64_t);
  constexpr std::uint32_t kDiscarded = kMerger + event::kPartCounts;
  constexpr std::uint32_t kBodies = kDiscarded + 2;
  constexpr std::uint32_t kEnd = kBodies + sizeof(BodyTotals) / sizeof(std::uint64_t);
  static_assert(offsetof(Report, discarded) == kDiscarded * sizeof(std::uint64_t) &&
                offsetof(Report, oldest_ns) == (kDiscarded + 1) * sizeof(std::uint64_t) &&
                offsetof(Report, bodies) == kBodies * sizeof(std::uint64_t) && kEnd <= 32);
  const std::uint32_t lane = threadIdx.x % 32;
  if (lane >= (work.bodies != nullptr ? kEnd : kBodies)) return;
  const std::uint64_t* from = reinterpret_cast<const std::uint64_t*>(work.totals) + lane;
  if (lane >= kMerger) from = merge.table.state->totals + (lane - kMerger);
  if (lane == kDiscarded) from = &merge.state->discarded;
  if (lane == kDiscarded + 1) from = &merge.table.state->oldest_ns;
  if (lane >= kBodies) from = reinterpret_cast<const std::uint64_t*>(work.bodies) + (lane - kBodies);
  store_relaxed_sys(reinterpret_cast<std::uint64_t*>(work.report) + lane, load_relaxed_gpu(from));
}

// Gives answers and the buffer away. The last block's first warp.
__device__ inline void finish_round(const Member& me, std::uint64_t tx_end, bool has_answers) {
  const Work& work = me.work;
  const Round& round = me.round;
  Order& order = *work.order;
  const bool has_buffer = round.kind == RoundKind::buffer;
  if (threadIdx.x == 0) {
    // Each block's answers are in the host's memory (leave), so nothing has to be waited for.
    if (has_answers) store_relaxed_sys(&work.tx_indexes->produced, tx_end);
    fence_gpu();
    me.table().finish_round();
    order.tx_first = tx_end;
    me.merge.state->clock_ns = me.shared.add_ns;
    if (has_buffer) me.merge.state->seen_ns[round.word.clop] = me.shared.arrival_ns;
    if (me.shared.status & status::run_start) me.merge.state->sources = me.shared.sources;
    me.merge.group->arrived = 0;
  }
  __syncwarp();
  report(work, me.merge);
  __syncwarp();
  if (threadIdx.x != 0) return;
  fence_sys();  // whoever sees that the buffer is back sees doorbell and report too
  if (has_buffer) {
    store_relaxed_sys(work.clops[round.word.clop].released, ++order.released[round.word.clop]);
    store_relaxed_sys(work.popped, ++order.finished);
  }
  store_relaxed_sys(&work.report->round, round.index);
  store_release_gpu(&me.merge.group->done, round.index);
}

// After its part each block says so; the last one finishes the round. The first warp calls it, which wrote the answers.
__device__ inline void leave(const Member& me, std::uint64_t tx_end, bool has_answers) {
  bool last = false;
  if (threadIdx.x == 0) {
    fence_sys();  // answers and descriptors are in the host's memory before anyone learns of it
    last = me.round.ranks == 1 || add_relaxed_gpu(&me.merge.group->arrived, 1) + 1 == me.arrivals + me.round.ranks;
  }
  if (__any_sync(0xffffffffu, last)) finish_round(me, tx_end, has_answers);
}

// ---- a new run in the middle of a buffer

// One warp. The first packet from `begin` on in which a source that has sent data begins again, else packet_count. me.shared.sources is brought up to there.
__device__ inline std::uint32_t find_split(const Member& me, std::uint32_t begin) {
  const BufferWord word = me.round.word;
  const DeviceClop& clop = me.work.clops[word.clop];
  const PacketRef* const index = clop.index + std::uint64_t{word.buffer_index} * clop.index_capacity;
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint32_t sources = me.shared.sources;
  std::uint32_t packet = begin;
  for (bool found = false; !found && packet < word.packet_count;) {
    const std::uint32_t count = min(word.packet_count - packet, 32u);
    const std::uint64_t ref = lane < count ? load_relaxed_sys(reinterpret_cast<const std::uint64_t*>(index + packet + lane)) : 0;
    for (std::uint32_t k = 0; k < count; ++k, ++packet) {
      const std::uint32_t source = __shfl_sync(0xffffffffu, static_cast<std::uint32_t>(ref >> 48), static_cast<int>(k));
      const std::uint32_t bit = 1u << (me.merge.first_source[word.clop] + (source & PacketRef::source_mask));
      found = (source & PacketRef::run_start) != 0 && (sources & bit) != 0;
      if (found) break;
      sources |= bit;
    }
  }
  __syncwarp();
  if (lane == 0) me.shared.sources = sources;
  return packet;
}

// Before the next part of the buffer: what was ready is cleared, and no source has sent data yet.
__device__ inline bool turn(Member& me, std::uint64_t tx_end) {
  if (!ring_now(me, tx_end)) return false;
  if (me.rank == 0 && threadIdx.x == 0) {
    me.table().finish_round();
    me.work.order->tx_first = tx_end;
  }
  if (threadIdx.x == 0) me.shared.sources = 0;
  return meet(me);
}

// ---- all of it

// Times, and the block's first chunk.
template <std::uint32_t threads>
__device__ inline bool begin_round(const Member& me, const Item& item, ChunkMemory& m) {
  const Round& round = me.round;
  const MergeState& state = *me.merge.state;
  const std::uint32_t lane = threadIdx.x % 32;
  const Completion& completion = me.work.completions[round.number & me.work.completion_mask];
  static_assert(offsetof(Completion, last_packet_ns) == 8 && offsetof(Completion, packets_lost) == 32 &&
                offsetof(Completion, status) == 36);
  uint4 head{};
  std::uint64_t seen_ns = ~std::uint64_t{0};
  std::uint64_t clock_ns = 0;
  std::uint32_t sources = 0;
  std::uint32_t samples_taken = 0;
  if (threadIdx.x < 32) {  // all in flight together, and with the packets
    if (round.kind == RoundKind::buffer && !round.is_told && me.rank == 0 && lane < 2) {
      head = load_relaxed_sys16(lane == 0 ? static_cast<const void*>(&completion.first_packet_ns) : &completion.packets_lost);
    }
    if (lane < me.merge.clop_count) seen_ns = load_relaxed_gpu(&state.seen_ns[lane]);
    clock_ns = load_relaxed_gpu(&state.clock_ns);
    if (lane == 0) sources = load_relaxed_gpu(&state.sources);
    if (lane == 0) samples_taken = load_relaxed_gpu(&me.work.samples->taken);
  }
  const std::uint32_t packets = plan_chunks(item.word).packets;
  const std::uint32_t first = me.rank * packets;
  if (first < item.word.packet_count) stage_parts<threads>(me, item, first, min(packets, item.word.packet_count - first), m);
  bool ended = false;
  if (threadIdx.x < 32) {
    uint4 told{};
    ended = !learn_head(me, head, told);
    set_times(me, told, seen_ns, clock_ns);
    if (lane == 0) {
      me.shared.sources = sources;
      m.sampling = samples_taken < rich::kSamples;
    }
  }
  return __syncthreads_or(ended ? 1 : 0) == 0;
}

template <rich::FinderKind kind>
__device__ inline bool work_on_round(const rich::FinderConfig& config, const DeviceTables& tables, const Work& work,
                                     const MergeWork& merge, std::uint32_t rank, MergeMemory<kind>& memory) {
  constexpr std::uint32_t kThreads = TeamFinder<kind>::kThreads;
  Member me{work, merge, memory.round.round, memory.round, rank};
  ChunkMemory& m = memory.block.chunk;
  const Item item{.number = 0, .tx_first = 0, .arrival_ns = 0, .word = me.round.word, .buffer = me.round.buffer};
  if (!begin_round<kThreads>(me, item, m)) return false;
  const bool may_split = (me.shared.status & status::run_start) != 0;
  std::uint64_t tx_first = 0;
  bool has_answers = false;
  for (std::uint32_t begin = 0;;) {
    std::uint32_t end = item.word.packet_count;
    if (may_split) {  // rare: the packets of one run, then of the next
      if (threadIdx.x < 32) {
        end = find_split(me, begin);
        if (threadIdx.x == 0) me.shared.split = end;
      }
      __syncthreads();
      end = me.shared.split;
    }
    add_packets<kThreads>(me, item, begin, end, !may_split, m);
    if (!meet(me)) return false;
    const bool splits = end < item.word.packet_count;
    event::PartTableMemory near = merge.table;
    near.state = &me.shared.near;
    const bool due = DevicePartTable(merge.config, near).expire_due(me.shared.expire_ns);
    const Closing closing = splits                              ? Closing::flush
                            : me.round.kind == RoundKind::drain ? Closing::drain
                            : due                               ? Closing::expire
                                                                : Closing::nothing;
    std::uint32_t complete = 0;
    if (!close_events<kThreads>(me, closing, complete)) return false;
    tx_first = me.shared.tx_first;
    const std::uint32_t kept = merge.drop_incomplete ? complete : me.shared.near.ready_count;
    has_answers |= work.descriptors != nullptr && kept != 0;
    if (!answer_ready<kind>(config, tables, me, kept, tx_first, memory.block)) return false;
    if (!splits) break;
    if (!turn(me, tx_first)) return false;
    begin = end;
  }
  if (threadIdx.x < 32) leave(me, tx_first, has_answers);
  give_books<kThreads, true>(work, m);
  return true;
}

}  // namespace nanet::gpu
