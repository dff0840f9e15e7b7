// SPDX-License-Identifier: Apache-2.0
// The frames other than UDP that a station on an IPv6 network must understand: neighbour discovery (NDP, RFC 4861) and echo requests (RFC 4443). What
// arp.hpp is for IPv4.
//
// Thread rules: pure functions. Addresses without a scope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "link/udp_frame.hpp"

namespace nanet::link::dpdk {

inline constexpr std::size_t kNdpFrameBytes = kEthernetHeaderBytes + 40 + 32;  // IPv6, ICMPv6 with one Ethernet address

enum class NdpKind : std::uint8_t { solicitation = 135, advertisement = 136 };

struct Ndp {
  NdpKind kind;
  IpAddress from_address;         // ::, of a solicitation: a station looks whether someone has the address that it wants
  IpAddress target;               // who is asked for, or who says where it is
  std::optional<MacAddress> mac;  // of the sender of a solicitation, of the target of an advertisement; none: it does not say
  MacAddress frame_mac;           // that the frame came from
};

// False: the frame is none of the two, or is not valid by sections 7.1.1 and 7.1.2. `ndp` is written only when it is.
bool read_ndp(std::span<const std::byte> frame, Ndp& ndp);

// Writes kNdpFrameBytes, to all stations whose address ends as the target's.
void write_solicitation(std::byte* out, const MacAddress& own_mac, const IpAddress& own, const IpAddress& target);

// Writes kNdpFrameBytes that answer a solicitation. to :: (to_mac is not used): to all stations.
void write_advertisement(std::byte* out, const MacAddress& own_mac, const IpAddress& own, const IpAddress& to,
                         const MacAddress& to_mac);

// The group that solicitations for an address are sent to.
IpAddress solicited_node(const IpAddress& address);

// An echo request (ping) to `address`, in an untagged frame without extension headers.
bool is_echo_request(std::span<const std::byte> frame, const IpAddress& address);

// Turns one into its answer, in place.
void answer_ipv6_echo(std::span<std::byte> frame);

}  // namespace nanet::link::dpdk
