// SPDX-License-Identifier: Apache-2.0
// RFC 3678 (the socket calls), RFC 3376 (IGMPv3), RFC 3810 (MLDv2), RFC 4607 (source-specific groups).
#include <net/if.h>

#include <cerrno>
#include <cstring>

#include "link/socket.hpp"
#include "nanet/config/setting.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

constexpr int kIpv6MulticastAll = 29;  // Linux 4.20; netinet/in.h has it from glibc 2.36 on

std::string limit_advice(const Endpoint& group, const GroupJoin& join) {
  if (join.senders.empty()) return "raise net.ipv4.igmp_max_memberships with sysctl";
  const std::string limit = group.address.is_ipv6() ? "net.ipv6.mld_max_msf" : "net.ipv4.igmp_max_msf";
  const std::string count = std::to_string(join.senders.size());
  const std::string raise = "sysctl -w " + limit + "=" + count;
  return group.address.is_source_specific() ? raise : "name networks instead of " + count + " addresses, or: " + raise;
}

std::string join_advice(int error, const Endpoint& group, const std::string& interface, const GroupJoin& join) {
  const std::string all = group.address.is_ipv6() ? "ff00::/8" : "224.0.0.0/4";
  switch (error) {
    case ENODEV:
      return interface.empty() ? "name the network interface in `interface`, or: ip route add " + all + " dev NAME"
                               : "see `ip link` for the names there are";
    case ENOBUFS: return limit_advice(group, join);
    case EADDRNOTAVAIL: return "name each sender once";
    default: return "see `ip maddress` for the groups that are joined";
  }
}

// 0 or errno.
template <typename Request>
int ask(const Socket& socket, const Endpoint& group, int option, const Request& request) {
  const int level = group.address.is_ipv6() ? SOL_IPV6 : SOL_IP;
  return ::setsockopt(socket.fd(), level, option, &request, sizeof request) == 0 ? 0 : errno;
}

void put(sockaddr_storage& to, const Endpoint& endpoint) {
  const SocketAddress address(endpoint);
  std::memcpy(&to, &address, sizeof address);
}

std::string cannot_join(const std::string& link, const Endpoint& group) { return link + " cannot join " + to_string(group); }

}  // namespace

std::optional<config::Problem> GroupJoin::check(const std::string& link, const Endpoint& group) const {
  if (senders.empty() && group.address.is_source_specific()) {
    return config::Problem{"endpoint", cannot_join(link, group),
                           std::string(group.address.is_ipv6() ? "ff3x::/32" : "232.0.0.0/8") + " is for groups of known senders",
                           "list the address of each in `senders`, no networks"};
  }
  for (const IpAddress& sender : senders) {
    if (sender.is_ipv6() == group.address.is_ipv6()) continue;
    return config::Problem{"senders", cannot_join(link, group), "its sender " + to_string(sender) + " is of another family",
                           "use IPv4, or IPv6, for both"};
  }
  return std::nullopt;
}

void join_group(const Socket& socket, const Endpoint& group, const GroupJoin& join, const std::string& interface,
                const std::string& link_name) {
  const std::string link = "link " + link_name;
  config::refuse_broken(join.check(link, group));
  const unsigned index = interface.empty() ? group.address.scope() : ::if_nametoindex(interface.c_str());
  int error = !interface.empty() && index == 0 ? ENODEV : 0;
  if (join.senders.empty() && error == 0) {
    group_req request{};
    request.gr_interface = index;
    put(request.gr_group, group);
    error = ask(socket, group, MCAST_JOIN_GROUP, request);
  }
  for (std::size_t i = 0; i < join.senders.size() && error == 0; ++i) {
    group_source_req request{};
    request.gsr_interface = index;
    put(request.gsr_group, group);
    put(request.gsr_source, Endpoint{"udp", join.senders[i], 0});
    error = ask(socket, group, MCAST_JOIN_SOURCE_GROUP, request);
  }
  if (error != 0) {
    throw SetupError(cannot_join(link, group), error == ENODEV && interface.empty() ? "no route leads to it" : std::strerror(error),
                     join_advice(error, group, interface, join));
  }
  set(socket, group.address, {IP_MULTICAST_ALL, kIpv6MulticastAll}, 0);
}

void set_group_sending(const Socket& socket, const IpAddress& family, const GroupSending& sending) {
  set(socket, family, {IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS}, sending.ttl);
  set(socket, family, {IP_MULTICAST_LOOP, IPV6_MULTICAST_LOOP}, sending.loop ? 1 : 0);
}

}  // namespace nanet::link
