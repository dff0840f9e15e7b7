// SPDX-License-Identifier: Apache-2.0
// The NIC contract: what a NIC and a consumer of its data agree on, in memory, little-endian.
//
// Terms
//   CLOP        circular list of persistent receive buffers: `buffer_count` buffers of `buffer_bytes`, allocated once.
//   packet index  one PacketRef for each good packet of a buffer, in memory beside the buffer.
//   unit        what many packets carry together, such as a frame or an event of 64 B to 1 GiB: in a CLOP of units a buffer holds one, and its UnitHead is
//               in the memory of its packet index.
//   in place    a CLOP whose payloads stay where the NIC wrote them: its buffers hold a PlacedPacket instead of each payload.
//   completion  one 64-byte entry of the completion queue: a buffer was filled, a packet was sent, or an error happened.
//   descriptor  one 64-byte entry of the TX ring: a request to send some bytes.
//   doorbell    the producer index of the TX ring, the only word that a sender of answers has to touch.
//
// Rules
//   * `sequence` of entry k (k = 0, 1, ...) is k + 1 (of a completion its low 32 bits) and is written last, with release order; memory starts zeroed.
//     A consumer that reads sequence k + 1 with acquire order sees all of entry k. An entry that reads anything else is not there yet.
//   * The last 16 bytes of a completion hold what a consumer needs to begin: a consumer that loads them in one piece (a GPU over PCIe) need not
//     load the completion again after it has seen the sequence.
//   * A buffer belongs to the NIC until its completion is written, then to the consumer until it advances the CLOP's
//     consumer index. Buffers are returned in the order in which they were handed over; in a CLOP of units that need not be the order of their
//     indexes.
//   * A buffer is handed over when it is full, when its oldest packet is `timeout_ns` old and the consumer waits for it (or
//     soon will: it has fewer than two others), or on flush.
//   * With no free buffer a packet is dropped and counted under its own name. Nothing blocks, nothing is overwritten.
//   * All times are CLOCK_MONOTONIC nanoseconds unless a name says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace nanet {

enum class MemoryKind : std::uint32_t { host = 0, host_pinned = 1, device = 2 };

enum class CompletionKind : std::uint8_t { buffer_filled = 1, packet_sent = 2, error = 3, message = 4 };

// Completion::status is an OR of these.
namespace status {
inline constexpr std::uint16_t full = 1u << 0;       // handed over because no further packet fitted
inline constexpr std::uint16_t timeout = 1u << 1;    // handed over because its oldest packet was timeout_ns old
inline constexpr std::uint16_t flush = 1u << 2;      // handed over because the run was flushed or stopped
inline constexpr std::uint16_t gap = 1u << 3;        // packets are missing before or inside this buffer, see packets_lost
inline constexpr std::uint16_t truncated = 1u << 4;  // at least one packet was longer than its room and was cut
inline constexpr std::uint16_t error = 1u << 5;      // at least one packet was refused; it is not in the packet index
inline constexpr std::uint16_t run_start = 1u << 6;  // at least one packet has PacketRef::run_start
inline constexpr std::uint16_t in_place = 1u << 7;  // the buffer holds a PlacedPacket for each packet; so do all others of this CLOP
inline constexpr std::uint16_t unit = 1u << 8;  // the buffer holds one unit, and its packet index a UnitHead; so do all others of this CLOP
inline constexpr std::uint16_t incomplete = 1u << 9;  // parts of the unit are missing, and what lies there is of no meaning
}  // namespace status

// Where one packet lies in its buffer. A consumer needs the index only when Completion::stride_bytes is 0.
struct PacketRef {
  std::uint32_t offset;  // of the first byte, from the start of the buffer
  std::uint16_t bytes;
  std::uint16_t source;  // bits 14..0: index of the source in the router's table, not its wire ID; bit 15: run_start

  static constexpr std::uint16_t source_mask = 0x7FFF;
  static constexpr std::uint16_t run_start = 0x8000;  // the first packet after this source began a new run
};
static_assert(sizeof(PacketRef) == 8);

// In place of a payload: where it lies. In such a buffer PacketRef::offset is that of the PlacedPacket, PacketRef::bytes the payload's, and
// stride_bytes is 0. The memory named here is the consumer's exactly as long as the buffer is.
struct alignas(16) PlacedPacket {
  static constexpr std::uint32_t head_bytes_max = 24;  // a packet's header and that of its first event

  std::byte head[head_bytes_max];  // the first head_bytes of the payload
  std::uint64_t address;           // of the payload's byte number head_bytes, for the host; a GPU may see it elsewhere
  std::uint64_t handle;            // the link's: gives the memory back
  std::uint16_t bytes;             // of the payload, the head included
  std::uint16_t head_bytes;  // 0: the payload is in one piece and was checked. Else head_bytes_max: the host cannot read the rest,
                             // and the consumer has to check it
  std::uint32_t reserved;
};
static_assert(sizeof(PlacedPacket) == 48 && std::is_trivially_copyable_v<PlacedPacket>);
static_assert(offsetof(PlacedPacket, address) == 24 && offsetof(PlacedPacket, bytes) == 40);

