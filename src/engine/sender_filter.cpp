// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/sender_filter.hpp"

#include <charconv>

#include "nanet/link/endpoint.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

SenderNetwork sender_network(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string host = text.substr(0, slash);
  const bool is_ipv6 = host.find(':') != host.npos;
  const link::IpAddress address = link::parse_endpoint("udp://" + (is_ipv6 ? '[' + host + ']' : host) + ":0").address;
  auto prefix_bits = static_cast<std::uint8_t>(address.bit_count());
  if (slash != text.npos) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, prefix_bits);
    if (error != std::errc() || stop != end || prefix_bits > address.bit_count()) {
      throw SetupError("'" + text + "' is not an address or network",
                       "its prefix length is from 0 to " + std::to_string(address.bit_count()),
                       "write it as 10.0.0.7, 10.0.0.0/24 or 2001:db8::/32");
    }
  }
  return {.address = address, .prefix_bits = prefix_bits};
}

}  // namespace

std::vector<SenderNetwork> sender_networks(const std::vector<std::string>& texts) {
  std::vector<SenderNetwork> networks;
  for (const std::string& text : texts) networks.push_back(sender_network(text));
  return networks;
}

}  // namespace nanet::engine
