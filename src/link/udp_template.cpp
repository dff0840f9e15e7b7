// SPDX-License-Identifier: Apache-2.0
// RFC 1071: the sum of 16-bit words modulo 65535 may be taken in any byte order and in wider words.
#include "udp_template.hpp"

#include <bit>
#include <cstring>

namespace nanet::link {
namespace {

static_assert(std::endian::native == std::endian::little, "words are summed as they lie in memory and turned round once");

constexpr std::size_t kIpAt = kEthernetHeaderBytes;
constexpr std::size_t kUdpAt = kIpAt + 20, kUdpAtOfIpv6 = kIpAt + 40;

template <typename Word>
std::uint64_t word_at(const std::byte* data) {
  Word word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

// Of 16-bit words in memory order, not folded: below 2^48 for kUdpPayloadMax bytes. Four sums, so that the compiler makes vectors of them.
std::uint64_t sum_words(const std::byte* data, std::size_t bytes) {
  std::uint64_t sums[4] = {};
  for (; bytes >= 16; data += 16, bytes -= 16) {
    for (int i = 0; i < 4; ++i) sums[i] += word_at<std::uint32_t>(data + 4 * i);
  }
  std::uint64_t sum = sums[0] + sums[1] + sums[2] + sums[3];
  for (; bytes >= 2; data += 2, bytes -= 2) sum += word_at<std::uint16_t>(data);
  return bytes == 0 ? sum : sum + std::to_integer<std::uint64_t>(*data);
}

constexpr std::uint64_t turned(std::uint64_t word) { return (word & 0xFF) << 8 | (word >> 8 & 0xFF); }

void put(std::byte* out, std::uint64_t word) {
  const auto value = static_cast<std::uint16_t>(word);
  std::memcpy(out, &value, sizeof value);
}

}  // namespace

UdpTemplate::UdpTemplate(const IpUdpFlow& flow, const MacAddress& from, UdpChecksum checksum, std::uint8_t ttl)
    : is_ipv6_(flow.to_address.is_ipv6()), checksum_(is_ipv6_ ? UdpChecksum::present : checksum) {
  write_ethernet_header(bytes_.data(), from, MacAddress{}, is_ipv6_);
  if (is_ipv6_) {
    write_ipv6_udp_headers(bytes_.data() + kIpAt, flow, {});
    bytes_[kIpAt + 7] = std::byte{ttl};
    for (const std::size_t offset : {kIpAt + 4, kUdpAtOfIpv6 + 4, kUdpAtOfIpv6 + 6}) put(bytes_.data() + offset, 0);
    // UDP's pseudo header: addresses, protocol and length.
    udp_sum_ = sum_words(bytes_.data() + kIpAt + 8, 32) + turned(17) + sum_words(bytes_.data() + kUdpAtOfIpv6, 8);
    return;
  }
  const UdpFlow ipv4{flow.from_address.ipv4(), flow.to_address.ipv4(), flow.from_port, flow.to_port};
  write_ipv4_udp_headers(bytes_.data() + kIpAt, ipv4, {}, 0);
  bytes_[kIpAt + 8] = std::byte{ttl};
  for (const std::size_t offset : {kIpAt + 2, kIpAt + 10, kUdpAt + 4, kUdpAt + 6})
    put(bytes_.data() + offset, 0);  // lengths, checksums
  ip_sum_ = sum_words(bytes_.data() + kIpAt, 20);
  udp_sum_ = sum_words(bytes_.data() + kIpAt + 12, 8) + turned(17) + sum_words(bytes_.data() + kUdpAt, 8);
}

void UdpTemplate::write(std::byte* out, const MacAddress& to, std::span<const std::byte> payload) const {
  const std::uint64_t udp_bytes = turned(payload.size() + 8);
  std::byte* udp = out + kUdpAt;
  if (is_ipv6_) {
    std::memcpy(out, bytes_.data(), kIpv6FrameHeaderBytes);
    put(out + kIpAt + 4, udp_bytes);
    udp = out + kUdpAtOfIpv6;
  } else {
    std::memcpy(out, bytes_.data(), kFrameHeaderBytes);
    const std::uint64_t ip_bytes = turned(payload.size() + kIpUdpHeaderBytes);
    put(out + kIpAt + 2, ip_bytes);
    put(out + kIpAt + 10, checksum_of(ip_sum_ + ip_bytes));
  }
  std::memcpy(out, to.data(), to.size());
  put(udp + 4, udp_bytes);
  if (checksum_ == UdpChecksum::absent) return;  // the template's 0 stays
  const std::uint16_t checksum = checksum_of(udp_sum_ + 2 * udp_bytes + sum_words(payload.data(), payload.size()));
  put(udp + 6, checksum == 0 ? 0xFFFF : checksum);  // 0 would mean: no checksum; IPv6 does not allow it
}

}  // namespace nanet::link
