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

inline constexpr std::size_t kXdpHeadersBytesMax = kEthernetHeaderBytes + 8 + 60 + 8;  // two tags, IPv4 with options or IPv6, UDP

// A UDP payload in its frames.
struct XdpPayload {
  UdpFlow flow;            // over IPv6 without addresses
  std::size_t offset = 0;  // from the beginning of the first frame's data
  std::uint32_t bytes = 0;
};

enum class XdpVerdict : std::uint8_t { ours, foreign, malformed };

inline std::size_t offset_in(std::span<const std::byte> frame, std::span<const std::byte> ip) {
  return ip.empty() ? 0 : static_cast<std::size_t>(ip.data() - frame.data());
}

inline XdpVerdict verdict_on(FrameError error) { return error == FrameError::cut ? XdpVerdict::malformed : XdpVerdict::foreign; }

// first: the data of the first frame; packet_bytes: of all frames together; address 0: any. `payload` is written only when it is ours.
inline XdpVerdict find_payload(std::span<const std::byte> first, std::size_t packet_bytes, std::uint32_t address,
                               std::uint16_t port, XdpPayload& payload) {
  const std::span<const std::byte> ip = find_ipv4(first.first(std::min(first.size(), kXdpHeadersBytesMax)));
  const std::size_t ip_offset = offset_in(first, ip);
  UdpPlace place;
  if (const FrameError error = locate_ipv4_udp(ip, packet_bytes - ip_offset, place); error != FrameError::none)
    return verdict_on(error);
  const UdpFlow& flow = place.flow;
  if (flow.to_port != port || (address != 0 && flow.to_address != address)) return XdpVerdict::foreign;
  payload = {flow, ip_offset + place.payload_offset, static_cast<std::uint32_t>(place.payload_bytes)};
  return XdpVerdict::ours;
}

// The same over IPv6: of the bytes of `address` alone, since a frame says no scope. `from` is written with `payload`.
inline XdpVerdict find_ipv6_payload(std::span<const std::byte> first, std::size_t packet_bytes, const IpAddress& address,
                                    std::uint16_t port, XdpPayload& payload, IpAddress& from) {
  const std::span<const std::byte> ip = find_ip(first.first(std::min(first.size(), kXdpHeadersBytesMax)));
  const std::size_t ip_offset = offset_in(first, ip);
  IpUdpPlace place;
  if (const FrameError error = locate_ipv6_udp(ip, packet_bytes - ip_offset, place); error != FrameError::none)
    return verdict_on(error);
  const IpUdpFlow& flow = place.flow;
  if (flow.to_port != port || (!address.is_any() && flow.to_address.bytes() != address.bytes())) return XdpVerdict::foreign;
  payload = {{0, 0, flow.from_port, flow.to_port}, ip_offset + place.payload_offset, static_cast<std::uint32_t>(place.payload_bytes)};
  from = flow.from_address;
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
