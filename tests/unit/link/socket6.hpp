// SPDX-License-Identifier: Apache-2.0
// A kernel's own socket over IPv6, for the tests of links over it.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "sockets.hpp"

namespace nanet::link::test {

// An ordinary IPv6 socket, with the system calls written out.
class Socket6 {
 public:
  explicit Socket6(const char* address = "::1", std::uint16_t port = 0) : fd_(::socket(AF_INET6, SOCK_DGRAM, 0)) {
    const sockaddr_in6 own = at(address, port);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0) << std::strerror(errno);
  }
  ~Socket6() { ::close(fd_); }
  Socket6(const Socket6&) = delete;
  Socket6& operator=(const Socket6&) = delete;

  static sockaddr_in6 at(const char* address, std::uint16_t port) {
    sockaddr_in6 result{};
    result.sin6_family = AF_INET6;
    result.sin6_port = htons(port);
    EXPECT_EQ(::inet_pton(AF_INET6, address, &result.sin6_addr), 1);
    return result;
  }

  int fd() const { return fd_; }
  std::uint16_t port() const {
    sockaddr_in6 own{};
    socklen_t length = sizeof own;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &length);
    return ntohs(own.sin6_port);
  }
  void send(const char* address, std::uint16_t port, const Bytes& data, int segment_bytes = 0) {
    EXPECT_EQ(::setsockopt(fd_, SOL_UDP, 103 /* UDP_SEGMENT */, &segment_bytes, sizeof segment_bytes), 0);
    const sockaddr_in6 to = at(address, port);
    EXPECT_EQ(::sendto(fd_, data.data(), data.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(data.size()))
        << std::strerror(errno);
  }
  std::optional<std::pair<Bytes, std::uint16_t>> receive(int timeout_ms = 1000) {
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, timeout_ms) <= 0) return std::nullopt;
    Bytes data(65536);
    sockaddr_in6 from{};
    socklen_t length = sizeof from;
    const ssize_t bytes = ::recvfrom(fd_, data.data(), data.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &length);
    if (bytes < 0) return std::nullopt;
    data.resize(static_cast<std::size_t>(bytes));
    return std::pair{data, ntohs(from.sin6_port)};
  }

 private:
  int fd_;
};

}  // namespace nanet::link::test
