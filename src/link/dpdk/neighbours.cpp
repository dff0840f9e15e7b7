// SPDX-License-Identifier: Apache-2.0
#include "neighbours.hpp"

#include <arpa/inet.h>

#include <array>
#include <charconv>

#include "nanet/setup_error.hpp"

namespace nanet::link::dpdk {
namespace {

struct Network {
  std::uint32_t address;
  std::uint32_t mask;
};

std::optional<std::uint32_t> parse_address(const std::string& text) {
  in_addr address{};
  if (::inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

std::uint32_t mask_of(unsigned prefix_bits) { return prefix_bits == 0 ? 0 : ~std::uint32_t{0} << (32 - prefix_bits); }

Network parse_network(const DpdkConfig& config) {
  if (config.address.empty()) {
    if (!config.listen) {
      throw SetupError("link " + config.name + " has no address", "it only sends, so there is none to listen on",
                       "set address, as in 10.0.0.2/24");
    }
    return {config.listen->address.ipv4(), mask_of(24)};
  }
  const std::size_t slash = config.address.find('/');
  const std::optional<std::uint32_t> address = parse_address(config.address.substr(0, slash));
  unsigned bits = 24;
  bool good = address && *address != 0;
  if (good && slash != config.address.npos) {
    const char* end = config.address.data() + config.address.size();
    const auto [stop, error] = std::from_chars(config.address.data() + slash + 1, end, bits);
    good = error == std::errc() && stop == end && bits <= 32;
  }
  if (!good) {
    throw SetupError("link " + config.name + " cannot have the address '" + config.address + "'",
                     "it is no IPv4 address with prefix length", "write it as in 10.0.0.2/24");
  }
  if (config.listen && config.listen->address.ipv4() != *address) {
    throw SetupError("link " + config.name + " cannot listen on " + to_string(*config.listen),
                     "its own address is " + config.address, "use one address for both");
  }
  return {*address, mask_of(bits)};
}

}  // namespace

Neighbours::Neighbours(const DpdkConfig& config) : destinations_(config.destinations) {
  const Network network = parse_network(config);
  own_address_ = network.address;
  std::optional<std::uint32_t> gateway;
  if (!config.gateway.empty()) {
    gateway = parse_address(config.gateway);
    if (!gateway || ((*gateway ^ network.address) & network.mask) != 0) {
      throw SetupError(
          "link " + config.name + " cannot have the gateway '" + config.gateway + "'", "it is no IPv4 address of its own network",
          "use an address in the network of " + address_text(network.address) + ", or set address with its prefix length");
    }
  }
  for (const Endpoint& destination : destinations_) {
    const bool is_near = ((destination.address.ipv4() ^ network.address) & network.mask) == 0;
    if (!is_near && !gateway) {
      throw SetupError("link " + config.name + " cannot send to " + to_string(destination),
                       "it is outside of the link's own network, and no gateway is set",
                       "set gateway, or a shorter prefix length in address");
    }
    hop_of_destination_.push_back(hop_to(is_near ? destination.address.ipv4() : *gateway));
  }
}

std::size_t Neighbours::hop_to(std::uint32_t address) {
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

void Neighbours::learn(std::uint32_t address, const MacAddress& mac) {
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

std::string address_text(std::uint32_t address) {
  const in_addr network_order{htonl(address)};
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &network_order, text.data(), text.size());
  return text.data();
}

}  // namespace nanet::link::dpdk
