// SPDX-License-Identifier: Apache-2.0
// Questions to the kernel's routes and neighbour table (rtnetlink(7)).
//
// Thread rules: one thread at a time. Allocates nothing after the constructor.
#pragma once

#include <cstddef>
#include <cstdint>

#include "link/udp_frame.hpp"

namespace nanet::link {

struct Route {
  IpAddress next_hop;     // the destination itself, or the gateway
  IpAddress source;       // any: the interface has no address of that family
  std::uint8_t type = 0;  // RTN_UNICAST, ...
};

struct Neighbour {
  bool is_known = false;  // mac may be used
  bool is_fresh = false;  // no need to ask again
  MacAddress mac{};
};

class Netlink {
 public:
  explicit Netlink(std::uint32_t groups = 0);  // groups: RTMGRP_... to hear of changes. Throws SetupError
  ~Netlink();
  Netlink(const Netlink&) = delete;
  Netlink& operator=(const Netlink&) = delete;

  int fd() const { return fd_; }
  void drain();  // forgets what was heard

  // 0 or errno. Of either family.
  int find_route(const IpAddress& destination, int interface_index, Route& out);
  int find_neighbour(const IpAddress& address, int interface_index, Neighbour& out);
  int ask_for_neighbour(const IpAddress& address, int interface_index);  // needs CAP_NET_ADMIN

 private:
  int talk(void* request, std::size_t bytes, std::uint16_t answer_type);

  int fd_ = -1;
  std::uint32_t sequence_ = 0;
  alignas(8) std::byte answer_[8192];
  std::size_t answer_bytes_ = 0;  // of the message found by talk
};

}  // namespace nanet::link
