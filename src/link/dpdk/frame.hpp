// SPDX-License-Identifier: Apache-2.0
// A received frame as the device laid it down: one buffer, or several where it is longer than a buffer or the device splits headers from data.
//
// Thread rules: pure functions on memory that is the caller's.
#pragma once

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "nanet/link/udp_frame.hpp"

namespace nanet::link::dpdk {

// What the first buffer holds: all headers, unless somebody split the frame in the middle of them.
inline std::span<const std::byte> head_of(const rte_mbuf& frame) {
  return {rte_pktmbuf_mtod(&frame, const std::byte*), frame.data_len};
}

// A UDP payload in a frame.
struct UdpPart {
  UdpFlow flow;
  std::size_t offset;  // from the start of the frame
  std::size_t bytes;
};

// Copies `bytes` from `offset` of the frame on. They must be there.
inline void copy_part(std::byte* out, const rte_mbuf& frame, std::size_t offset, std::size_t bytes) {
  const rte_mbuf* buffer = &frame;
  while (bytes != 0) {
    if (offset >= buffer->data_len) {
      offset -= buffer->data_len;
    } else {
      const std::size_t count = std::min<std::size_t>(buffer->data_len - offset, bytes);
      std::memcpy(out, rte_pktmbuf_mtod(buffer, const std::byte*) + offset, count);
      out += count;
      bytes -= count;
      offset = 0;
    }
    buffer = buffer->next;
  }
}

enum class FirstHeader : std::uint8_t { ethernet, ipv4 };

inline constexpr std::size_t kHeadersBytesMax = 90;  // Ethernet, two VLAN tags, IPv4 with all options it can have, UDP

inline FrameError find_udp_in(std::span<const std::byte> head, std::size_t frame_bytes, FirstHeader first, UdpPart& part) {
  const std::span<const std::byte> ip = first == FirstHeader::ethernet ? find_ipv4(head) : head;
  const std::size_t before_ip = head.size() - ip.size();
  UdpPlace place;
  const FrameError error = locate_ipv4_udp(ip, frame_bytes - before_ip, place);
  if (error == FrameError::none) part = {place.flow, before_ip + place.payload_offset, place.payload_bytes};
  return error;
}

// `part` is written only when none is returned. The second buffer is looked at only if tags or options pushed headers into it.
inline FrameError find_udp(const rte_mbuf& frame, FirstHeader first, UdpPart& part) {
  const std::span<const std::byte> head = head_of(frame);
  const FrameError error = find_udp_in(head, frame.pkt_len, first, part);
  if (error != FrameError::cut || frame.next == nullptr || head.size() >= kHeadersBytesMax) return error;
  std::array<std::byte, kHeadersBytesMax> headers;
  const std::size_t bytes = std::min<std::size_t>(frame.pkt_len, headers.size());
  copy_part(headers.data(), frame, 0, bytes);
  return find_udp_in(std::span(headers).first(bytes), frame.pkt_len, first, part);
}

}  // namespace nanet::link::dpdk
