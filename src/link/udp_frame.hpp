// SPDX-License-Identifier: Apache-2.0
// The headers around a UDP payload: reading them in a frame as it came from a wire, and writing them. For every link that has no
// kernel to do it (AF_XDP, DPDK), for recordings, and for tests.
//
// Thread rules: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nanet/link/endpoint.hpp"

namespace nanet::link {

inline constexpr std::size_t kEthernetHeaderBytes = 14;
inline constexpr std::size_t kIpUdpHeaderBytes = 28;  // IPv4 without options 20, UDP 8
inline constexpr std::size_t kFrameHeaderBytes = kEthernetHeaderBytes + kIpUdpHeaderBytes;
inline constexpr std::size_t kIpv6UdpHeaderBytes = 48;
inline constexpr std::size_t kIpv6FrameHeaderBytes = kEthernetHeaderBytes + kIpv6UdpHeaderBytes;
inline constexpr std::size_t kUdpPayloadMax = 65'507;
inline constexpr std::uint8_t kTtl = 64;  // of packets to one receiver

using MacAddress = std::array<std::uint8_t, 6>;

// Of a sum of 16-bit words, in however wide words it was taken (RFC 1071).
inline std::uint16_t checksum_of(std::uint64_t sum) {
  sum = (sum & 0xFFFF'FFFF) + (sum >> 32);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

// From where to where.
template <typename Address>
struct FlowOf {
  Address from_address;
  Address to_address;
  std::uint16_t from_port;
  std::uint16_t to_port;
};
using UdpFlow = FlowOf<std::uint32_t>;  // IPv4, host order: 127.0.0.1 is 0x7F000001
using IpUdpFlow = FlowOf<IpAddress>;

template <typename Address>
struct ViewOf {
  FlowOf<Address> flow;
  std::span<const std::byte> payload;
};
using UdpView = ViewOf<std::uint32_t>;
using IpUdpView = ViewOf<IpAddress>;

enum class FrameError : std::uint8_t {
  none,
  not_udp,   // not UDP over IP
  fragment,  // a part of a larger IP packet
  cut,       // shorter than a length in it says, or a length in it is impossible or contradicts another
};

// The IPv4 packet in a frame (without frame check sequence) whose header of header_bytes has the type of what follows at type_offset, as
// Ethernet's has, after any number of VLAN tags; empty when there is none.
std::span<const std::byte> find_ipv4(std::span<const std::byte> frame, std::size_t type_offset = 12,
                                     std::size_t header_bytes = kEthernetHeaderBytes);

// The same of IPv4 or IPv6.
std::span<const std::byte> find_ip(std::span<const std::byte> frame, std::size_t type_offset = 12,
                                   std::size_t header_bytes = kEthernetHeaderBytes);

// The UDP payload of an IPv4 packet, options allowed. Checksums are not checked. `view` is written only when none is returned.
FrameError read_ipv4_udp(std::span<const std::byte> packet, UdpView& view);

// The UDP payload of an IPv4 or IPv6 packet. Hop-by-hop, routing and destination headers are passed over.
FrameError read_ip_udp(std::span<const std::byte> packet, IpUdpView& view);

// Where the payload is in an IP packet of which perhaps only the beginning can be read.
template <typename Address>
struct PlaceOf {
  FlowOf<Address> flow;
  std::size_t payload_offset;  // from the IP header
  std::size_t payload_bytes;
};
using UdpPlace = PlaceOf<std::uint32_t>;
using IpUdpPlace = PlaceOf<IpAddress>;

// As read_ipv4_udp, for a packet of packet_bytes that begins with `head`, which must hold all of its headers (else: cut).
FrameError locate_ipv4_udp(std::span<const std::byte> head, std::size_t packet_bytes, UdpPlace& place);

// The same of IPv6, where hop-by-hop, routing and destination headers are passed over.
FrameError locate_ipv6_udp(std::span<const std::byte> head, std::size_t packet_bytes, IpUdpPlace& place);

inline FrameError read_udp_frame(std::span<const std::byte> frame, UdpView& view) { return read_ipv4_udp(find_ipv4(frame), view); }

// Where Ethernet frames to a multicast group go.
MacAddress multicast_mac(const IpAddress& group);

// UDP's or ICMPv6's checksum of an IPv6 packet without extension headers, to be written in network order where the packet has 0; of one that has
// a right one it is 0. The packet is whole: the length in its header is there.
std::uint16_t ipv6_checksum(std::span<const std::byte> packet);

// Writes the 14 bytes of an Ethernet header, before IPv4 unless it says IPv6.
void write_ethernet_header(std::byte* out, const MacAddress& from, const MacAddress& to, bool is_ipv6 = false);

// Writes the 28 bytes of IPv4 and UDP headers, with right lengths and checksums, for a payload of at most kUdpPayloadMax bytes.
void write_ipv4_udp_headers(std::byte* out, const UdpFlow& flow, std::span<const std::byte> payload, std::uint16_t id);

// The 48 bytes of IPv6 and UDP headers; an IPv4 address in the flow is written as it is mapped into IPv6.
void write_ipv6_udp_headers(std::byte* out, const IpUdpFlow& flow, std::span<const std::byte> payload);

}  // namespace nanet::link
