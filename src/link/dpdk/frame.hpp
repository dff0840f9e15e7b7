// SPDX-License-Identifier: Apache-2.0
// A received frame as the device laid it down: one buffer, or several where it is longer than a buffer or the device splits headers from data.
//
// Without DPDK's own headers, so that whoever has made up frames in memory of another kind can read them: a Buffer is rte_mbuf, or has its
// fields buf_addr, data_off, data_len, pkt_len (of the first: of all together) and next.
//
// Thread rules: pure functions on memory that is the caller's.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "link/udp_frame.hpp"
#include "nanet/contract.hpp"
#include "nanet/flow/payload_memory.hpp"

namespace nanet::link::dpdk {

// What the first buffer holds: all headers, unless someone split the frame in the middle of them.
template <typename Buffer>
std::span<const std::byte> head_of(const Buffer& frame) {
  return {static_cast<const std::byte*>(frame.buf_addr) + frame.data_off, frame.data_len};
}

// A UDP payload in a frame.
struct UdpPart {
  UdpFlow flow;
  std::size_t offset;  // from the start of the frame
  std::size_t bytes;
};

// Copies `bytes` from `offset` of the frame on. They must be there.
template <typename Buffer>
void copy_part(std::byte* out, const Buffer& frame, std::size_t offset, std::size_t bytes) {
  const Buffer* buffer = &frame;
  while (bytes != 0) {
    if (offset >= buffer->data_len) {
      offset -= buffer->data_len;
    } else {
      const std::size_t count = std::min<std::size_t>(buffer->data_len - offset, bytes);
      std::memcpy(out, head_of(*buffer).data() + offset, count);
      out += count;
      bytes -= count;
      offset = 0;
    }
    buffer = buffer->next;
  }
}

enum class FirstHeader : std::uint8_t { ethernet, ipv4 };

inline constexpr std::size_t kHeadersBytesMax = 90;  // Ethernet, two VLAN tags, IPv4 with all options it can have, UDP

inline std::span<const std::byte> ipv4_of(std::span<const std::byte> head, FirstHeader first) {
  return first == FirstHeader::ethernet ? find_ipv4(head) : head;
}

inline FrameError find_udp_in(std::span<const std::byte> head, std::size_t frame_bytes, FirstHeader first, UdpPart& part) {
  const std::span<const std::byte> ip = ipv4_of(head, first);
  const std::size_t before_ip = head.size() - ip.size();
  UdpPlace place;
  const FrameError error = locate_ipv4_udp(ip, frame_bytes - before_ip, place);
  if (error == FrameError::none) part = {place.flow, before_ip + place.payload_offset, place.payload_bytes};
  return error;
}

// `part` is written only when none is returned. The second buffer is looked at only if tags or options pushed headers into it.
template <typename Buffer>
FrameError find_udp(const Buffer& frame, FirstHeader first, UdpPart& part) {
  const std::span<const std::byte> head = head_of(frame);
  const FrameError error = find_udp_in(head, frame.pkt_len, first, part);
  if (error != FrameError::cut || frame.next == nullptr || head.size() >= kHeadersBytesMax) return error;
  std::array<std::byte, kHeadersBytesMax> headers;
  const std::size_t bytes = std::min<std::size_t>(frame.pkt_len, headers.size());
  copy_part(headers.data(), frame, 0, bytes);
  return find_udp_in(std::span(headers).first(bytes), frame.pkt_len, first, part);
}

// A frame that was not delivered is malformed if its headers, as far as they are there, name this address and port: its lengths contradict
// each other, it is a fragment, or the NIC found a checksum to be wrong.
inline bool is_for_port(std::span<const std::byte> frame, FirstHeader first, std::uint32_t address, std::uint16_t port) {
  const auto be = [](std::span<const std::byte> from, std::size_t offset, std::size_t bytes) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<std::uint32_t>(from[offset + i]);
    return value;
  };
  const std::span<const std::byte> ip = ipv4_of(frame, first);
  if (ip.size() < 20 || be(ip, 9, 1) != 17 || be(ip, 16, 4) != address) return false;
  const std::size_t header_bytes = 4 * (be(ip, 0, 1) & 0xFu);
  const bool is_first_fragment = (be(ip, 6, 2) & 0x1FFFu) == 0;
  return !is_first_fragment || header_bytes < 20 || ip.size() < header_bytes + 4 || be(ip, header_bytes + 2, 2) == port;
}

// Where a payload lies that is lent: address, bytes, head_bytes and head of `placed`. For a GPU's memory frames are split: the first head_bytes_max
// bytes of the payload are in the first buffer, what follows is in one of that memory, which is not looked at. False, with nothing changed: the
// payload (after its head, of a split frame) is not in one piece, or not in the memory where payloads stay.
template <typename Buffer>
bool place_payload(const Buffer& frame, const UdpPart& part, const flow::PayloadMemory& payloads, PlacedPacket& placed) {
  const bool is_split = payloads.kind == MemoryKind::device;
  const std::span<const std::byte> memory = payloads.memory;
  const std::size_t head_bytes = is_split ? PlacedPacket::head_bytes_max : 0;
  const std::size_t in_head = std::min(head_bytes, part.bytes);
  const std::size_t rest = part.bytes - in_head;
  const std::size_t head_end = part.offset + in_head;
  const std::span<const std::byte> head = head_of(frame);
  if (head_end > head.size()) return false;
  const std::byte* address = head.data() + head_end;
  if (is_split) {
    address = memory.data();  // of no byte
    if (rest != 0) {
      if (head_end != head.size() || frame.next == nullptr || frame.next->data_len < rest) return false;
      address = head_of(*frame.next).data();
    }
  } else if (head_end + rest > head.size()) {
    return false;
  }
  if (address < memory.data() || address + rest > memory.data() + memory.size()) return false;
  std::memcpy(placed.head, head.data() + part.offset, in_head);
  placed.address = std::bit_cast<std::uint64_t>(address);
  placed.bytes = static_cast<std::uint16_t>(part.bytes);
  placed.head_bytes = static_cast<std::uint16_t>(head_bytes);
  return true;
}

}  // namespace nanet::link::dpdk
