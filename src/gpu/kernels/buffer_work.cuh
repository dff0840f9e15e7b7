// SPDX-License-Identifier: Apache-2.0
// A block's work on one chunk of a buffer: packets in the host's memory -> events -> rings -> primitives -> an MTP packet and its descriptor.
//
// All threads of a block call these functions together. Steps are separated by __syncthreads(); what is shared lies in ChunkMemory.
#pragma once

#include <cuda_runtime.h>

#include "gpu/device_layout.hpp"
#include "gpu/kernels/ordered_access.cuh"
#include "gpu/kernels/placed_work.cuh"
#include "gpu/kernels/shared_tables.cuh"
#include "gpu/kernels/team_finders.cuh"
#include "nanet/wire/mtp.hpp"
#include "rich/find_event.hpp"
#include "wire/event_walk.hpp"

namespace nanet::gpu {

inline constexpr std::uint32_t kUnpackedHits = (kPacketBytesMax - 24) * 8 / 9 + 8;

// Where one event of the chunk is.
struct ChunkEvent {
  std::uint64_t header;     // of the event, as in the packet
  std::uint16_t offset;     // of the header, from the start of the payload
  std::uint16_t first_hit;  // packed packets: of unpacked[]
  std::uint32_t packet;
};

// A packet of the chunk.
struct ChunkPacket {
  wire::PacketHead head;
  std::uint16_t first_byte;   // of the payload in its StagedPacket: 0 or 8
  std::uint16_t first_event;  // of the chunk's
};

// What an event adds to the books.
struct EventTally {
  std::uint16_t radius_bin[rich::kMaxRings];
  std::uint8_t rings;  // found, with a bin each
  std::uint8_t good_rings;
  std::uint8_t electrons;
  std::uint8_t multiplicity;
  std::uint16_t hits_unmapped;
  std::uint16_t hits_masked;
  std::uint16_t more_rings;
  std::uint16_t outside;
};
static_assert(sizeof(EventTally) == 20);

// Sums over events, of a thread or a block.
struct Sums {
  std::uint32_t events = 0, rings = 0, electrons = 0, hits_unmapped = 0, hits_masked = 0, rings_over_answer = 0, rings_outside = 0;
};

struct ChunkMemory {
  StagedPacket staged[kChunkPacketsMax];
  alignas(16) std::uint32_t words[(wire::kMtpBytesMax + 15) / 16 * 4];
  std::uint16_t unpacked[kChunkPacketsMax][kUnpackedHits];
  PacketRef refs[kChunkPacketsMax];
  ChunkPacket packets[32][kChunkPacketsMax];  // a copy for each warp, so that no other has to be waited for
  ChunkEvent events[kChunkEventsMax];         // unless all packets are padded
  wire::Primitive answers[kChunkEventsMax];
  EventTally tallies[kChunkEventsMax];
  bool sampling;
  PlacedMemory placed;
  Sums sums;                                                             // of the buffer
  std::uint32_t spectra[sizeof(rich::Spectra) / sizeof(std::uint64_t)];  // of the buffer, as rich::Spectra
};

template <std::uint32_t threads>
__device__ inline void clear_books(ChunkMemory& m) {
  if (threadIdx.x == 0) {
    m.sums = {};
    m.placed.bad_packets = m.placed.bad_events = 0;
  }
  for (std::uint32_t i = threadIdx.x; i < std::size(m.spectra); i += threads) m.spectra[i] = 0;
}

// Whether the buffer holds a PlacedPacket for each packet. `in_place`, here and below: it might; a resident kernel without such buffers is compiled without.
template <bool in_place>
__device__ inline bool is_in_place(const Work& work, const Item& item) {
  return in_place && item.word.stride_bytes == 0 && work.clops[item.word.clop].in_place;
}

// Packets first .. first + count - 1 into m.staged, payloads at multiples of 8. Loads of 16 bytes, as many as there are threads at a time: that is what
// makes reading the host's memory fast.
template <std::uint32_t threads, bool in_place>
__device__ inline void stage_packets(const Work& work, const Item& item, std::uint32_t first, std::uint32_t count, ChunkMemory& m) {
  const std::uint32_t stride = item.word.stride_bytes;
  if (stride == 0) {
    const DeviceClop& clop = work.clops[item.word.clop];
    const PacketRef* const index = clop.index + std::uint64_t{item.word.buffer_index} * clop.index_capacity;
    if (is_in_place<in_place>(work, item)) {
      stage_placed<threads>(item.buffer, index, clop.payload_to_device, first, count, m.refs, m.staged, m.placed);
      return;
    }
    if (threadIdx.x < count) m.refs[threadIdx.x] = load_ref(index + first + threadIdx.x);
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
    if (vector * 16 < offset % 16 + bytes) loaded[r] = load_host16(item.buffer + offset / 16 * 16 + vector * 16);
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
      *reinterpret_cast<uint4*>(m.staged[packet].bytes + vector * 16) = loaded[r];
    } else {  // a payload at an odd place: moved to the front, two bytes at a time
      const std::uint32_t four[4] = {loaded[r].x, loaded[r].y, loaded[r].z, loaded[r].w};
#pragma unroll
      for (std::uint32_t k = 0; k < 8; ++k) {
        const std::uint32_t at = vector * 16 + 2 * k;
        if (at >= shift && at < shift + bytes) {
          *reinterpret_cast<std::uint16_t*>(m.staged[packet].bytes + (at - shift)) = static_cast<std::uint16_t>(four[k / 2] >>
                                                                                                                16 * (k % 2));
        }
      }
    }
  }
}

