// SPDX-License-Identifier: Apache-2.0
// Where a set-up channel listens and is called: host and port for TCP, or a path for a Unix socket.
#pragma once

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::rdma::detail {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

inline bool is_path(const std::string& address) { return address.starts_with('/'); }

// For people: "10.0.0.1 port 7300", or the path.
inline std::string place_text(const std::string& address, std::uint16_t port) {
  return is_path(address) ? address : address + " port " + std::to_string(port);
}

// Throws SetupError. flags: as getaddrinfo's.
inline SocketAddress resolve(const std::string& host, std::uint16_t port, int flags) {
  SocketAddress address;
  if (is_path(host)) {
    auto& local = reinterpret_cast<sockaddr_un&>(address.storage);
    if (host.size() >= sizeof local.sun_path)
      throw SetupError("no socket can be at " + host, "a path of a Unix socket has at most 107 bytes", "give a shorter one");
    local.sun_family = AF_UNIX;
    std::memcpy(local.sun_path, host.c_str(), host.size() + 1);
    address.bytes = sizeof local;
    return address;
  }
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0)
    throw SetupError("no address for '" + host + "'", gai_strerror(error), "give an IP address or a host name that is known");
  address.bytes = found->ai_addrlen;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return address;
}

inline std::uint16_t port_of(const SocketAddress& address) {
  if (address.family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address.storage).sin_port);
  if (address.family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_port);
  return 0;
}

// Whether only processes of this machine reach it.
inline bool is_one_machine(const SocketAddress& address) {
  if (address.family() == AF_UNIX) return true;
  if (address.family() == AF_INET) return ntohl(reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr.s_addr) >> 24 == 127;
  const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

// Whether it stands for every interface.
inline bool is_any(const SocketAddress& address) {
  if (address.family() == AF_INET) return reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr.s_addr == INADDR_ANY;
  return address.family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr);
}

}  // namespace nanet::rdma::detail
