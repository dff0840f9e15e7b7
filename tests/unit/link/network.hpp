// SPDX-License-Identifier: Apache-2.0
// What tests of links that stand in for a NIC share: commands, interfaces, and sockets of a kernel at the other end. Addresses in host order.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "sockets.hpp"

namespace nanet::link::test {

// Runs a command in the namespace of this thread; its exit status.
inline int run(const std::string& command) {
  const int status = std::system(("(" + command + ") >/dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return text;
  char part[512];
  while (const std::size_t bytes = std::fread(part, 1, sizeof part, pipe)) text.append(part, bytes);
  ::pclose(pipe);
  return text;
}

// Switches an interface on, with an address unless that is empty. IPv6 would send packets by itself, so it is switched off.
inline void bring_up(const std::string& name, const std::string& address, int mtu) {
  run("echo 1 >/proc/sys/net/ipv6/conf/" + name + "/disable_ipv6");
  EXPECT_EQ(run("ip link set " + name + " mtu " + std::to_string(mtu) + " up"), 0);
  if (!address.empty()) {
    EXPECT_EQ(run("ip addr add " + address + "/24 dev " + name), 0);
  }
  EXPECT_EQ(run("ip link set lo up"), 0);
}

// An ordinary socket of a kernel's own, in the namespace of the thread that makes it. port 0: the kernel chooses one.
class HostSocket {
 public:
  HostSocket(std::uint32_t address, std::uint16_t port, int type = SOCK_DGRAM, int protocol = 0)
      : fd_(::socket(AF_INET, type, protocol)) {
    const sockaddr_in own = at(address, port);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0) << std::strerror(errno);
    const int bytes = 32 << 20;
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
  }
  ~HostSocket() { ::close(fd_); }
  HostSocket(const HostSocket&) = delete;
  HostSocket& operator=(const HostSocket&) = delete;

  static sockaddr_in at(std::uint32_t address, std::uint16_t port) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_addr.s_addr = htonl(address);
    result.sin_port = htons(port);
    return result;
  }

  int fd() const { return fd_; }
  std::uint16_t port() const {
    sockaddr_in own{};
    socklen_t length = sizeof own;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &length);
    return ntohs(own.sin_port);
  }

  bool send(std::uint32_t address, std::uint16_t port, const Bytes& data) {
    const sockaddr_in to = at(address, port);
    return ::sendto(fd_, data.data(), data.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) ==
           static_cast<ssize_t>(data.size());
  }

  struct From {
    Bytes data;
    std::uint32_t address;
    std::uint16_t port;
  };

  std::optional<From> receive(int timeout_ms = 1000) {
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, timeout_ms) <= 0) return std::nullopt;
    From from{Bytes(65536), 0, 0};
    sockaddr_in address{};
    socklen_t length = sizeof address;
    const ssize_t bytes = ::recvfrom(fd_, from.data.data(), from.data.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&address),
                                     &length);
    if (bytes < 0) return std::nullopt;
    from.data.resize(static_cast<std::size_t>(bytes));
    from.address = ntohl(address.sin_addr.s_addr);
    from.port = ntohs(address.sin_port);
    return from;
  }

 private:
  int fd_;
};

// Keeps this thread on the processor where it is.
class OneProcessor {
 public:
  OneProcessor() {
    EXPECT_EQ(::sched_getaffinity(0, sizeof before_, &before_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
    EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~OneProcessor() { ::sched_setaffinity(0, sizeof before_, &before_); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_;
};

// Puts whole frames on the wire of an interface, in the namespace of the thread that makes it.
class RawSocket {
 public:
  explicit RawSocket(const char* interface) : fd_(::socket(AF_PACKET, SOCK_RAW, 0)) {
    to_.sll_family = AF_PACKET;
    to_.sll_ifindex = static_cast<int>(::if_nametoindex(interface));
  }
  ~RawSocket() { ::close(fd_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  void send(const Bytes& frame) {
    EXPECT_EQ(::sendto(fd_, frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to_), sizeof to_),
              static_cast<ssize_t>(frame.size()));
  }

 private:
  int fd_;
  sockaddr_ll to_{};
};

}  // namespace nanet::link::test
