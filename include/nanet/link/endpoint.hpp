// SPDX-License-Identifier: Apache-2.0
// An endpoint is an address that a link can listen on or send to, written as "udp://127.0.0.1:6200".
//
// Only IPv4. A host name is looked up once, when the text is read: never while packets flow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nanet::link {

struct Endpoint {
  std::string scheme;         // "udp"; which link serves it
  std::uint32_t address = 0;  // IPv4, host order: 127.0.0.1 is 0x7F000001; 0 is any address (to listen)
  std::uint16_t port = 0;     // host order; 0 lets the kernel choose (to listen)

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// Reads scheme://host:port. Throws SetupError when a part is missing, the port is not 0..65535 or the name has no IPv4 address.
Endpoint parse_endpoint(std::string_view text);

// 224.0.0.0/4: an address of many receivers.
constexpr bool is_multicast(std::uint32_t address) { return address >> 28 == 0xE; }

// Throws SetupError for a multicast group, of which a link that does not join it receives nothing.
void refuse_multicast(const std::string& link, const Endpoint& listen);

// "udp://127.0.0.1:6200"; parse_endpoint reads it back.
std::string to_string(const Endpoint& endpoint);

}  // namespace nanet::link
