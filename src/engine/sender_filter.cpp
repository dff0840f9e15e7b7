// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/sender_filter.hpp"

#include <charconv>

#include "nanet/link/endpoint.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

constexpr std::uint8_t kAddressBits = 32;

SenderNetwork sender_network(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string address = text.substr(0, slash);
  std::uint8_t prefix_bits = kAddressBits;
  if (slash != text.npos) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, prefix_bits);
    if (error != std::errc() || stop != end || prefix_bits > kAddressBits || address.empty()) {
      throw SetupError("'" + text + "' is not an IPv4 address or network", "its prefix length is from 0 to 32",
                       "write it as 10.0.0.7 or 10.0.0.0/24");
    }
  }
  return {.address = link::parse_endpoint("udp://" + address + ":0").address, .prefix_bits = prefix_bits};
}

}  // namespace

std::vector<SenderNetwork> sender_networks(const std::vector<std::string>& texts) {
  std::vector<SenderNetwork> networks;
  for (const std::string& text : texts) networks.push_back(sender_network(text));
  return networks;
}

}  // namespace nanet::engine
