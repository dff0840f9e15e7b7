// SPDX-License-Identifier: Apache-2.0
// What the receiving and the sending half of the UDP link share: an owned socket, its set-up, and counters read by any thread.
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "link/tally.hpp"
#include "nanet/link/udp.hpp"

namespace nanet::link {

class Socket {
 public:
  explicit Socket(int family = AF_INET);  // UDP, non-blocking; IPv6 takes no IPv4. Throws SetupError
  ~Socket();
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;

  int fd() const { return fd_; }
  bool set(int level, int option, int value) const;
  int get(int level, int option) const;  // -1: the kernel does not know it

 private:
  int fd_;
};

enum class Direction : std::uint8_t { receive, send };

// Asks for a kernel buffer of wanted_bytes, by force where that is permitted; a smaller one gets a note.
void size_buffer(const Socket& socket, Direction direction, std::uint32_t wanted_bytes, const std::string& link_name,
                 std::vector<std::string>& notes);

// Only packets of this interface come in, and all go out through it; empty: any. Throws SetupError.
void bind_to_interface(const Socket& socket, const std::string& interface, const std::string& link_name);

// An option that exists once for each family, of the socket's own.
struct FamilyOption {
  int v4;
  int v6;
};
bool set(const Socket& socket, const IpAddress& family, FamilyOption option, int value);
int get(const Socket& socket, const IpAddress& family, FamilyOption option);  // -1: the kernel does not know it

// Joins the group for this socket, on the interface or else where the route to it leads; the kernel leaves it when the socket is closed. From then
// on the socket gets packets of groups that it joined itself, and of the senders joined. Throws SetupError.
void join_group(const Socket& socket, const Endpoint& group, const GroupJoin& join, const std::string& interface,
                const std::string& link_name);

// For packets that this socket sends to groups of a family.
void set_group_sending(const Socket& socket, const IpAddress& family, const GroupSending& sending);

inline int family_of(const IpAddress& address) { return address.is_ipv6() ? AF_INET6 : AF_INET; }
inline IpAddress any_of(const IpAddress& family) { return family.is_ipv6() ? IpAddress::ipv6({}) : IpAddress(); }

// An address and a port as the kernel takes and gives them. The port of both families lies at the same place.
struct SocketAddress {
  SocketAddress() : v6{} {}  // to be filled by the kernel
  explicit SocketAddress(const Endpoint& endpoint);

  sockaddr* data() { return reinterpret_cast<sockaddr*>(this); }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(this); }
  socklen_t bytes() const { return v4.sin_family == AF_INET6 ? sizeof v6 : sizeof v4; }

  Endpoint endpoint() const;  // udp://
  std::uint16_t port() const { return ntohs(v4.sin_port); }
  std::uint32_t ipv4() const { return ntohl(v4.sin_addr.s_addr); }
  IpAddress ipv6() const;

  union {
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
};
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));

// The endpoint that the kernel has bound the socket to.
Endpoint local_endpoint(const Socket& socket);

// Empties the socket's error queue; returns how many notices said that a peer is not there.
std::uint64_t drain_refusals(int fd);

// Sleeps until one of the poll events is there, at most timeout_ns; true: it is.
bool wait_for(int fd, short events, std::uint64_t timeout_ns);

}  // namespace nanet::link
