// SPDX-License-Identifier: Apache-2.0
// A received packet as the kernel laid it down for AF_XDP: in one frame, or in several of which the first has the headers. Where its UDP payload
// is, and its bytes.
//
// Thread rules: pure functions on memory that is the caller's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "link/udp_frame.hpp"

namespace nanet::link {

inline constexpr std::size_t kXdpHeadersBytesMax = kEthernetHeaderBytes + 8 + 60 + 8;  // two tags, IPv4 with options, UDP

// A UDP payload in its frames.
struct XdpPayload {
  UdpFlow flow;
  std::size_t offset = 0;  // from the beginning of the first frame's data
  std::uint32_t bytes = 0;
};

enum class XdpVerdict : std::uint8_t { ours, foreign, malformed };

// first: the data of the first frame; packet_bytes: of all frames together; address 0: any. `payload` is written only when it is ours.
inline XdpVerdict find_payload(std::span<const std::byte> first, std::size_t packet_bytes, std::uint32_t address,
                               std::uint16_t port, XdpPayload& payload) {
  const std::span<const std::byte> ip = find_ipv4(first.first(std::min(first.size(), kXdpHeadersBytesMax)));
  const std::size_t ip_offset = ip.empty() ? 0 : static_cast<std::size_t>(ip.data() - first.data());
  UdpPlace place;
  const FrameError error = locate_ipv4_udp(ip, packet_bytes - ip_offset, place);
  if (error != FrameError::none) return error == FrameError::cut ? XdpVerdict::malformed : XdpVerdict::foreign;
  if (place.flow.to_port != port || (address != 0 && place.flow.to_address != address)) return XdpVerdict::foreign;
  payload = {place.flow, ip_offset + place.payload_offset, static_cast<std::uint32_t>(place.payload_bytes)};
  return XdpVerdict::ours;
}

// Copies `bytes` from `offset` of the packet on; frame_at(i) is the data of frame i, a span.
template <typename FrameAt>
void copy_payload(const FrameAt& frame_at, std::uint32_t frame_count, std::size_t offset, std::byte* to, std::size_t bytes) {
  for (std::uint32_t i = 0; i < frame_count && bytes != 0; ++i) {
    const std::span<const std::byte> frame = frame_at(i);
    const std::size_t skipped = std::min(offset, frame.size());
    const std::size_t part = std::min(bytes, frame.size() - skipped);
    std::memcpy(to, frame.data() + skipped, part);
    to += part;
    bytes -= part;
    offset -= skipped;
  }
}

}  // namespace nanet::link
