// SPDX-License-Identifier: Apache-2.0
// What the assembler is told of a packet of a declared format.
#pragma once

#include "nanet/engine/unit_facts.hpp"
#include "nanet/format/decoder.hpp"

namespace nanet::engine {

inline UnitFacts unit_facts_of(const format::Packet& packet, const format::Facts& facts) {
  // Without payload it ends where its place is: at 0 the unit is empty. Where packets are counted, a trailer's number says nothing.
  const bool is_last = (packet.flags & format::Packet::last) != 0 && (packet.payload_bytes > 0 || !facts.has_packet_index);
  return {.stream = packet.stream,
          .unit = packet.unit,
          .place = packet.place,
          .unit_bytes = packet.unit_bytes,
          .time = packet.time,
          .payload_offset = packet.payload_offset,
          .payload_bytes = packet.payload_bytes,
          .ends_unit = !facts.has_place || is_last,
          .unit_packets = packet.unit_packets,
          .place_is_index = facts.has_packet_index};
}

}  // namespace nanet::engine
