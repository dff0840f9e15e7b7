// SPDX-License-Identifier: Apache-2.0
// What host and kernels agree on beside the contract: pointers are the device's unless they say otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "event/part_table.hpp"
#include "nanet/contract.hpp"
#include "nanet/gpu/event_processor.hpp"
#include "nanet/rich/decision.hpp"
#include "nanet/rich/spectra.hpp"

namespace nanet::gpu {

// Packets are worked on in chunks; a block of threads takes one at a time, and each is answered by one MTP packet: 182 events always fit.
inline constexpr std::uint32_t kChunkPacketsMax = 4;
inline constexpr std::uint32_t kChunkEvents = 64;  // aimed at: enough for a block, few enough that 1024 events keep 16 blocks busy
inline constexpr std::uint32_t kChunkEventsMax = 182;
static_assert((kPacketBytesMax - 16) / 8 == kChunkEventsMax, "a packet may have that many events without hits");

// The last 16 bytes of a completion but the sequence: what a block needs to know of a buffer.
struct BufferWord {
  std::uint16_t buffer_index;
  std::uint16_t packet_count;
  std::uint16_t stride_bytes;
  std::uint8_t clop;
  std::uint8_t packet_events_max;
};
static_assert(sizeof(BufferWord) == 8 && offsetof(Completion, buffer_index) == 48 && offsetof(Completion, sequence) == 60);

struct ChunkPlan {
  std::uint32_t packets;  // of a chunk
  std::uint32_t chunks;   // of the buffer
};

NANET_HD inline ChunkPlan plan_chunks(BufferWord word) {
  // A power of two: no division.
  const std::uint32_t shift = word.packet_events_max <= kChunkEvents / 4 ? 2 : word.packet_events_max <= kChunkEvents / 2 ? 1 : 0;
  const std::uint32_t packets = 1u << shift;
  return {packets, (word.packet_count + packets - 1) >> shift};
}

struct DeviceClop {
  const std::byte* buffers;
  const PacketRef* index;
  std::uint64_t* released;  // Indexes::consumed
  std::uint32_t buffer_bytes;
  std::uint32_t index_capacity;
  std::uint64_t payload_to_device;  // in place: to be added to PlacedPacket::address
  bool in_place;                    // its buffers hold a PlacedPacket for each packet
};

// Host to GPU, in pinned memory, a line for each group of blocks: a line of the host's memory that several of them poll makes each wait for the
// others. One load of 16 bytes tells all.
struct alignas(64) HostWords {
  std::uint64_t stop;    // a Stop
  std::uint64_t now_ns;  // at the host's last poll; event building: its caught_up_ns
};
enum class Stop : std::uint64_t { no = 0, when_idle = 1, now = 2 };

// As in Totals.
struct RingTotals {
  std::uint64_t events;
  std::uint64_t rings;
  std::uint64_t electrons;
  std::uint64_t hits_unmapped;
  std::uint64_t hits_masked;
  std::uint64_t rings_over_answer;
  std::uint64_t rings_outside;
};

// As in Totals, of packets in place.
struct BodyTotals {
  std::uint64_t packets_bad;
  std::uint64_t events_bad;
};

// GPU to host, in pinned memory.
struct alignas(64) Report {
  RingTotals totals;
  // Of event building.
  std::uint64_t merger[event::kPartCounts];  // as PartTableState::totals
  std::uint64_t discarded;                   // events
  std::uint64_t oldest_ns;                   // no open event is older
  BodyTotals bodies;                         // not only of event building
  std::uint64_t round;                       // index of the round done last
};

// Blocks that work on one buffer together.
struct alignas(128) Group {
  std::uint32_t relay[8];  // two pieces of 16 bytes that the leading block writes for the others: {tag, BufferWord, arrival low}, {tag, tx_first and stop, arrival high}
  alignas(128) std::uint32_t arrived;  // blocks that are done with the buffer
  alignas(128) std::uint64_t done;     // number of the buffer done last, + 1
};

// What goes from buffer to buffer, in order.
struct alignas(128) Order {
  std::uint64_t planned;                // buffers whose descriptors have their places ...
  std::uint64_t tx_first;               // ... and the place of the next one
  alignas(128) std::uint64_t finished;  // buffers given back
  std::uint64_t released[kClopsMax];    // of each CLOP
  alignas(128) std::uint32_t abort;     // the host wants an end at once
};

struct DeviceSamples {
  std::uint32_t taken;
  rich::EventSample* events;  // kSamples, in pinned memory
};

// Everything that stays as it is during a run.
struct Work {
  const Completion* completions;
  std::uint64_t* popped;  // Indexes::consumed of the completion queue
  DeviceClop clops[kClopsMax];
  TxDescriptor* descriptors;  // null: no answers
  std::byte* slots;
  std::uint64_t slots_host;  // the host's address of the slots
  Indexes* tx_indexes;
  const HostWords* words;  // of each group
  Report* report;
  Group* groups;
  Order* order;
  RingTotals* totals;
  BodyTotals* bodies;  // null: no CLOP is in place
  rich::Spectra* spectra;
  std::uint64_t* channel_hits;   // kChannelCount
  const rich::ChannelSet* mask;  // null: it is empty
  DeviceSamples* samples;
  rich::RingCuts cuts;
  const rich::ConditionTable* conditions;  // null: there are none
  std::uint64_t first_number;              // of the completions of this run
  std::uint32_t completion_mask;
  std::uint32_t tx_mask;
  std::uint32_t slot_stride_bytes;
  std::uint32_t group_count;   // buffers in flight
  std::uint32_t group_blocks;  // blocks of a group, persistent only
  std::uint8_t answer_source_id;
  std::uint8_t answer_source_sub_id;
};

// One buffer for a block to work on.
struct Item {
  std::uint64_t number;      // of the completion, from 0
  std::uint64_t tx_first;    // number of the first descriptor
  std::uint64_t arrival_ns;  // of the oldest packet
  BufferWord word;
  const std::byte* buffer;  // in the CLOP, or its copy on the device
};

}  // namespace nanet::gpu
