// SPDX-License-Identifier: Apache-2.0
// How large frames, buffers and pools are. Also for making memory for them before the link exists: nothing of DPDK is in here.
//
// Thread rules: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "link/udp_frame.hpp"
#include "nanet/link/dpdk.hpp"

namespace nanet::link::dpdk {

inline constexpr std::uint32_t kHeadroomBytes = 128;  // DPDK's, in front of the data of a buffer
inline constexpr std::uint32_t kVlanTagsBytes = 8;
inline constexpr std::uint32_t kIpBytesMin = 1500;

// Of IP and UDP. All that a link receives and sends is of one family; where it only sends, that of its destinations.
inline std::uint32_t ip_udp_header_bytes(const DpdkConfig& config) {
  const bool is_ipv6 = config.listen ? config.listen->address.is_ipv6()
                                     : !config.destinations.empty() && config.destinations.front().address.is_ipv6();
  return static_cast<std::uint32_t>(is_ipv6 ? kIpv6UdpHeaderBytes : kIpUdpHeaderBytes);
}

inline std::uint32_t ip_bytes(const DpdkConfig& config) { return config.packet_bytes_max + ip_udp_header_bytes(config); }

inline std::uint32_t frame_bytes(const DpdkConfig& config) {
  return std::max(ip_bytes(config), kIpBytesMin) + static_cast<std::uint32_t>(kEthernetHeaderBytes) + kVlanTagsBytes;
}

inline std::uint32_t buffer_bytes(const DpdkConfig& config) { return std::max(frame_bytes(config), 2048u) + kHeadroomBytes; }

// Buffers in memory outside DPDK's begin at multiples of 64.
inline std::uint32_t stride_bytes(std::uint32_t buffer_bytes) { return (buffer_bytes + 63) / 64 * 64; }

// In the driver's ring, in its hands, in a burst, in the caches of some threads, and lent: a pool must never be a reason for loss.
inline std::uint32_t receive_buffers(const DpdkConfig& config, std::uint32_t descriptors) {
  return config.queues * 4 * descriptors + 1024 + (config.payloads == Payloads::in_place ? config.lent_max : 0);
}

}  // namespace nanet::link::dpdk
