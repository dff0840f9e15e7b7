// SPDX-License-Identifier: Apache-2.0
// An address of IPv4 or IPv6, and networks of them. IPv4 is kept as RFC 4291 maps it into IPv6, ::ffff:a.b.c.d, and is never shown so.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace nanet::link {

class IpAddress {
 public:
  using Bytes = std::array<std::uint8_t, 16>;  // network order

  constexpr IpAddress() : IpAddress(0) {}

  // IPv4, host order: 127.0.0.1 is 0x7F000001. Not explicit: a number is one.
  constexpr IpAddress(std::uint32_t ipv4) : bytes_{kMapped} {
    for (std::size_t i = 0; i < 4; ++i) bytes_[12 + i] = static_cast<std::uint8_t>(ipv4 >> (24 - 8 * i));
  }

  // scope: index of the interface, for addresses of one network only (fe80::/10); 0: none.
  static constexpr IpAddress ipv6(const Bytes& bytes, std::uint32_t scope = 0) {
    IpAddress address;
    address.bytes_ = bytes;
    address.scope_ = scope;
    return address;
  }

  constexpr bool is_ipv6() const { return !std::equal(kMapped.begin(), kMapped.begin() + 12, bytes_.begin()); }

  // Host order; 0 of an IPv6 address, which has none.
  constexpr std::uint32_t ipv4() const {
    if (is_ipv6()) return 0;
    return std::uint32_t{bytes_[12]} << 24 | std::uint32_t{bytes_[13]} << 16 | std::uint32_t{bytes_[14]} << 8 | bytes_[15];
  }

  constexpr const Bytes& bytes() const { return bytes_; }
  constexpr std::uint32_t scope() const { return scope_; }

  // 0.0.0.0 or ::, which listens on every address of its family.
  constexpr bool is_any() const { return is_ipv6() ? bytes_ == Bytes{} : ipv4() == 0; }

  // An address of many receivers: 224.0.0.0/4, ff00::/8.
  constexpr bool is_multicast() const { return is_ipv6() ? bytes_[0] == 0xFF : ipv4() >> 28 == 0xE; }

  // A group of known senders only (RFC 4607): 232.0.0.0/8, ff30::/32 to ff3f::/32.
  constexpr bool is_source_specific() const {
    if (!is_ipv6()) return bytes_[12] == 232;
    return bytes_[0] == 0xFF && bytes_[1] >> 4 == 3 && bytes_[2] == 0 && bytes_[3] == 0;
  }

  constexpr unsigned bit_count() const { return is_ipv6() ? 128 : 32; }

  // Whether the first bits of both, of one family, are the same.
  constexpr bool shares_prefix(const IpAddress& other, unsigned bits) const {
    if (is_ipv6() != other.is_ipv6()) return false;
    const std::size_t first = is_ipv6() ? 0 : 12;
    for (std::size_t i = first; bits > 0; ++i) {
      const unsigned of_byte = std::min(bits, 8u);
      if (((bytes_[i] ^ other.bytes_[i]) >> (8 - of_byte)) != 0) return false;
      bits -= of_byte;
    }
    return true;
  }

  friend constexpr bool operator==(const IpAddress&, const IpAddress&) = default;

 private:
  static constexpr Bytes kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0};

  Bytes bytes_;
  std::uint32_t scope_ = 0;
};

// "127.0.0.1", "2001:db8::1", "fe80::1%eth0".
std::string to_string(const IpAddress& address);

}  // namespace nanet::link
