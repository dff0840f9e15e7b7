// SPDX-License-Identifier: Apache-2.0
// Whose packets a link takes, by address. Asked once per packet: the previous packet's sender is remembered, since one board sends many.
//
// Thread rules: one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nanet/link/ip_address.hpp"

namespace nanet::engine {

// An address or a network: 10.0.0.0/24 is {0x0A000000, 24}.
struct SenderNetwork {
  link::IpAddress address;
  std::uint8_t prefix_bits;  // up to 32, or 128 of IPv6

  bool holds(const link::IpAddress& other) const { return address.shares_prefix(other, prefix_bits); }
  bool is_single() const { return prefix_bits == address.bit_count(); }
};

// "10.0.0.0/24", "10.0.0.7", "2001:db8::/32". Throws SetupError.
std::vector<SenderNetwork> sender_networks(const std::vector<std::string>& texts);

class SenderFilter {
 public:
  // None: anyone may send.
  explicit SenderFilter(std::vector<SenderNetwork> networks) : networks_(std::move(networks)) {}

  bool takes_anyone() const { return networks_.empty(); }

  // Link::peers() of the packets that are asked about next.
  void next_batch(std::span<const link::IpAddress> ipv6_peers) {
    known_ = known_ && ipv6_peers.empty() && ipv6_peers_.empty();
    ipv6_peers_ = ipv6_peers;
  }

  // By RxPacket::peer_address.
  bool refuses(std::uint32_t peer) {
    if (networks_.empty() || (known_ && peer == last_)) return false;
    const link::IpAddress address = ipv6_peers_.empty() ? link::IpAddress(peer) : ipv6_peers_[peer];
    if (std::none_of(networks_.begin(), networks_.end(), [&](const SenderNetwork& n) { return n.holds(address); })) return true;
    known_ = true;
    last_ = peer;
    return false;
  }

 private:
  std::vector<SenderNetwork> networks_;
  std::span<const link::IpAddress> ipv6_peers_;
  std::uint32_t last_ = 0;
  bool known_ = false;
};

}  // namespace nanet::engine
