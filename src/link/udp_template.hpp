// SPDX-License-Identifier: Apache-2.0
// The headers of packets to one destination, made once: a packet costs a copy of 42 bytes, two lengths and two checksums; over IPv6 of 62, twice the same
// length, and UDP's checksum.
//
// Thread rules: write() is const.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "link/udp_frame.hpp"

namespace nanet::link {

enum class UdpChecksum : std::uint8_t { present, absent };

class UdpTemplate {
 public:
  // Both addresses of one family. The identification of every packet is 0, which RFC 6864 allows where fragments are forbidden. IPv6 has a checksum always.
  explicit UdpTemplate(const IpUdpFlow& flow, const MacAddress& from, UdpChecksum checksum = UdpChecksum::present,
                       std::uint8_t ttl = kTtl);

  std::size_t header_bytes() const { return is_ipv6_ ? kIpv6FrameHeaderBytes : kFrameHeaderBytes; }

  // Writes the header_bytes() before `payload` (at most kUdpPayloadMax bytes) of a frame to the neighbour `to`, with right checksums;
  // absent: UDP's is 0, which means that there is none.
  void write(std::byte* out, const MacAddress& to, std::span<const std::byte> payload) const;

 private:
  bool is_ipv6_;
  std::array<std::byte, kIpv6FrameHeaderBytes> bytes_{};  // of a packet without payload
  std::uint64_t ip_sum_ = 0;                              // of the words that do not depend on the payload
  std::uint64_t udp_sum_;
  UdpChecksum checksum_;
};

}  // namespace nanet::link
