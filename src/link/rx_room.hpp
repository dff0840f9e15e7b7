// SPDX-License-Identifier: Apache-2.0
// The caller's room and packet entries of one receive(), and how far they are filled: what every link below which there is no other fills alike.
// Payloads begin at multiples of 8 bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "nanet/link/link.hpp"

namespace nanet::link {

struct RxRoom {
  std::byte* room;
  std::uint32_t room_bytes;
  RxPacket* packets;
  std::uint32_t packets_max;
  std::uint32_t used = 0;  // end of the last packet
  std::uint32_t packet_count = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t copied_bytes = 0;

  RxRoom(std::span<std::byte> bytes, std::span<RxPacket> entries)
      : room(bytes.data()), room_bytes(limited(bytes.size())), packets(entries.data()), packets_max(limited(entries.size())) {}

  std::uint32_t next_offset() const { return (used + 7u) & ~7u; }
  std::uint32_t room_left() const { return next_offset() < room_bytes ? room_bytes - next_offset() : 0; }
  std::uint32_t packets_left() const { return packets_max - packet_count; }
  // A payload that lies elsewhere. False: there is no room for it, and nothing has changed.
  bool add(std::span<const std::byte> payload, std::uint16_t peer_port, std::uint16_t flags = 0) {
    if (payload.size() > room_left()) return false;
    const std::uint32_t offset = next_offset();
    if (!payload.empty()) std::memcpy(room + offset, payload.data(), payload.size());
    packets[packet_count++] = {.offset = offset,
                               .bytes = static_cast<std::uint16_t>(payload.size()),
                               .peer_port = peer_port,
                               .peer_address = 0,
                               .flags = flags,
                               .reserved = 0};
    used = offset + static_cast<std::uint32_t>(payload.size());
    payload_bytes += payload.size();
    return true;
  }
  RxBatch batch() const { return {packet_count, std::min(next_offset(), room_bytes)}; }

 private:
  static std::uint32_t limited(std::size_t count) {
    return static_cast<std::uint32_t>(std::min<std::size_t>(count, std::size_t{1} << 31));
  }
};

}  // namespace nanet::link
