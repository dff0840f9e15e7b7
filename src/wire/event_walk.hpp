// SPDX-License-Identifier: Apache-2.0
// The events and hits of a packet by plain functions over its bytes, for GPU lanes and for the CPU: what the cursors of MGP and
// M2EGP give one after the other, here any lane finds for itself.
//
// Terms
//   payload   the bytes of a data packet that a view has accepted (MgpView or M2egpView::parse): nothing is checked again here.
//   offset    of an event's header from the start of the payload, in bytes.
//   place     an event's offset and header; hit k of it is found without the hits before.
//
// Where things lie: in a padded packet every event by its number. In a packed and in a merged (M2EGP) packet an event lies
// right after the one before, so one lane walks: next_event_offset() reads a single byte an event. Then every event, and every hit
// of it, is for any lane to read.
//
// On the host nothing is read outside the payload, and it may lie at any even address. A GPU reads the head and event headers in aligned
// 4-byte words: there the payload starts at a multiple of 8, and memory is readable up to the multiple of 4 after its end.
//
// Thread rules: pure functions; an EventWalk belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/wire/m2egp.hpp"
#include "nanet/wire/mgp.hpp"

namespace nanet::wire {

enum class PacketFormat : std::uint8_t { padded = 1, packed = 2, merged = 3 };  // bits 3..0 of the format byte

struct PacketHead {
  PacketFormat format = PacketFormat::padded;
  std::uint8_t source_id = 0;
  std::uint8_t source_sub_id = 0;  // packed: the board, 0..3
  std::uint8_t event_count = 0;    // 0: a run marker, which has no events
};

NANET_HD inline PacketHead load_packet_head(const std::byte* payload) {
  const auto word = load_le_aligned<std::uint32_t>(payload);
  return {static_cast<PacketFormat>(word >> 16 & 0x0Fu), static_cast<std::uint8_t>(word), static_cast<std::uint8_t>(word >> 8),
          static_cast<std::uint8_t>(word >> 24)};
}

struct EventPlace {
  std::uint32_t offset = 0;
  MgpEvent event;
};

// From an event's header to the next one's.
NANET_HD constexpr std::uint32_t event_bytes(PacketFormat format, std::uint32_t hit_count) {
  if (format == PacketFormat::padded) return static_cast<std::uint32_t>(kMgpSlotBytes);
  return static_cast<std::uint32_t>(format == PacketFormat::packed ? mgp_packed_event_bytes(hit_count)
                                                                   : m2egp_event_bytes(hit_count));
}

inline constexpr std::uint32_t kFirstEventOffset = static_cast<std::uint32_t>(kMgpHeaderBytes);

// Precondition: offset is that of an event, not of the packet's end.
NANET_HD inline std::uint32_t next_event_offset(const std::byte* payload, PacketFormat format, std::uint32_t offset) {
  return offset + event_bytes(format, static_cast<std::uint32_t>(payload[offset + 5]));
}

NANET_HD inline EventPlace event_at(const std::byte* payload, std::uint32_t offset) {
  return {offset, load_event(payload + offset)};
}

// Precondition: event_index < event_count of a padded packet.
NANET_HD inline EventPlace padded_event(const std::byte* payload, std::uint32_t event_index) {
  const auto offset = static_cast<std::uint32_t>(mgp_slot_offset(event_index));
  return {offset, event_from_word(load_le_aligned<std::uint64_t>(payload + offset))};
}

// PM id number k (9 bits, LSB first) of an event's packed ids as a channel of its board. Reads two bytes, which are
// id k's own for any k below the hit count.
NANET_HD inline std::uint16_t unpack_id(const std::byte* packed, std::uint32_t k, unsigned board) {
  const std::uint32_t bit = 9 * k;
  const std::byte* const from = packed + bit / 8;
  const unsigned two_bytes = static_cast<unsigned>(from[0]) | static_cast<unsigned>(from[1]) << 8;
  return static_cast<std::uint16_t>((two_bytes >> bit % 8 & 0x1FFu) | (board & 3u) * kChannelsPerBoard);
}

// Hit k of an event, k < hit_count. Packed hits have a channel only: their time is 0.
NANET_HD inline std::uint16_t load_hit(const std::byte* payload, PacketHead head, std::uint32_t event_offset, std::uint32_t k) {
  const std::byte* const hits = payload + event_offset + kMgpEventHeaderBytes;
  if (head.format == PacketFormat::packed) return unpack_id(hits, k, head.source_sub_id);
  return load_le_aligned<std::uint16_t>(hits + 2 * k);
}

// All events of a packet of any format, first to last.
class EventWalk {
 public:
  NANET_HD EventWalk(const std::byte* payload, PacketHead head)
      : payload_(payload), format_(head.format), events_left_(head.event_count) {}

  // False after the last event, and for a marker.
  NANET_HD bool next(EventPlace& place) {
    if (events_left_ == 0) return false;
    --events_left_;
    place = event_at(payload_, offset_);
    offset_ += event_bytes(format_, place.event.hit_count);
    return true;
  }

 private:
  const std::byte* payload_;
  std::uint32_t offset_ = kFirstEventOffset;
  PacketFormat format_;
  unsigned events_left_;
};

}  // namespace nanet::wire
