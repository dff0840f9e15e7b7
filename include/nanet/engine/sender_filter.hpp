// SPDX-License-Identifier: Apache-2.0
// Whose packets a link takes, by IPv4 address. Asked once per packet: the previous packet's sender is remembered, since one board sends many.
//
// Thread rules: one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace nanet::engine {

// An address or a network, host order: 10.0.0.0/24 is {0x0A000000, 24}.
struct SenderNetwork {
  std::uint32_t address;
  std::uint8_t prefix_bits;  // 0..32

  bool holds(std::uint32_t other) const {
    const std::uint32_t mask = prefix_bits == 0 ? 0 : ~std::uint32_t{0} << (32 - prefix_bits);
    return ((address ^ other) & mask) == 0;
  }
};

// "10.0.0.0/24", or "10.0.0.7". Throws SetupError.
std::vector<SenderNetwork> sender_networks(const std::vector<std::string>& texts);

class SenderFilter {
 public:
  // None: anyone may send.
  explicit SenderFilter(std::vector<SenderNetwork> networks) : networks_(std::move(networks)) {}

  bool refuses(std::uint32_t address) {
    if (networks_.empty() || (known_ && address == last_)) return false;
    if (std::none_of(networks_.begin(), networks_.end(), [address](SenderNetwork n) { return n.holds(address); })) return true;
    known_ = true;
    last_ = address;
    return false;
  }

 private:
  std::vector<SenderNetwork> networks_;
  std::uint32_t last_ = 0;
  bool known_ = false;
};

}  // namespace nanet::engine
