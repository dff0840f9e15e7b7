// SPDX-License-Identifier: Apache-2.0
// Frames made by hand, and buffers of DPDK filled with them: for tests that lay down frames as a NIC would.
#pragma once

#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>

#include "dpdk_support.hpp"
#include "link/udp_frame.hpp"

namespace nanet::link::test {

inline Bytes frame_of(const Bytes& data) {
  Bytes frame(kFrameHeaderBytes + data.size());
  write_ethernet_header(frame.data(), {}, {});
  write_ipv4_udp_headers(frame.data() + kEthernetHeaderBytes, {kFar, kNear, 300, kPort}, data, 0);
  std::copy(data.begin(), data.end(), frame.begin() + kFrameHeaderBytes);
  return frame;
}

// With a VLAN tag and 40 bytes of IPv4 options: 86 bytes of headers.
inline Bytes long_headers(const Bytes& data) {
  Bytes frame = frame_of(data);
  frame[14] = std::byte{0x4F};
  const std::size_t ip_bytes = 40 + kIpUdpHeaderBytes + data.size();
  frame[16] = static_cast<std::byte>(ip_bytes >> 8);
  frame[17] = static_cast<std::byte>(ip_bytes);
  frame.insert(frame.begin() + 34, 40, std::byte{1});
  const std::byte tag[] = {std::byte{0x81}, std::byte{0}, std::byte{0}, std::byte{5}};
  frame.insert(frame.begin() + 12, std::begin(tag), std::end(tag));
  return frame;
}

inline rte_mbuf* fill(rte_mempool* pool, std::span<const std::byte> bytes) {
  rte_mbuf* buffer = rte_pktmbuf_alloc(pool);
  std::memcpy(rte_pktmbuf_append(buffer, static_cast<std::uint16_t>(bytes.size())), bytes.data(), bytes.size());
  return buffer;
}

}  // namespace nanet::link::test
