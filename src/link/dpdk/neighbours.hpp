// SPDX-License-Identifier: Apache-2.0
// The next hop to each destination, and the Ethernet address of each hop.
//
// Thread rules: set-up in one thread. Then the threads that empty the device learn, and any thread reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "link/udp_frame.hpp"
#include "nanet/link/dpdk.hpp"

namespace nanet::link::dpdk {

class Neighbours {
 public:
  // Reads address, gateway and destinations. Throws SetupError: no own address, or a destination that no route reaches.
  explicit Neighbours(const DpdkConfig& config);

  // The link's own address. All addresses here are of its family and without a scope.
  const IpAddress& own_address() const { return own_address_; }

  // The hops to ask for; a destination that is the link itself needs no asking.
  std::size_t hop_count() const { return hops_.size(); }
  const IpAddress& hop_address(std::size_t hop) const { return hops_[hop].address; }
  bool is_known(std::size_t hop) const { return (hops_[hop].mac.load(std::memory_order_relaxed) & kKnown) != 0; }
  // The first destination beyond a hop, for messages: "udp://10.0.0.7:6200".
  std::string destination_of(std::size_t hop) const;

  // Takes note of what a station said, if it is one to send to.
  void learn(const IpAddress& address, const MacAddress& mac);

  // Where frames to a destination go; zeros while it is not known.
  MacAddress mac_of(std::size_t destination) const;

 private:
  static constexpr std::uint64_t kKnown = std::uint64_t{1} << 63;  // a ring's Ethernet address is 0

  struct Hop {
    IpAddress address;
    std::atomic<std::uint64_t> mac{0};  // big-endian in the low 48 bits, and kKnown
    explicit Hop(const IpAddress& a) : address(a) {}
  };
  std::size_t hop_to(const IpAddress& address);

  IpAddress own_address_;
  std::deque<Hop> hops_;
  std::vector<std::size_t> hop_of_destination_;
  std::vector<Endpoint> destinations_;
};

// The link has one network, so a scope says nothing, and no frame says one.
inline IpAddress without_scope(const IpAddress& address) { return IpAddress::ipv6(address.bytes()); }

}  // namespace nanet::link::dpdk