// A unit. After it in the packet index's memory come `range_count` UnitRanges: the bytes that came, ascending, with a hole between any two.
// A complete unit has one range, from 0 to `bytes`.
struct UnitHead {
  std::uint64_t stream;  // who sends it, and which it is of that stream: as the format says
  std::uint64_t unit;
  std::uint64_t time;             // as the format says; 0: it says none
  std::uint64_t first_packet_ns;  // arrival of the packets that are in it
  std::uint64_t last_packet_ns;
  std::uint32_t bytes;            // its length; of an incomplete unit of which no packet said it, up to the last byte that came
  std::uint32_t bytes_missing;    // in its holes
  std::uint32_t packet_count;     // that were put into it
  std::uint32_t packets_missing;  // as many of its longest packets as its holes have room for
  std::uint32_t piece_bytes;      // longest payload of a packet
  std::uint32_t range_count;
};
static_assert(sizeof(UnitHead) == 64 && std::is_trivially_copyable_v<UnitHead>);
static_assert(offsetof(UnitHead, bytes) == 40 && offsetof(UnitHead, range_count) == 60);

struct UnitRange {
  std::uint32_t begin;  // bytes from the start of the unit
  std::uint32_t end;    // first one after them
};
static_assert(sizeof(UnitRange) == sizeof(PacketRef));

struct alignas(64) Completion {
  std::uint64_t first_packet_ns;  // arrival of the oldest packet in the buffer
  std::uint64_t last_packet_ns;   // arrival of the newest; for packet_sent: when it left
  std::uint64_t tag;              // buffer_filled: hand-over number, from 0; packet_sent: the descriptor's tag
  std::uint32_t bytes;            // bytes in use, from offset 0, holes of refused packets included
  std::uint32_t event_count;      // events in those packets, as their headers say
  std::uint32_t packets_lost;     // newly known to be missing since the previous completion of this CLOP
  std::uint16_t status;
  CompletionKind kind;
  std::uint8_t reserved0;
  std::uint64_t reserved1;
  std::uint16_t buffer_index;
  std::uint16_t packet_count;  // entries of the packet index
  std::uint16_t stride_bytes;  // not 0: every packet is this long and packet p starts at p * stride_bytes
  std::uint8_t clop;
  std::uint8_t packet_events_max;  // of the packets, the largest number of events; 255: that or more
  std::uint32_t first_packet_low;  // low half of first_packet_ns
  std::uint32_t sequence;          // written last
};
static_assert(sizeof(Completion) == 64 && std::is_trivially_copyable_v<Completion>);
static_assert(offsetof(Completion, bytes) == 24 && offsetof(Completion, buffer_index) == 48 && offsetof(Completion, sequence) == 60);

struct alignas(64) TxDescriptor {
  std::uint64_t address;      // of the payload, in memory registered with the TX ring's owner
  std::uint32_t bytes;        // 0: there is nothing to send, and no packet_sent comes
  std::uint32_t destination;  // index in the sender's table of destinations
  std::uint64_t tag;          // comes back in the packet_sent completion
  std::uint64_t reserved[4];
  std::uint64_t sequence;  // written last
};
static_assert(sizeof(TxDescriptor) == 64 && std::is_trivially_copyable_v<TxDescriptor>);
static_assert(offsetof(TxDescriptor, tag) == 16 && offsetof(TxDescriptor, sequence) == 56);

// An entry of a TX ring whose NIC stands in a torus: a message to another node. Its kind stands where a TxDescriptor has the highest byte of its destination, so
// neither is taken for the other. docs/apenet-rdma-format.md has the kinds, and what each of them needs.
struct alignas(64) MessageDescriptor {
  std::uint64_t address;  // of the bytes here, as a TxDescriptor's; of a GET bits 47..40 the region that they come to, 39..0 from which byte of it on
  std::uint32_t bytes;
  std::uint16_t node;  // whereto: x 6 bits, y 5, z 5, x lowest
  std::uint8_t port;   // of that node
  std::uint8_t kind;
  std::uint64_t tag;          // comes back in the packet_sent completion; of a GET with what it asked for, too
  std::uint64_t remote;       // bits 47..40 the region there, 39..0 from which byte of it on; of an EVENT bits 15..0 its value
  std::uint32_t nonce;        // of that region
  std::uint32_t local_nonce;  // of a GET: of the region here
  std::uint16_t process;      // comes with the message
  std::uint16_t reserved0;
  std::uint32_t reserved1;
  std::uint64_t reserved2;
  std::uint64_t sequence;  // written last
};
static_assert(sizeof(MessageDescriptor) == 64 && std::is_trivially_copyable_v<MessageDescriptor>);
static_assert(offsetof(MessageDescriptor, kind) == 15 && offsetof(MessageDescriptor, sequence) == 56);

// The two running numbers of a CLOP or ring, in its own memory after the entries, so that whoever sees the memory sees them too. Each is on
// a cache line of its own and written by one side only, with release order; neither ever wraps.
struct Indexes {
  alignas(64) std::uint64_t produced;  // buffers handed over; descriptors rung (the doorbell)
  alignas(64) std::uint64_t consumed;  // buffers returned; completions taken; descriptors sent
};
static_assert(sizeof(Indexes) == 128 && std::is_trivially_copyable_v<Indexes>);

}  // namespace nanet
