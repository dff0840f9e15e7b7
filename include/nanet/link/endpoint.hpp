// SPDX-License-Identifier: Apache-2.0
// An endpoint is an address that a link can listen on or send to, written as "udp://127.0.0.1:6200" or "udp://[2001:db8::1]:6200".
// Of a simulated torus it is a node by its number, "torus://3", which then stands in place of the address; its port is 0.
//
// A host name is looked up once, when the text is read, for an IPv4 address: never while packets flow.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nanet/config/setting.hpp"

namespace nanet::link {

// An address of IPv4 or IPv6. IPv4 is kept as RFC 4291 maps it into IPv6, ::ffff:a.b.c.d, and is never shown so.
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

struct Endpoint {
  std::string scheme;      // "udp"; which link serves it
  IpAddress address;       // 0.0.0.0 or :: is any address of that family (to listen)
  std::uint16_t port = 0;  // host order; 0 lets the kernel choose (to listen)

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// Reads scheme://host:port, or torus://NODE, where an IPv6 address stands in brackets. Throws SetupError when a part is missing, the port is not 0..65535 or
// the name has no IPv4 address.
Endpoint parse_endpoint(std::string_view text);

// A multicast group, of which a link that does not join it receives nothing. link: "link boards".
std::optional<config::Problem> refuse_group(const std::string& link, const Endpoint& listen);

// Throws SetupError for an IPv6 address, at a link that writes and reads IPv4 headers only.
void refuse_ipv6(const std::string& link, const Endpoint& endpoint);

// "udp://127.0.0.1:6200"; parse_endpoint reads it back.
std::string to_string(const Endpoint& endpoint);

}  // namespace nanet::link
