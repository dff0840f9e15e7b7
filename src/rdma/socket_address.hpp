// SPDX-License-Identifier: Apache-2.0
// Name and port to a socket address, for UCX's listener and its clients.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::rdma::detail {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
};

inline SocketAddress resolve(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0)
    throw SetupError("no address for '" + host + "'", gai_strerror(error), "give an IP address or a host name that is known");
  SocketAddress address;
  address.bytes = found->ai_addrlen;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return address;
}

inline std::uint16_t port_of(const sockaddr_storage& storage) {
  char service[16] = {};
  getnameinfo(reinterpret_cast<const sockaddr*>(&storage), sizeof storage, nullptr, 0, service, sizeof service, NI_NUMERICSERV);
  return static_cast<std::uint16_t>(std::stoul(std::string("0") + service));
}

}  // namespace nanet::rdma::detail
