// SPDX-License-Identifier: Apache-2.0
// Multicast groups (224.0.0.0/4, ff00::/8): what a link has to know to receive from them and to send to them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nanet/link/endpoint.hpp"

namespace nanet::link {

// Packets that are sent to a group.
struct GroupSending {
  // Routers that a packet may pass, and one: 1 stays on the network. Too small: receivers beyond a router get nothing.
  std::uint8_t ttl = 1;

  // Receivers of the group on this machine get them too. Of sockets only: AF_XDP gives packets to the NIC and nowhere else.
  bool loop = true;

  // Keys among those of whoever sends.
  template <class Visit>
  void visit(Visit&& v) {
    v("multicast_ttl", ttl,
      {.help = "To a multicast group: routers that a packet may pass, and one; 1: it stays on the network",
       .least = 1,
       .most = 255,
       .too_small = "receivers beyond a router get nothing",
       .too_big = "the packets burden networks that have no receiver"});
    v("multicast_loop", loop, {.help = "To a multicast group: receivers on this machine get them too; not through xdp://"});
  }
};

// A link that listens on a group joins it while it lives.
struct GroupJoin {
  // Only packets of these senders, of the group's family (source-specific: IGMPv3, MLDv2); none: of any.
  std::vector<IpAddress> senders;

  // Whether that group can be joined so, as far as can be said without a kernel. link: "link boards".
  std::optional<config::Problem> check(const std::string& link, const Endpoint& group) const;
};

}  // namespace nanet::link
