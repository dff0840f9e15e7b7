// SPDX-License-Identifier: Apache-2.0
// The headers around a UDP payload: reading them in a frame as it came from a wire, and writing them. For every link that has no
// kernel to do it (AF_XDP, DPDK), for recordings, and for tests. IPv4 only.
//
// Thread rules: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace nanet::link {

inline constexpr std::size_t kEthernetHeaderBytes = 14;
inline constexpr std::size_t kIpUdpHeaderBytes = 28;  // IPv4 without options 20, UDP 8
inline constexpr std::size_t kFrameHeaderBytes = kEthernetHeaderBytes + kIpUdpHeaderBytes;
inline constexpr std::size_t kUdpPayloadMax = 65'507;
inline constexpr std::uint8_t kTtl = 64;  // of packets to one receiver

using MacAddress = std::array<std::uint8_t, 6>;

// From where to where. Host order: 127.0.0.1 is 0x7F000001.
struct UdpFlow {
  std::uint32_t from_address;
  std::uint32_t to_address;
  std::uint16_t from_port;
  std::uint16_t to_port;
};

struct UdpView {
  UdpFlow flow;
  std::span<const std::byte> payload;
};

enum class FrameError : std::uint8_t {
  none,
  not_udp,   // not UDP over IPv4
  fragment,  // a part of a larger IP packet
  cut,       // shorter than a length in it says, or a length in it is impossible or contradicts another
};

// The IPv4 packet in a frame (without frame check sequence) whose header of header_bytes has the type of what follows at type_offset, as
// Ethernet's has, after any number of VLAN tags; empty when there is none.
std::span<const std::byte> find_ipv4(std::span<const std::byte> frame, std::size_t type_offset = 12,
                                     std::size_t header_bytes = kEthernetHeaderBytes);

// The UDP payload of an IPv4 packet, options allowed. Checksums are not checked. `view` is written only when none is returned.
FrameError read_ipv4_udp(std::span<const std::byte> packet, UdpView& view);

// Where the payload is in an IPv4 packet of which perhaps only the beginning can be read.
struct UdpPlace {
  UdpFlow flow;
  std::size_t payload_offset;  // from the IPv4 header
  std::size_t payload_bytes;
};

// As read_ipv4_udp, for a packet of packet_bytes that begins with `head`, which must hold all of its headers (else: cut).
FrameError locate_ipv4_udp(std::span<const std::byte> head, std::size_t packet_bytes, UdpPlace& place);

inline FrameError read_udp_frame(std::span<const std::byte> frame, UdpView& view) { return read_ipv4_udp(find_ipv4(frame), view); }

// Writes the 14 bytes of an Ethernet header for IPv4.
void write_ethernet_header(std::byte* out, const MacAddress& from, const MacAddress& to);

// Writes the 28 bytes of IPv4 and UDP headers, with right lengths and checksums, for a payload of at most kUdpPayloadMax bytes.
void write_ipv4_udp_headers(std::byte* out, const UdpFlow& flow, std::span<const std::byte> payload, std::uint16_t id);

}  // namespace nanet::link
