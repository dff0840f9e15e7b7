// SPDX-License-Identifier: Apache-2.0
#include "arp.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "frame.hpp"

namespace nanet::link::dpdk {
namespace {

// Ethernet type ARP, hardware Ethernet, protocol IPv4, address lengths 6 and 4.
constexpr std::array<std::uint8_t, 8> kArpHead{0x08, 0x06, 0x00, 0x01, 0x08, 0x00, 6, 4};
constexpr std::size_t kTypeOffset = 12;
constexpr std::size_t kKindOffset = 20;
constexpr std::size_t kArpBytes = 42;
constexpr std::size_t kIcmpOffset = kEthernetHeaderBytes + 20;  // after an IPv4 header without options
constexpr std::byte kIcmp{1};

void put(std::byte* out, std::uint32_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(value >> (8 * (bytes - 1 - i)));
}

}  // namespace

bool read_arp(std::span<const std::byte> frame, Arp& arp) {
  if (frame.size() < kArpBytes || std::memcmp(frame.data() + kTypeOffset, kArpHead.data(), kArpHead.size()) != 0) return false;
  const std::uint32_t kind = number_at(frame, kKindOffset, 2);
  if (kind != static_cast<std::uint32_t>(ArpKind::request) && kind != static_cast<std::uint32_t>(ArpKind::reply)) return false;
  arp.kind = static_cast<ArpKind>(kind);
  std::memcpy(arp.from_mac.data(), frame.data() + 22, arp.from_mac.size());
  arp.from_address = number_at(frame, 28, 4);
  arp.to_address = number_at(frame, 38, 4);
  return true;
}

void write_arp(std::byte* out, const Arp& arp, const MacAddress& to_mac) {
  std::fill_n(out, kArpFrameBytes, std::byte{0});
  if (arp.kind == ArpKind::request) {
    std::fill_n(out, 6, std::byte{0xFF});
  } else {
    std::memcpy(out, to_mac.data(), 6);
    std::memcpy(out + 32, to_mac.data(), 6);
  }
  std::memcpy(out + 6, arp.from_mac.data(), 6);
  std::memcpy(out + kTypeOffset, kArpHead.data(), kArpHead.size());
  put(out + kKindOffset, static_cast<std::uint32_t>(arp.kind), 2);
  std::memcpy(out + 22, arp.from_mac.data(), 6);
  put(out + 28, arp.from_address, 4);
  put(out + 38, arp.to_address, 4);
}

bool is_echo_request(std::span<const std::byte> frame, std::uint32_t address) {
  constexpr std::uint32_t kIpv4WithoutOptions = 0x0800'45;
  return frame.size() >= kIcmpOffset + 8 && number_at(frame, kTypeOffset, 3) == kIpv4WithoutOptions && frame[23] == kIcmp &&
         (number_at(frame, 20, 2) & 0x3FFFu) == 0 && number_at(frame, 30, 4) == address &&
         number_at(frame, kIcmpOffset, 2) == 0x0800;
}

void answer_echo(std::span<std::byte> frame) {
  std::swap_ranges(frame.begin(), frame.begin() + 6, frame.begin() + 6);
  std::swap_ranges(frame.begin() + 26, frame.begin() + 30, frame.begin() + 30);  // the IPv4 checksum is a sum: it stays right
  frame[kIcmpOffset] = std::byte{0};
  // RFC 1624: the first word went from 0x0800 to 0, so the ones' complement of the sum grows by as much.
  const std::uint32_t sum = number_at(frame, kIcmpOffset + 2, 2) + 0x0800;
  put(frame.data() + kIcmpOffset + 2, (sum & 0xFFFF) + (sum >> 16), 2);
}

}  // namespace nanet::link::dpdk