struct ChunkEvents {
  std::uint32_t count;
  bool all_padded;  // then they need not be listed
};

// Each warp looks at the staged packets, a lane a packet.
__device__ inline ChunkEvents look_at_packets(const Item& item, std::uint32_t first, std::uint32_t count, ChunkMemory& m) {
  const std::uint32_t p = threadIdx.x % 32;
  ChunkPacket packet{};
  if (p < count) {
    const std::uint32_t shift = (item.word.stride_bytes != 0 ? (first + p) * item.word.stride_bytes : m.refs[p].offset) % 16;
    packet.first_byte = static_cast<std::uint16_t>(shift % 8 == 0 ? shift : 0);
    packet.head = wire::load_packet_head(m.staged[p].bytes + packet.first_byte);
  }
  std::uint32_t events = packet.head.event_count;
#pragma unroll
  for (std::uint32_t step = 1; step < kChunkPacketsMax; step *= 2) {
    const std::uint32_t before = __shfl_up_sync(0xffffffffu, events, step);
    if (p >= step) events += before;
  }
  packet.first_event = static_cast<std::uint16_t>(events - packet.head.event_count);
  if (p < kChunkPacketsMax) m.packets[threadIdx.x / 32][p] = packet;
  const bool padded = p >= count || packet.head.format == wire::PacketFormat::padded;
  __syncwarp();
  return {__shfl_sync(0xffffffffu, events, kChunkPacketsMax - 1), __all_sync(0xffffffffu, padded) != 0};
}

// Puts all events into m.events: one thread walks through a packet, each packet in another warp where there are some.
template <std::uint32_t threads>
__device__ inline void list_events(std::uint32_t count, ChunkMemory& m) {
  for (std::uint32_t p = 0; p < count; ++p) {
    if (threadIdx.x != p * 32 % threads) continue;
    const ChunkPacket packet = m.packets[threadIdx.x / 32][p];
    const std::byte* const payload = m.staged[p].bytes + packet.first_byte;
    wire::EventWalk walk(payload, packet.head);
    std::uint32_t hits = 0;
    std::uint32_t e = packet.first_event;
    for (wire::EventPlace place; walk.next(place); ++e) {
      m.events[e] = {wire::load_le64_by_words(payload + place.offset), static_cast<std::uint16_t>(place.offset),
                     static_cast<std::uint16_t>(hits), p};
      hits += place.event.hit_count;
    }
  }
}

