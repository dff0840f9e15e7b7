// SPDX-License-Identifier: Apache-2.0
// The frames other than UDP that a station on an IPv4 network must understand: ARP (RFC 826) and echo requests (RFC 792).
//
// Thread rules: pure functions. Addresses in host order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "link/udp_frame.hpp"

namespace nanet::link::dpdk {

inline constexpr std::size_t kArpFrameBytes = 60;  // 42 and the padding to Ethernet's shortest frame
inline constexpr std::size_t kFrameBytesMin = 60;

enum class ArpKind : std::uint16_t { request = 1, reply = 2 };

struct Arp {
  ArpKind kind;
  MacAddress from_mac;
  std::uint32_t from_address;
  std::uint32_t to_address;
};

// False: the frame is not ARP for IPv4 over Ethernet. `arp` is written only when it is.
bool read_arp(std::span<const std::byte> frame, Arp& arp);

// Writes kArpFrameBytes. A request is broadcast, a reply goes to to_mac.
void write_arp(std::byte* out, const Arp& arp, const MacAddress& to_mac);

// An echo request (ping) to `address`, in an untagged frame.
bool is_echo_request(std::span<const std::byte> frame, std::uint32_t address);

// Turns one into its answer, in place.
void answer_echo(std::span<std::byte> frame);

}  // namespace nanet::link::dpdk
