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
#include <type_traits>

#include "link/udp_frame.hpp"
#include "nanet/contract.hpp"
#include "nanet/flow/payload_memory.hpp"

namespace nanet::link::dpdk {

// What the first buffer holds: all headers, unless someone split the frame in the middle of them.
template <typename Buffer>
std::span<const std::byte> head_of(const Buffer& frame) {
  return {static_cast<const std::byte*>(frame.buf_addr) + frame.data_off, frame.data_len};
}

// A UDP payload in a frame. Address: of IPv4 its number, which costs nothing to read; of IPv6 an IpAddress without a scope, as no frame says one.
template <typename Address>
struct PartOf {
  FlowOf<Address> flow;
  std::size_t offset;  // from the start of the frame
  std::size_t bytes;
};
using UdpPart = PartOf<std::uint32_t>;
using IpUdpPart = PartOf<IpAddress>;  // over IPv6 only

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

enum class FirstHeader : std::uint8_t { ethernet, ip };

inline constexpr std::size_t kHeadersBytesMax = 90;  // Ethernet, two VLAN tags, IPv4 with all options it can have or IPv6 with 20 more bytes, UDP

// The IP packet in a frame, of the family that Address is of or of none.
template <typename Address>
std::span<const std::byte> ip_of(std::span<const std::byte> head, FirstHeader first) {
  if (first == FirstHeader::ip) return head;
  if constexpr (std::is_same_v<Address, IpAddress>) return find_ip(head);
  return find_ipv4(head);
}

inline FrameError locate_udp(std::span<const std::byte> ip, std::size_t ip_bytes, UdpPlace& place) {
  return locate_ipv4_udp(ip, ip_bytes, place);
}
inline FrameError locate_udp(std::span<const std::byte> ip, std::size_t ip_bytes, IpUdpPlace& place) {
  return locate_ipv6_udp(ip, ip_bytes, place);
}

template <typename Address>
FrameError find_udp_in(std::span<const std::byte> head, std::size_t frame_bytes, FirstHeader first, PartOf<Address>& part) {
  const std::span<const std::byte> ip = ip_of<Address>(head, first);
  const std::size_t before_ip = head.size() - ip.size();
  PlaceOf<Address> place;
  const FrameError error = locate_udp(ip, frame_bytes - before_ip, place);
  if (error == FrameError::none) part = {place.flow, before_ip + place.payload_offset, place.payload_bytes};
  return error;
}

// `part` is written only when none is returned. The second buffer is looked at only if tags or options pushed headers into it.
template <typename Buffer, typename Address>
FrameError find_udp(const Buffer& frame, FirstHeader first, PartOf<Address>& part) {
  const std::span<const std::byte> head = head_of(frame);
  const FrameError error = find_udp_in(head, frame.pkt_len, first, part);
  if (error != FrameError::cut || frame.next == nullptr || head.size() >= kHeadersBytesMax) return error;
  std::array<std::byte, kHeadersBytesMax> headers;
  const std::size_t bytes = std::min<std::size_t>(frame.pkt_len, headers.size());
  copy_part(headers.data(), frame, 0, bytes);
  return find_udp_in(std::span(headers).first(bytes), frame.pkt_len, first, part);
}

inline std::uint32_t number_at(std::span<const std::byte> from, std::size_t offset, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<std::uint32_t>(from[offset + i]);
  return value;
}

// A frame that was not delivered is malformed if its headers, as far as they are there, name this address and port: its lengths contradict
// each other, it is a fragment, or the NIC found a checksum to be wrong.
inline bool is_for_port(std::span<const std::byte> frame, FirstHeader first, std::uint32_t address, std::uint16_t port) {
  const std::span<const std::byte> ip = ip_of<std::uint32_t>(frame, first);
  if (ip.size() < 20 || number_at(ip, 9, 1) != 17 || number_at(ip, 16, 4) != address) return false;
  const std::size_t header_bytes = 4 * (number_at(ip, 0, 1) & 0xFu);
  const bool is_first_fragment = (number_at(ip, 6, 2) & 0x1FFFu) == 0;
  return !is_first_fragment || header_bytes < 20 || ip.size() < header_bytes + 4 || number_at(ip, header_bytes + 2, 2) == port;
}

// The same over IPv6, of UDP or fragments of it right behind the header or behind other headers that are whole.
inline bool is_for_port(std::span<const std::byte> frame, FirstHeader first, const IpAddress& address, std::uint16_t port) {
  constexpr std::uint32_t kHopByHop = 0, kUdp = 17, kRouting = 43, kFragment = 44, kDestination = 60;
  const std::span<const std::byte> ip = ip_of<IpAddress>(frame, first);
  if (ip.size() < 40 || number_at(ip, 0, 1) >> 4 != 6 || std::memcmp(ip.data() + 24, address.bytes().data(), 16) != 0) return false;
  std::uint32_t type = number_at(ip, 6, 1);
  std::size_t at = 40;
  while (type == kHopByHop || type == kRouting || type == kDestination || type == kFragment) {
    if (ip.size() < at + 8) return false;
    const bool is_first_fragment = type != kFragment || number_at(ip, at + 2, 2) >> 3 == 0;
    const std::size_t header_bytes = type == kFragment ? 8 : 8 * (1 + std::size_t{number_at(ip, at + 1, 1)});
    type = number_at(ip, at, 1);
    if (!is_first_fragment) return type == kUdp;
    at += header_bytes;
  }
  return type == kUdp && (ip.size() < at + 4 || number_at(ip, at + 2, 2) == port);
}

// Where a payload lies that is lent: address, bytes, head_bytes and head of `placed`. For a GPU's memory frames are split: the first head_bytes_max
// bytes of the payload are in the first buffer, what follows is in one of that memory, which is not looked at. False, with nothing changed: the
// payload (after its head, of a split frame) is not in one piece, or not in the memory where payloads stay.
template <typename Buffer, typename Address>
bool place_payload(const Buffer& frame, const PartOf<Address>& part, const flow::PayloadMemory& payloads, PlacedPacket& placed) {
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
