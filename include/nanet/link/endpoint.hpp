// SPDX-License-Identifier: Apache-2.0
// An endpoint is an address that a link can listen on or send to, written as "udp://127.0.0.1:6200" or "udp://[2001:db8::1]:6200".
//
// A host name is looked up once, when the text is read, for an IPv4 address: never while packets flow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nanet/link/ip_address.hpp"

namespace nanet::link {

struct Endpoint {
  std::string scheme;      // "udp"; which link serves it
  IpAddress address;       // 0.0.0.0 or :: is any address of that family (to listen)
  std::uint16_t port = 0;  // host order; 0 lets the kernel choose (to listen)

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// Reads scheme://host:port, where an IPv6 address stands in brackets. Throws SetupError when a part is missing, the port is not 0..65535 or
// the name has no IPv4 address.
Endpoint parse_endpoint(std::string_view text);

// Throws SetupError for a multicast group, of which a link that does not join it receives nothing.
void refuse_multicast(const std::string& link, const Endpoint& listen);

// Throws SetupError for an IPv6 address, at a link that writes and reads IPv4 headers only.
void refuse_ipv6(const std::string& link, const Endpoint& endpoint);

// "udp://127.0.0.1:6200"; parse_endpoint reads it back.
std::string to_string(const Endpoint& endpoint);

}  // namespace nanet::link