// Event e of the chunk.
__device__ inline ChunkEvent event_of(const ChunkEvents& events, std::uint32_t e, const ChunkMemory& m) {
  if (!events.all_padded) return m.events[e];
  const ChunkPacket* const packets = m.packets[threadIdx.x / 32];
  std::uint32_t packet = 0;
#pragma unroll
  for (std::uint32_t p = 1; p < kChunkPacketsMax; ++p)
    packet = packets[p].head.event_count != 0 && e >= packets[p].first_event ? p : packet;  // one in place may have been refused
  const auto offset = static_cast<std::uint32_t>(wire::mgp_slot_offset(e - packets[packet].first_event));
  const std::byte* const at = m.staged[packet].bytes + packets[packet].first_byte + offset;
  return {*reinterpret_cast<const std::uint64_t*>(at), static_cast<std::uint16_t>(offset), 0, packet};
}

// A team's event: its hits, unpacked if need be.
template <std::uint32_t lanes>
__device__ inline event::Event hits_of(const ChunkEvent& event, std::uint32_t hit_count, std::uint32_t lane, ChunkMemory& m) {
  const ChunkPacket& packet = m.packets[threadIdx.x / 32][event.packet];
  const std::byte* const from = m.staged[event.packet].bytes + packet.first_byte + event.offset + wire::kMgpEventHeaderBytes;
  if (packet.head.format != wire::PacketFormat::packed) return {reinterpret_cast<const std::uint16_t*>(from), hit_count};
  std::uint16_t* const hits = m.unpacked[event.packet] + event.first_hit;
  for (std::uint32_t k = lane; k < hit_count; k += lanes) hits[k] = wire::unpack_id(from, k, packet.head.source_sub_id);
  if constexpr (lanes > 1) __syncwarp(team_mask<lanes>());
  return {hits, hit_count};
}

