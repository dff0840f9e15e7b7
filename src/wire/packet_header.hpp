// SPDX-License-Identifier: Apache-2.0
// The 16 header bytes that MGP and M2EGP share, and their run markers. Header is MgpHeader or M2egpHeader; which layouts it may
// have is for the format to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "nanet/setup_error.hpp"
#include "nanet/wire/mgp.hpp"

namespace nanet::wire {

inline constexpr unsigned kLayoutMask = 0x0F;
inline constexpr unsigned kRunStartBit = 0x10;
inline constexpr unsigned kRunEndBit = 0x20;

// Fills all of `header` but its layout, whatever the format byte says.
template <class Header>
inline void load_header(const std::byte* data, Header& header) {
  const auto first = load_le<std::uint32_t>(data);
  header.source_id = static_cast<std::uint8_t>(first);
  header.source_sub_id = static_cast<std::uint8_t>(first >> 8);
  header.run_start = (first >> 16 & kRunStartBit) != 0;
  header.run_end = (first >> 16 & kRunEndBit) != 0;
  header.event_count = static_cast<std::uint8_t>(first >> 24);
  header.sequence = load_le<std::uint32_t>(data + 4);
  header.send_time_ns = load_le<std::uint32_t>(data + 8);
}

// No bit of the format byte that means nothing is set, and a marker says exactly one thing.
template <class Header>
inline bool flags_are_good(const std::byte* data, const Header& header) {
  const auto format = static_cast<unsigned>(data[2]);
  return (format & ~(kLayoutMask | kRunStartBit | kRunEndBit)) == 0 &&
         (header.event_count != 0 || header.run_start != header.run_end);
}

template <class Header>
inline void write_header(std::byte* data, const Header& header, unsigned layout, std::size_t event_count) {
  const unsigned format = layout | (header.run_start ? kRunStartBit : 0u) | (header.run_end ? kRunEndBit : 0u);
  store_le(data, header.source_id);
  store_le(data + 1, header.source_sub_id);
  store_le(data + 2, static_cast<std::uint8_t>(format));
  store_le(data + 3, static_cast<std::uint8_t>(event_count));
  store_le(data + 4, header.sequence);
  store_le(data + 8, header.send_time_ns);
  store_le(data + kChecksumOffset, std::uint32_t{0});
}

// Whether a packet can hold its first event, of so many bytes, and the headers of the others.
inline bool head_bytes_fit(std::size_t packet_bytes, std::size_t first_event_bytes, std::size_t event_count) {
  return kMgpHeaderBytes + first_event_bytes + (event_count - 1) * kMgpEventHeaderBytes <= packet_bytes;
}

inline bool checksum_is_good(std::span<const std::byte> payload) {
  return load_le<std::uint32_t>(payload.data() + kChecksumOffset) == mgp_checksum(payload);
}

inline void require_packet_room(std::size_t room_bytes) {
  if (room_bytes >= kMgpMarkerBytes) return;
  throw SetupError("no room for a packet", "a packet needs at least 24 bytes, given " + std::to_string(room_bytes),
                   "give the builder 1472 bytes");
}

template <class Header>
inline std::span<std::byte> write_marker(std::span<std::byte> room, const Header& header, unsigned layout,
                                         std::uint64_t next_event_number) {
  if (room.size() < kMgpMarkerBytes) {
    throw SetupError("no room for a run marker", "it needs 24 bytes, given " + std::to_string(room.size()), "give it 24 bytes");
  }
  if (header.run_start == header.run_end) {
    throw SetupError("a run marker must say start or end", header.run_start ? "both are set" : "none is set",
                     "set exactly one of run_start and run_end");
  }
  write_header(room.data(), header, layout, 0);
  store_le(room.data() + kMgpHeaderBytes, next_event_number);
  const auto payload = room.first(kMgpMarkerBytes);
  seal(payload);
  return payload;
}

}  // namespace nanet::wire
