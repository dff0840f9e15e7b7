// SPDX-License-Identifier: Apache-2.0
// RFC 3678 (the socket calls), RFC 3376 (IGMPv3), RFC 4607 (source-specific groups).
#include <net/if.h>

#include <cerrno>
#include <cstring>

#include "link/socket.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

bool is_source_specific(std::uint32_t address) { return address >> 24 == 232; }

std::string limit_advice(const GroupJoin& join) {
  if (join.senders.empty()) return "raise net.ipv4.igmp_max_memberships with sysctl";
  return "name networks instead of " + std::to_string(join.senders.size()) +
         " addresses, or: sysctl -w net.ipv4.igmp_max_msf=" + std::to_string(join.senders.size());
}

std::string join_advice(int error, const std::string& interface, const GroupJoin& join) {
  switch (error) {
    case ENODEV:
      return interface.empty() ? "name the network interface in `interface`, or: ip route add 224.0.0.0/4 dev NAME"
                               : "see `ip link` for the names there are";
    case ENOBUFS: return limit_advice(join);
    case EADDRNOTAVAIL: return "name each sender once";
    default: return "see `ip maddress` for the groups that are joined";
  }
}

// 0 or errno.
template <typename Request>
int ask(const Socket& socket, int option, const Request& request) {
  return ::setsockopt(socket.fd(), SOL_IP, option, &request, sizeof request) == 0 ? 0 : errno;
}

void copy_address(sockaddr_storage& to, const Endpoint& endpoint) {
  const sockaddr_in address = to_sockaddr(endpoint);
  std::memcpy(&to, &address, sizeof address);
}

}  // namespace

void join_group(const Socket& socket, const Endpoint& group, const GroupJoin& join, const std::string& interface,
                const std::string& link_name) {
  const std::string problem = "link " + link_name + " cannot join " + to_string(group);
  if (join.senders.empty() && is_source_specific(group.address)) {
    throw SetupError(problem, "232.0.0.0/8 is for groups of known senders", "list the address of each in `senders`, no networks");
  }
  const unsigned index = interface.empty() ? 0 : ::if_nametoindex(interface.c_str());
  int error = !interface.empty() && index == 0 ? ENODEV : 0;
  if (join.senders.empty() && error == 0) {
    group_req request{};
    request.gr_interface = index;
    copy_address(request.gr_group, group);
    error = ask(socket, MCAST_JOIN_GROUP, request);
  }
  for (std::size_t i = 0; i < join.senders.size() && error == 0; ++i) {
    group_source_req request{};
    request.gsr_interface = index;
    copy_address(request.gsr_group, group);
    copy_address(request.gsr_source, Endpoint{"udp", join.senders[i], 0});
    error = ask(socket, MCAST_JOIN_SOURCE_GROUP, request);
  }
  if (error != 0) {
    throw SetupError(problem, error == ENODEV && interface.empty() ? "no route leads to it" : std::strerror(error),
                     join_advice(error, interface, join));
  }
  socket.set(SOL_IP, IP_MULTICAST_ALL, 0);
}

void set_group_sending(const Socket& socket, const GroupSending& sending) {
  socket.set(SOL_IP, IP_MULTICAST_TTL, sending.ttl);
  socket.set(SOL_IP, IP_MULTICAST_LOOP, sending.loop ? 1 : 0);
}

}  // namespace nanet::link
