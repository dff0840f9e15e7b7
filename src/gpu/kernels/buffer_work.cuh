// SPDX-License-Identifier: Apache-2.0
// A block's work on one chunk of a buffer: packets in the host's memory -> events -> rings -> primitives -> an MTP packet and its descriptor.
//
// All threads of a block call these functions together. Steps are separated by __syncthreads(); what is shared lies in ChunkMemory.
#pragma once

#include <cuda_runtime.h>

#include "gpu/device_layout.hpp"
#include "gpu/kernels/ordered_access.cuh"
#include "gpu/kernels/shared_tables.cuh"
#include "gpu/kernels/team_finders.cuh"
#include "nanet/wire/event_walk.hpp"
#include "nanet/wire/mtp.hpp"

namespace nanet::gpu {

inline constexpr std::uint32_t kStagedVectors = kPacketBytesMax / 16 + 2;  // a packet may begin and end inside a vector of 16 bytes
inline constexpr std::uint32_t kUnpackedHits = (kPacketBytesMax - 24) * 8 / 9 + 8;

struct StagedPacket {
  std::uint32_t first_byte;  // of the payload in staged[]: 0 or 8
  std::uint32_t first_event;
  wire::PacketHead head;
};

struct ChunkEvent {
  std::uint64_t header;     // of the event, as in the packet
  std::uint16_t offset;     // of the header, from the start of the payload
  std::uint16_t first_hit;  // packed packets: of unpacked[]
  std::uint32_t packet;
};

// Sums over events, of a thread or a block.
struct Sums {
  std::uint32_t events = 0, rings = 0, electrons = 0, hits_unmapped = 0;
};

struct ChunkMemory {
  alignas(16) std::byte staged[kChunkPacketsMax][kStagedVectors * 16];
  alignas(16) std::uint32_t words[(wire::kMtpBytesMax + 15) / 16 * 4];
  std::uint16_t unpacked[kChunkPacketsMax][kUnpackedHits];
  PacketRef refs[kChunkPacketsMax];
  StagedPacket packets[kChunkPacketsMax];
  ChunkEvent events[kChunkEventsMax];
  wire::Primitive answers[kChunkEventsMax];
  Sums sums;                                                             // of the buffer
  std::uint32_t spectra[sizeof(rich::Spectra) / sizeof(std::uint64_t)];  // of the buffer, as rich::Spectra
};

template <std::uint32_t threads>
__device__ inline void clear_books(ChunkMemory& m) {
  if (threadIdx.x == 0) m.sums = {};
  for (std::uint32_t i = threadIdx.x; i < std::size(m.spectra); i += threads) m.spectra[i] = 0;
}

// Packets first .. first + count - 1 into m.staged, payloads at multiples of 8. Loads of 16 bytes, as many as there are threads at a time: that is what
// makes reading the host's memory fast.
template <std::uint32_t threads>
__device__ inline void stage_packets(const Work& work, const Item& item, std::uint32_t first, std::uint32_t count, ChunkMemory& m) {
  const std::uint32_t stride = item.word.stride_bytes;
  if (stride == 0) {
    const DeviceClop& clop = work.clops[item.word.clop];
    const PacketRef* const index = clop.index + std::uint64_t{item.word.buffer_index} * clop.index_capacity + first;
    if (threadIdx.x < count) {
      const std::uint64_t word = load_relaxed_sys(reinterpret_cast<const std::uint64_t*>(index + threadIdx.x));
      m.refs[threadIdx.x] = {static_cast<std::uint32_t>(word), static_cast<std::uint16_t>(word >> 32), 0};
    }
    __syncthreads();
  }
  constexpr std::uint32_t kRounds = (kChunkPacketsMax * kStagedVectors + threads - 1) / threads;
  uint4 loaded[kRounds];
#pragma unroll
  for (std::uint32_t r = 0; r < kRounds; ++r) {
    const std::uint32_t packet = (r * threads + threadIdx.x) / kStagedVectors;
    const std::uint32_t vector = (r * threads + threadIdx.x) % kStagedVectors;
    if (packet >= count) continue;
    const std::uint32_t offset = stride != 0 ? (first + packet) * stride : m.refs[packet].offset;
    const std::uint32_t bytes = stride != 0 ? stride : m.refs[packet].bytes;
    if (vector * 16 < offset % 16 + bytes) loaded[r] = load_relaxed_sys16(item.buffer + offset / 16 * 16 + vector * 16);
  }
#pragma unroll
  for (std::uint32_t r = 0; r < kRounds; ++r) {
    const std::uint32_t packet = (r * threads + threadIdx.x) / kStagedVectors;
    const std::uint32_t vector = (r * threads + threadIdx.x) % kStagedVectors;
    if (packet >= count) continue;
    const std::uint32_t offset = stride != 0 ? (first + packet) * stride : m.refs[packet].offset;
    const std::uint32_t bytes = stride != 0 ? stride : m.refs[packet].bytes;
    const std::uint32_t shift = offset % 16;
    if (vector * 16 >= shift + bytes) continue;
    if (shift % 8 == 0) {
      *reinterpret_cast<uint4*>(m.staged[packet] + vector * 16) = loaded[r];
    } else {  // a payload at an odd place: moved to the front, two bytes at a time
      const std::uint32_t four[4] = {loaded[r].x, loaded[r].y, loaded[r].z, loaded[r].w};
#pragma unroll
      for (std::uint32_t k = 0; k < 8; ++k) {
        const std::uint32_t at = vector * 16 + 2 * k;
        if (at >= shift && at < shift + bytes) {
          *reinterpret_cast<std::uint16_t*>(m.staged[packet] + (at - shift)) = static_cast<std::uint16_t>(four[k / 2] >> 16 * (k % 2));
        }
      }
    }
  }
}

// Where each event of the staged packets is: m.packets and m.events. Returns their number.
template <std::uint32_t threads>
__device__ inline std::uint32_t place_events(const Item& item, std::uint32_t first, std::uint32_t count, ChunkMemory& m) {
  std::uint32_t event_count = 0;
  for (std::uint32_t p = 0; p < count; ++p) {  // few: each thread reads all heads
    const std::uint32_t shift = (item.word.stride_bytes != 0 ? (first + p) * item.word.stride_bytes : m.refs[p].offset) % 16;
    const std::uint32_t first_byte = shift % 8 == 0 ? shift : 0;
    const std::byte* const payload = m.staged[p] + first_byte;
    const wire::PacketHead head = wire::load_packet_head(payload);
    if (threadIdx.x == 0) m.packets[p] = {first_byte, event_count, head};
    if (head.format == wire::PacketFormat::padded) {
      for (std::uint32_t e = threadIdx.x; e < head.event_count; e += threads) {
        const auto offset = static_cast<std::uint32_t>(wire::mgp_slot_offset(e));
        m.events[event_count + e] = {*reinterpret_cast<const std::uint64_t*>(payload + offset), static_cast<std::uint16_t>(offset),
                                     0, p};
      }
    } else if (threadIdx.x == p * 32 % threads) {  // one thread walks, each packet in another warp where there are some
      wire::EventWalk walk(payload, head);
      std::uint32_t hits = 0;
      std::uint32_t e = event_count;
      for (wire::EventPlace place; walk.next(place); ++e) {
        m.events[e] = {wire::load_le64_by_words(payload + place.offset), static_cast<std::uint16_t>(place.offset),
                       static_cast<std::uint16_t>(hits), p};
        hits += place.event.hit_count;
      }
    }
    event_count += head.event_count;
  }
  return event_count;
}

// A team's event: its hits, unpacked if need be.
template <std::uint32_t lanes>
__device__ inline rich::EventHits hits_of(const ChunkEvent& event, const wire::MgpEvent& header, std::uint32_t lane, ChunkMemory& m) {
  const StagedPacket& packet = m.packets[event.packet];
  const std::byte* const payload = m.staged[event.packet] + packet.first_byte;
  if (packet.head.format != wire::PacketFormat::packed) {
    return {reinterpret_cast<const std::uint16_t*>(payload + event.offset + wire::kMgpEventHeaderBytes), header.hit_count};
  }
  std::uint16_t* const hits = m.unpacked[event.packet] + event.first_hit;
  for (std::uint32_t k = lane; k < header.hit_count; k += lanes) {
    hits[k] = wire::unpack_id(payload + event.offset + wire::kMgpEventHeaderBytes, k, packet.head.source_sub_id);
  }
  if constexpr (lanes > 1) __syncwarp(team_mask<lanes>());
  return {hits, header.hit_count};
}

__device__ inline void keep_sample(DeviceSamples& samples, const rich::EventHits& event, const rich::EventRings& rings,
                                   const rich::Verdict& verdict, const wire::Primitive& answer) {
  const std::uint32_t taken = atomicAdd(&samples.taken, 1u);
  if (taken >= rich::kSamples) return;
  rich::EventSample& sample = samples.events[taken];
  sample.answer = answer;
  sample.hit_count = static_cast<std::uint16_t>(event.count);
  for (std::uint32_t k = 0; k < event.count && k < rich::kMaxHits; ++k) sample.hits[k] = event.hits[k];
  sample.rings = rings;
  sample.good_rings = verdict.good_rings;
}

__device__ inline void record(const rich::EventRings& rings, const rich::Verdict& verdict, ChunkMemory& m) {
  std::uint32_t* const multiplicity = m.spectra + rich::kSpectrumRadiusBins + 1;
  std::uint32_t* const ring_count = multiplicity + rich::kSpectrumMultiplicityBins;
  atomicAdd(multiplicity + (verdict.multiplicity < rich::kSpectrumMultiplicityBins ? verdict.multiplicity
                                                                                   : rich::kSpectrumMultiplicityBins - 1),
            1u);
  atomicAdd(ring_count + verdict.rings, 1u);
  for (std::uint32_t k = 0; k < rings.count; ++k) {
    const float radius_mm = rings.rings[k].radius_mm;
    const bool binned = (verdict.good_rings >> k & 1) != 0 && radius_mm < static_cast<float>(rich::kSpectrumRadiusBins);
    atomicAdd(m.spectra + (binned ? static_cast<std::uint32_t>(radius_mm) : rich::kSpectrumRadiusBins), 1u);
  }
}

// Rings, verdicts and primitives of the chunk's events, a team an event.
template <rich::FinderKind kind>
__device__ inline void judge_events(const rich::FinderConfig& config, const DeviceTables& tables, const Work& work,
                                    std::uint32_t event_count, bool sampling, ChunkMemory& m,
                                    typename TeamFinder<kind>::Shared* shared) {
  using Finder = TeamFinder<kind>;
  constexpr std::uint32_t kTeams = Finder::kThreads / Finder::kLanes;
  const std::uint32_t team = threadIdx.x / Finder::kLanes;
  const std::uint32_t lane = threadIdx.x % Finder::kLanes;
  Sums sums;
  for (std::uint32_t e = team; e < event_count; e += kTeams) {
    const ChunkEvent event = m.events[e];
    const wire::MgpEvent header = wire::event_from_word(event.header);
    const rich::EventHits hits = hits_of<Finder::kLanes>(event, header, lane, m);
    const rich::EventRings rings = Finder::find(config, hits, tables, shared[team]);
    if (lane != 0) continue;
    const rich::Verdict verdict = rich::judge(rings, work.cuts);
    const std::uint32_t field = work.conditions != nullptr ? rich::conditions_of(verdict, *work.conditions)
                                                           : rich::radius_class(verdict);
    const wire::Primitive answer{
        .timestamp = header.timestamp, .fine_time = header.fine_time, .id = rich::primitive_id(verdict, field)};
    m.answers[e] = answer;
    record(rings, verdict, m);
    if (sampling) keep_sample(*work.samples, hits, rings, verdict, answer);
    sums.events += 1;
    sums.rings += verdict.rings;
    sums.electrons += verdict.electrons;
    sums.hits_unmapped += (hits.count < rich::kMaxHits ? hits.count : rich::kMaxHits) - rings.mapped_hits;
  }
  const auto add = [](std::uint32_t* to, std::uint32_t n) {
    n = __reduce_add_sync(0xffffffffu, n);
    if (threadIdx.x % 32 == 0 && n != 0) atomicAdd(to, n);
  };
  add(&m.sums.events, sums.events);
  add(&m.sums.rings, sums.rings);
  add(&m.sums.electrons, sums.electrons);
  add(&m.sums.hits_unmapped, sums.hits_unmapped);
}

// The chunk's answers as one MTP packet in the slot of descriptor `number`. One warp calls it.
__device__ inline void write_answers(const Work& work, std::uint64_t number, std::uint64_t arrival_ns, std::uint32_t event_count,
                                     ChunkMemory& m) {
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint32_t used = wire::kMtpHeaderBytes / wire::kMtpWordBytes;
  for (std::uint32_t base = 0; base < event_count; base += 32) {
    const std::uint32_t e = base + lane;
    const bool there = e < event_count;
    const wire::Primitive answer = m.answers[there ? e : 0];
    const bool timestamp = there && e > 0 && wire::mtp_needs_timestamp_word(answer.timestamp, m.answers[e - 1].timestamp);
    const std::uint32_t with_timestamp = __ballot_sync(0xffffffffu, timestamp);
    const std::uint32_t at = used + lane + __popc(with_timestamp & ((2u << lane) - 1u));
    if (timestamp) m.words[at - 1] = wire::mtp_timestamp_word(answer.timestamp);
    if (there) m.words[at] = wire::mtp_primitive_word(answer);
    used += min(event_count - base, 32u) + __popc(with_timestamp);
  }
  const std::uint32_t bytes = used * static_cast<std::uint32_t>(wire::kMtpWordBytes);
  if (lane == 0) {
    m.words[0] = wire::mtp_header_time_word(work.answer_source_id, m.answers[0].timestamp);
    m.words[1] = wire::mtp_header_length_word(bytes, event_count, work.answer_source_sub_id);
  }
  __syncwarp();
  const std::uint64_t slot = (number & work.tx_mask) * work.slot_stride_bytes;
  uint4* const to = reinterpret_cast<uint4*>(work.slots + slot);
  for (std::uint32_t v = lane; v * 16 < bytes; v += 32) to[v] = reinterpret_cast<const uint4*>(m.words)[v];
  if (lane == 0) {
    TxDescriptor& descriptor = work.descriptors[number & work.tx_mask];
    descriptor.address = work.slots_host + slot;
    descriptor.bytes = bytes;
    descriptor.destination = 0;
    descriptor.tag = arrival_ns;
    descriptor.sequence = number + 1;  // nobody looks before the doorbell
  }
  __syncwarp();
}

template <rich::FinderKind kind>
struct BlockMemory {
  ChunkMemory chunk;
  alignas(16) SharedTables<TeamFinder<kind>> tables;
  typename TeamFinder<kind>::Shared teams[TeamFinder<kind>::kThreads / TeamFinder<kind>::kLanes];
};

// Chunks rank, rank + ranks, ... of a buffer.
template <rich::FinderKind kind>
__device__ inline void work_on_chunks(const rich::FinderConfig& config, const DeviceTables& tables, const Work& work,
                                      const Item& item, std::uint32_t rank, std::uint32_t ranks, BlockMemory<kind>& memory) {
  constexpr std::uint32_t kThreads = TeamFinder<kind>::kThreads;
  ChunkMemory& m = memory.chunk;
  const ChunkPlan plan = plan_chunks(item.word);
  const Completion& completion = work.completions[item.number & work.completion_mask];
  std::uint64_t arrival_ns = 0;
  if (threadIdx.x < 32) arrival_ns = load_relaxed_sys(&completion.first_packet_ns);  // is there when it is needed
  const bool sampling = load_relaxed_gpu(&work.samples->taken) < rich::kSamples;
  for (std::uint32_t chunk = rank; chunk < plan.chunks; chunk += ranks) {
    const std::uint32_t first = chunk * plan.packets;
    const std::uint32_t count = min(plan.packets, item.word.packet_count - first);
    stage_packets<kThreads>(work, item, first, count, m);
    __syncthreads();
    const std::uint32_t event_count = place_events<kThreads>(item, first, count, m);
    __syncthreads();
    judge_events<kind>(config, tables, work, event_count, sampling, m, memory.teams);
    __syncthreads();
    if (work.descriptors != nullptr && threadIdx.x < 32) write_answers(work, item.tx_first + chunk, arrival_ns, event_count, m);
    if (chunk + ranks < plan.chunks) __syncthreads();
  }
}

// Gives the answers away and the buffer back. One thread calls it, when all chunks are done; buffers go in order.
__device__ inline void finish_item(const Work& work, const Item& item, Group& group) {
  Order& order = *work.order;
  if (work.group_count > 1) {
    while (load_acquire_gpu(&order.finished) != item.number) {
      if (load_relaxed_gpu(&order.abort) != 0) return;
    }
  }
  // Each block's answers are in the host's memory (arrive), so nothing has to be waited for.
  if (work.descriptors != nullptr) store_relaxed_sys(&work.tx_indexes->produced, item.tx_first + plan_chunks(item.word).chunks);
  const std::uint64_t released = ++order.released[item.word.clop];
  work.report->totals = {load_relaxed_gpu(&work.totals->events), load_relaxed_gpu(&work.totals->rings),
                         load_relaxed_gpu(&work.totals->electrons), load_relaxed_gpu(&work.totals->hits_unmapped)};
  group.arrived = 0;
  fence_sys();  // who sees that the buffer is back sees the doorbell and the totals too
  store_relaxed_sys(work.clops[item.word.clop].released, released);
  store_relaxed_sys(work.popped, item.number + 1);
  store_release_gpu(&order.finished, item.number + 1);
  store_release_gpu(&group.done, item.number + 1);
}

// After its chunks each block says so; the last one finishes the buffer. The first warp calls it, which wrote the answers.
__device__ inline void arrive(const Work& work, const Item& item, Group& group, std::uint32_t ranks, ChunkMemory& m) {
  if (threadIdx.x != 0) return;
  const auto add = [](std::uint64_t* to, std::uint32_t n) {
    if (n != 0) atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(n));
  };
  add(&work.totals->events, m.sums.events);
  add(&work.totals->rings, m.sums.rings);
  add(&work.totals->electrons, m.sums.electrons);
  add(&work.totals->hits_unmapped, m.sums.hits_unmapped);
  fence_sys();  // answers, descriptors and totals are where they belong before anybody hears of it
  if (ranks == 1 || add_relaxed_gpu(&group.arrived, 1) + 1 == ranks) finish_item(work, item, group);
}

// What the block's events add to the spectra: when the buffer is done, so that nobody waits for it.
template <std::uint32_t threads>
__device__ inline void give_spectra(const Work& work, ChunkMemory& m) {
  __syncthreads();
  if (threadIdx.x == 0) m.sums = {};
  auto* const to = reinterpret_cast<unsigned long long*>(work.spectra);
  for (std::uint32_t i = threadIdx.x; i < std::size(m.spectra); i += threads) {
    if (m.spectra[i] != 0) atomicAdd(to + i, static_cast<unsigned long long>(m.spectra[i]));
    m.spectra[i] = 0;
  }
  __syncthreads();
}

}  // namespace nanet::gpu
