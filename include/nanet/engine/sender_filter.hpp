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

#include "nanet/link/endpoint.hpp"
#include "nanet/link/link.hpp"

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

  // Whoever receives says so after each receive(), before it asks: with IPv6 a packet names its sender by Link::peers() of that call.
  void next_batch(const link::Link& link) {
    if (networks_.empty()) return;
    const std::span<const link::IpAddress> peers = link.peers();
    known_ = known_ && peers.empty() && peers_.empty();
    peers_ = peers;
  }

  // By RxPacket::peer_address.
  bool refuses(std::uint32_t peer) {
    if (networks_.empty() || (known_ && peer == last_)) return false;
    const link::IpAddress address = peers_.empty() ? link::IpAddress(peer) : peers_[peer];
    if (std::none_of(networks_.begin(), networks_.end(), [&](const SenderNetwork& n) { return n.holds(address); })) return true;
    known_ = true;
    last_ = peer;
    return false;
  }

 private:
  std::vector<SenderNetwork> networks_;
  std::span<const link::IpAddress> peers_;
  std::uint32_t last_ = 0;
  bool known_ = false;
};

}  // namespace nanet::engine
