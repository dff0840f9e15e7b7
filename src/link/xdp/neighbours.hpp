// SPDX-License-Identifier: Apache-2.0
// Where packets for each destination go on the wire: the kernel's routes and its neighbour table (ARP, NDP) say, and are asked again for as
// long as the link lives, by a thread of its own that sleeps nearly always. Sending costs one load from memory per packet.
//
// The kernel does the asking and the answering. It is made to ask by a netlink request; by a process that gave its privileges up, with an empty
// datagram to the neighbour's discard port.
// Thread rules: address_of() and unknown() from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "link/socket.hpp"
#include "link/xdp/interface.hpp"
#include "link/xdp/netlink.hpp"
#include "nanet/link/endpoint.hpp"

namespace nanet::link {

class Neighbours {
 public:
  // Destinations of one family, one at least. Waits at most a second for neighbours that the kernel does not know. Throws SetupError when a destination cannot be reached through
  // the interface.
  Neighbours(const std::vector<Endpoint>& destinations, const Interface& interface, const std::string& link_name);
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  // False: not known yet.
  bool address_of(std::uint32_t destination, MacAddress& out) const {
    const std::uint64_t packed = entries_[destination].mac.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(packed >> (8 * i));
    return (packed & kKnown) != 0;
  }

  // That the kernel would send from.
  const IpAddress& source_address(std::uint32_t destination) const { return entries_[destination].source; }

  std::vector<std::string> unknown() const;  // destinations, as text

 private:
  static constexpr std::uint64_t kKnown = std::uint64_t{1} << 48;

  struct Entry {
    std::atomic<std::uint64_t> mac{0};  // first byte lowest, and kKnown
    IpAddress address, source;
    std::string text;
  };

  bool refresh(Netlink& netlink);
  bool refresh_one(Netlink& netlink, Entry& entry);
  void run();

  Interface interface_;
  std::vector<Entry> entries_;
  Netlink netlink_;  // questions
  Netlink changes_;  // says that something changed
  Socket probe_;     // for the empty datagrams
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace nanet::link