__device__ inline void keep_sample(DeviceSamples& samples, const event::Event& event, const rich::EventRings& rings,
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

// An event's hits but those of masked channels, which are overwritten where they are; all are counted by channel. All lanes of a team.
template <std::uint32_t lanes>
__device__ inline event::Event admit_hits(const Work& work, const event::Event& event, std::uint32_t lane) {
  for (std::uint32_t k = lane; k < event.count; k += lanes)
    atomicAdd(reinterpret_cast<unsigned long long*>(work.channel_hits + (event.hits[k] & rich::kChannelMask)), 1ull);
  if (work.mask == nullptr) return event;
  if constexpr (lanes > 1) __syncwarp(team_mask<lanes>());
  std::uint32_t kept = 0;
  if (lane == 0) kept = rich::without_masked(event, *work.mask, const_cast<std::uint16_t*>(event.hits)).count;
  if constexpr (lanes > 1) {
    kept = __shfl_sync(team_mask<lanes>(), kept, 0, static_cast<int>(lanes));
    __syncwarp(team_mask<lanes>());  // all see what the first lane wrote
  }
  return {event.hits, kept};
}

// The rings of an event, and whether there are more than an answer holds. May change the order of its hits. All lanes of a team.
template <rich::FinderKind kind>
__device__ inline rich::EventRings rings_of(const rich::FinderConfig& config, const DeviceTables& tables, event::Event event,
                                            std::uint32_t lane, typename TeamFinder<kind>::Shared& shared) {
  using Finder = TeamFinder<kind>;
  if constexpr (!rich::finds_several(kind)) return Finder::find(config, event, tables, shared);
  rich::EventRings rings;
#pragma unroll 1
  for (bool again = false;; again = true) {
    const rich::EventRings found = Finder::find(config, event, tables, shared);
    if (again) {
      rings.more_rings = found.count != 0 ? 1 : 0;
      return rings;
    }
    rings = found;
    std::uint32_t far = 0;
    if (lane == 0 && rings.count == rich::kMaxRings)
      far = rich::far_hits_first(const_cast<std::uint16_t*>(event.hits), min(event.count, rich::kMaxHits), tables.points, rings);
    if constexpr (Finder::kLanes > 1) {
      far = __shfl_sync(team_mask<Finder::kLanes>(), far, 0, static_cast<int>(Finder::kLanes));
      __syncwarp(team_mask<Finder::kLanes>());
    }
    if (far < rich::kMoreHitsMin) return rings;
    event.count = far;
  }
}

__device__ inline EventTally tally_of(const event::Event& hits, const rich::EventRings& rings, const rich::Verdict& verdict,
                                      std::uint32_t masked) {
  EventTally tally{};
  tally.rings = static_cast<std::uint8_t>(rings.count);
  tally.good_rings = verdict.rings;
  tally.electrons = verdict.electrons;
  tally.multiplicity = verdict.multiplicity;
  tally.hits_unmapped = static_cast<std::uint16_t>((hits.count < rich::kMaxHits ? hits.count : rich::kMaxHits) - rings.mapped_hits);
  tally.hits_masked = static_cast<std::uint16_t>(masked);
  tally.more_rings = rings.more_rings;
  tally.outside = verdict.outside;
#pragma unroll
  for (std::uint32_t k = 0; k < rich::kMaxRings; ++k) {
    const float radius_mm = rings.rings[k].radius_mm;
    const bool binned = (verdict.good_rings >> k & 1) != 0 && radius_mm < static_cast<float>(rich::kSpectrumRadiusBins);
    tally.radius_bin[k] = static_cast<std::uint16_t>(binned ? static_cast<std::uint32_t>(radius_mm) : rich::kSpectrumRadiusBins);
  }
  return tally;
}

// The answer to event e of the chunk, and what it adds to the books. masked: hits that were left out. A team's first lane calls it.
__device__ inline void answer_event(const Work& work, const event::Event& hits, const rich::EventRings& rings,
                                    std::uint32_t timestamp, std::uint8_t fine_time, std::uint32_t masked, std::uint32_t e,
                                    ChunkMemory& m) {
  const rich::Verdict verdict = rich::judge(rings, work.cuts);
  const std::uint32_t field = work.conditions != nullptr ? rich::conditions_of(verdict, *work.conditions)
                                                         : rich::radius_class(verdict);
  const wire::Primitive answer{.timestamp = timestamp, .fine_time = fine_time, .id = rich::primitive_id(verdict, field)};
  m.answers[e] = answer;
  m.tallies[e] = tally_of(hits, rings, verdict, masked);
  if (m.sampling) keep_sample(*work.samples, hits, rings, verdict, answer);
}

// Rings, verdicts and primitives of the chunk's events, a team an event.
template <rich::FinderKind kind>
__device__ inline void judge_events(const rich::FinderConfig& config, const DeviceTables& tables, const Work& work,
                                    const ChunkEvents& events, ChunkMemory& m, typename TeamFinder<kind>::Shared* shared) {
  using Finder = TeamFinder<kind>;
  constexpr std::uint32_t kTeams = Finder::kThreads / Finder::kLanes;
  const std::uint32_t team = threadIdx.x / Finder::kLanes;
  const std::uint32_t lane = threadIdx.x % Finder::kLanes;
  for (std::uint32_t e = team; e < events.count; e += kTeams) {
    const ChunkEvent event = event_of(events, e, m);
    const wire::MgpEvent header = wire::event_from_word(event.header);
    const event::Event all = hits_of<Finder::kLanes>(event, header.hit_count, lane, m);
    const event::Event hits = admit_hits<Finder::kLanes>(work, all, lane);
    const rich::EventRings rings = rings_of<kind>(config, tables, hits, lane, shared[team]);
    if (lane == 0) answer_event(work, hits, rings, header.timestamp, header.fine_time, all.count - hits.count, e, m);
  }
}

// Adds the events' tallies to the block's books. The threads from `first` on call it, all of a warp or none.
__device__ inline void add_tallies(std::uint32_t event_count, std::uint32_t first, std::uint32_t threads, ChunkMemory& m) {
  std::uint32_t* const multiplicity = m.spectra + rich::kSpectrumRadiusBins + 1;
  std::uint32_t* const ring_count = multiplicity + rich::kSpectrumMultiplicityBins;
  Sums sums;
  for (std::uint32_t e = threadIdx.x - first; e < event_count; e += threads - first) {
    const EventTally tally = m.tallies[e];
    atomicAdd(multiplicity + min(tally.multiplicity, static_cast<unsigned char>(rich::kSpectrumMultiplicityBins - 1)), 1u);
    atomicAdd(ring_count + tally.good_rings, 1u);
    for (std::uint32_t k = 0; k < tally.rings; ++k) atomicAdd(m.spectra + tally.radius_bin[k], 1u);
    sums.events += 1;
    sums.rings += tally.good_rings;
    sums.electrons += tally.electrons;
    sums.hits_unmapped += tally.hits_unmapped;
    sums.hits_masked += tally.hits_masked;
    sums.rings_over_answer += tally.more_rings;
    sums.rings_outside += tally.outside;
  }
  const auto add = [](std::uint32_t* to, std::uint32_t n) {
    n = __reduce_add_sync(0xffffffffu, n);
    if (threadIdx.x % 32 == 0 && n != 0) atomicAdd(to, n);
  };
  add(&m.sums.events, sums.events);
  add(&m.sums.rings, sums.rings);
  add(&m.sums.electrons, sums.electrons);
  add(&m.sums.hits_unmapped, sums.hits_unmapped);
  add(&m.sums.hits_masked, sums.hits_masked);
  add(&m.sums.rings_over_answer, sums.rings_over_answer);
  add(&m.sums.rings_outside, sums.rings_outside);
}

// The chunk's answers as one MTP packet in the slot of descriptor `number`; without an event (all packets refused) the descriptor says that nothing is
// to be sent. One warp calls it.
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
  const std::uint32_t bytes = event_count != 0 ? used * static_cast<std::uint32_t>(wire::kMtpWordBytes) : 0;
  if (lane == 0) {
    m.words[0] = wire::mtp_header_time_word(work.answer_source_id, m.answers[0].timestamp);
    m.words[1] = wire::mtp_header_length_word(bytes, event_count, work.answer_source_sub_id);
  }
  __syncwarp();
  const std::uint64_t slot = (number & work.tx_mask) * work.slot_stride_bytes;
  uint4* const to = reinterpret_cast<uint4*>(work.slots + slot);
  for (std::uint32_t v = lane; v * 16 < bytes; v += 32) to[v] = reinterpret_cast<const uint4*>(m.words)[v];
  // The descriptor at once: over PCIe each store would be a packet of its own. No one looks before the doorbell.
  static_assert(sizeof(TxDescriptor) == 4 * sizeof(uint4) && offsetof(TxDescriptor, destination) == 12);
  if (lane < 4) {
    const std::uint64_t low = lane == 0 ? work.slots_host + slot : lane == 1 ? arrival_ns : 0;
    const std::uint64_t high = lane == 0 ? bytes : lane == 3 ? number + 1 : 0;  // destination 0
    auto* const descriptor = reinterpret_cast<uint4*>(work.descriptors + (number & work.tx_mask));
    descriptor[lane] = {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
                        static_cast<std::uint32_t>(high >> 32)};
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
template <rich::FinderKind kind, bool in_place>
__device__ inline void work_on_chunks(const rich::FinderConfig& config, const DeviceTables& tables, const Work& work,
                                      const Item& item, std::uint32_t rank, std::uint32_t ranks, BlockMemory<kind>& memory) {
  constexpr std::uint32_t kThreads = TeamFinder<kind>::kThreads;
  ChunkMemory& m = memory.chunk;
  const ChunkPlan plan = plan_chunks(item.word);
  std::uint32_t samples_taken = 0;
  if (threadIdx.x == 0) samples_taken = load_relaxed_gpu(&work.samples->taken);
  for (std::uint32_t chunk = rank; chunk < plan.chunks; chunk += ranks) {
    const std::uint32_t first = chunk * plan.packets;
    const std::uint32_t count = min(plan.packets, item.word.packet_count - first);
    stage_packets<kThreads, in_place>(work, item, first, count, m);
    if (threadIdx.x == 0) m.sampling = samples_taken < rich::kSamples;
    __syncthreads();
    if (is_in_place<in_place>(work, item)) check_placed<kThreads>(count, m.staged, m.placed);
    const ChunkEvents events = look_at_packets(item, first, count, m);
    if (!events.all_padded) {
      list_events<kThreads>(count, m);
      __syncthreads();
    }
    judge_events<kind>(config, tables, work, events, m, memory.teams);
    __syncthreads();
    // The first warp answers, the others keep the books.
    static_assert(kThreads > 32);
    if (threadIdx.x >= 32) {
      add_tallies(events.count, 32, kThreads, m);
    } else if (work.descriptors != nullptr) {
      write_answers(work, item.tx_first + chunk, item.arrival_ns, events.count, m);
    }
    if (chunk + ranks < plan.chunks) __syncthreads();
  }
}

// Gives the answers away and the buffer back. One thread calls it, when all chunks are done; buffers go in order.
template <bool in_place>
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
  work.report->totals = {load_relaxed_gpu(&work.totals->events),       load_relaxed_gpu(&work.totals->rings),
                         load_relaxed_gpu(&work.totals->electrons),    load_relaxed_gpu(&work.totals->hits_unmapped),
                         load_relaxed_gpu(&work.totals->hits_masked),  load_relaxed_gpu(&work.totals->rings_over_answer),
                         load_relaxed_gpu(&work.totals->rings_outside)};
  if (in_place && work.bodies != nullptr)
    work.report->bodies = {load_relaxed_gpu(&work.bodies->packets_bad), load_relaxed_gpu(&work.bodies->events_bad)};
  group.arrived = 0;
  fence_sys();  // whoever sees that the buffer is back sees the doorbell too
  store_relaxed_sys(work.clops[item.word.clop].released, released);
  store_relaxed_sys(work.popped, item.number + 1);
  store_release_gpu(&order.finished, item.number + 1);
  store_release_gpu(&group.done, item.number + 1);
}

// After its chunks each block says so; the last one finishes the buffer. The first warp calls it, which wrote the answers.
template <bool in_place>
__device__ inline void arrive(const Work& work, const Item& item, Group& group, std::uint32_t ranks) {
  if (threadIdx.x != 0) return;
  fence_sys();  // answers and descriptors are in the host's memory before anyone learns of it
  if (ranks == 1 || add_relaxed_gpu(&group.arrived, 1) + 1 == ranks) finish_item<in_place>(work, item, group);
}

// The block's books go to the GPU's, when the answers have left: no one waits for that.
template <std::uint32_t threads, bool in_place>
__device__ inline void give_books(const Work& work, ChunkMemory& m) {
  __syncthreads();
  const auto add = [](std::uint64_t* to, std::uint32_t n) {
    if (n != 0) atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(n));
  };
  auto* const spectra = reinterpret_cast<std::uint64_t*>(work.spectra);
  for (std::uint32_t i = threadIdx.x; i < std::size(m.spectra); i += threads) {
    add(spectra + i, m.spectra[i]);
    m.spectra[i] = 0;
  }
  if (threadIdx.x == 0) {
    add(&work.totals->events, m.sums.events);
    add(&work.totals->rings, m.sums.rings);
    add(&work.totals->electrons, m.sums.electrons);
    add(&work.totals->hits_unmapped, m.sums.hits_unmapped);
    add(&work.totals->hits_masked, m.sums.hits_masked);
    add(&work.totals->rings_over_answer, m.sums.rings_over_answer);
    add(&work.totals->rings_outside, m.sums.rings_outside);
    m.sums = {};
    if (in_place && work.bodies != nullptr) {
      add(&work.bodies->packets_bad, m.placed.bad_packets);
      add(&work.bodies->events_bad, m.placed.bad_events);
      m.placed.bad_packets = m.placed.bad_events = 0;
    }
  }
  __syncthreads();
}

}  // namespace nanet::gpu
