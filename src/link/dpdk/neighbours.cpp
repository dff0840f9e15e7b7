// SPDX-License-Identifier: Apache-2.0
#include "neighbours.hpp"

#include <arpa/inet.h>

#include <charconv>

#include "nanet/setup_error.hpp"

namespace nanet::link::dpdk {
namespace {

struct Network {
  IpAddress address;
  unsigned prefix_bits;

  bool has(const IpAddress& other) const { return address.shares_prefix(other, prefix_bits); }
};

unsigned usual_prefix_bits(const IpAddress& address) { return address.is_ipv6() ? 64 : 24; }

std::optional<IpAddress> parse_address(const std::string& text) {
  in_addr ipv4{};
  if (::inet_pton(AF_INET, text.c_str(), &ipv4) == 1) return ntohl(ipv4.s_addr);
  IpAddress::Bytes ipv6{};
  if (::inet_pton(AF_INET6, text.c_str(), ipv6.data()) == 1) return IpAddress::ipv6(ipv6);
  return std::nullopt;
}

Network parse_network(const DpdkConfig& config) {
  if (config.address.empty()) {
    if (!config.listen) {
      throw SetupError("link " + config.name + " has no address", "it only sends, so there is none to listen on",
                       "set address, as in 10.0.0.2/24 or 2001:db8::2/64");
    }
    return {without_scope(config.listen->address), usual_prefix_bits(config.listen->address)};
  }
  const std::size_t slash = config.address.find('/');
  const std::optional<IpAddress> address = parse_address(config.address.substr(0, slash));
  bool good = address && !address->is_any() && !address->is_multicast();
  unsigned bits = good ? usual_prefix_bits(*address) : 0;
  if (good && slash != config.address.npos) {
    const char* end = config.address.data() + config.address.size();
    const auto [stop, error] = std::from_chars(config.address.data() + slash + 1, end, bits);
    good = error == std::errc() && stop == end && bits <= address->bit_count();
  }
  if (!good) {
    throw SetupError("link " + config.name + " cannot have the address '" + config.address + "'",
                     "it is no IPv4 or IPv6 address with prefix length", "write it as in 10.0.0.2/24 or 2001:db8::2/64");
  }
  if (config.listen && without_scope(config.listen->address) != *address) {
    throw SetupError("link " + config.name + " cannot listen on " + to_string(*config.listen),
                     "its own address is " + config.address, "use one address for both");
  }
  return {*address, bits};
}

// A router of IPv6 says fe80::/10 of itself, which is in every network.
bool is_near(const IpAddress& address, const Network& network) {
  constexpr IpAddress kLinkLocal = IpAddress::ipv6({0xFE, 0x80});
  return network.has(address) || (network.address.is_ipv6() && address.shares_prefix(kLinkLocal, 10));
}

}  // namespace

Neighbours::Neighbours(const DpdkConfig& config) : destinations_(config.destinations) {
  const Network network = parse_network(config);
  own_address_ = network.address;
  std::optional<IpAddress> gateway;
  if (!config.gateway.empty()) {
    gateway = parse_address(config.gateway);
    if (!gateway || !is_near(*gateway, network)) {
      throw SetupError("link " + config.name + " cannot have the gateway '" + config.gateway + "'",
                       std::string("it is no ") + (own_address_.is_ipv6() ? "IPv6" : "IPv4") + " address of its own network",
                       "use an address in the network of " + to_string(own_address_) + ", or set address with its prefix length");
    }
  }
  for (const Endpoint& destination : destinations_) {
    if (destination.address.is_ipv6() != own_address_.is_ipv6()) {
      throw SetupError("link " + config.name + " cannot send to " + to_string(destination),
                       "all that it receives and sends is of one family, and its own address is " + to_string(own_address_),
                       "use addresses of one family");
    }
    const IpAddress address = without_scope(destination.address);
    if (!is_near(address, network) && !gateway) {
      throw SetupError("link " + config.name + " cannot send to " + to_string(destination),
                       "it is outside of the link's own network, and no gateway is set",
                       "set gateway, or a shorter prefix length in address");
    }
    hop_of_destination_.push_back(hop_to(is_near(address, network) ? address : *gateway));
  }
}

std::size_t Neighbours::hop_to(const IpAddress& address) {
  for (std::size_t i = 0; i < hops_.size(); ++i) {
    if (hops_[i].address == address) return i;
  }
  hops_.emplace_back(address);
  return hops_.size() - 1;
}

std::string Neighbours::destination_of(std::size_t hop) const {
  for (std::size_t i = 0; i < destinations_.size(); ++i) {
    if (hop_of_destination_[i] == hop) return to_string(destinations_[i]);
  }
  return "";
}

void Neighbours::learn(const IpAddress& address, const MacAddress& mac) {
  for (Hop& hop : hops_) {
    if (hop.address != address) continue;
    std::uint64_t bits = 0;
    for (const std::uint8_t byte : mac) bits = bits << 8 | byte;
    hop.mac.store(bits | kKnown, std::memory_order_relaxed);
  }
}

MacAddress Neighbours::mac_of(std::size_t destination) const {
  const std::uint64_t bits = hops_[hop_of_destination_[destination]].mac.load(std::memory_order_relaxed);
  MacAddress mac;
  for (std::size_t i = 0; i < mac.size(); ++i) mac[i] = static_cast<std::uint8_t>(bits >> (8 * (5 - i)));
  return mac;
}

}  // namespace nanet::link::dpdk
