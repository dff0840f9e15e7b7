// SPDX-License-Identifier: Apache-2.0
// A network for tests of links that stand in for a NIC: each runs in a process and a network namespace of its own, in which the kernel has
// one end ("far", 10.77.0.1) of a pair of virtual interfaces and the link the other ("near", address 10.77.0.2, which no kernel has).
// Both end with the test. An own process also because DPDK can be started once a process.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
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
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace nanet::link::test {

inline constexpr std::uint32_t kFar = 0x0A4D0001;   // 10.77.0.1, the kernel's
inline constexpr std::uint32_t kNear = 0x0A4D0002;  // 10.77.0.2, the link's

inline bool shell(const std::string& command) { return std::system(command.c_str()) == 0; }

// Runs the scenario in a child process; its expectations count here. One that hangs is ended after seconds_max.
inline void in_own_process(const std::function<void()>& scenario, unsigned seconds_max = 60) {
  std::fflush(stdout);
  std::fflush(stderr);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(seconds_max);
    try {
      scenario();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "threw: " << error.what();
    }
    std::fflush(stdout);
    std::fflush(stderr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFSIGNALED(status)) << "the scenario ended by signal " << WTERMSIG(status) << " (" << SIGALRM << ": it hung)";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "see the failures of the scenario above";
}

// The same in a network namespace with the two interfaces. Where the kernel forbids those, says so and runs nothing.
inline void in_own_network(const std::function<void()>& scenario, unsigned seconds_max = 60) {
  in_own_process(
      [&] {
        if (::unshare(CLONE_NEWNET) != 0 && (errno == EPERM || errno == ENOSYS || errno == EINVAL)) {
          std::printf("NOT RUN: a test of DPDK over virtual interfaces (no network namespaces: %s)\n", std::strerror(errno));
          return;
        }
        // Only what the test sends is on the wire.
        std::ofstream("/proc/sys/net/ipv6/conf/default/disable_ipv6") << 1;
        ASSERT_TRUE(
            shell("ip link add near type veth peer name far && ip link set near up && ip link set far up && ip link set lo up && "
                  "ip address add 10.77.0.1/24 dev far"));
        scenario();
      },
      seconds_max);
}

inline sockaddr_in inet(std::uint32_t address, std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = htonl(address);
  result.sin_port = htons(port);
  return result;
}

// An ordinary socket at the far end.
class FarSocket {
 public:
  explicit FarSocket(int type = SOCK_DGRAM, int protocol = 0) : fd_(::socket(AF_INET, type, protocol)) {
    const sockaddr_in own = inet(kFar, 0);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0) << std::strerror(errno);
    const int bytes = 32 << 20;
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
  }
  ~FarSocket() { ::close(fd_); }
  FarSocket(const FarSocket&) = delete;
  FarSocket& operator=(const FarSocket&) = delete;

  std::uint16_t port() const {
    sockaddr_in own{};
    socklen_t length = sizeof own;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &length);
    return ntohs(own.sin_port);
  }

  int fd() const { return fd_; }

  bool send(std::uint16_t port, const std::vector<std::byte>& data, std::uint32_t address = kNear) {
    const sockaddr_in to = inet(address, port);
    return ::sendto(fd_, data.data(), data.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) ==
           static_cast<ssize_t>(data.size());
  }

  struct Packet {
    std::vector<std::byte> data;
    std::uint32_t address;
    std::uint16_t port;
  };
  std::optional<Packet> receive(int timeout_ms = 2000) {
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, timeout_ms) <= 0) return std::nullopt;
    Packet packet{std::vector<std::byte>(65'536), 0, 0};
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const ssize_t bytes = ::recvfrom(fd_, packet.data.data(), packet.data.size(), 0, reinterpret_cast<sockaddr*>(&from), &length);
    if (bytes < 0) return std::nullopt;
    packet.data.resize(static_cast<std::size_t>(bytes));
    packet.address = ntohl(from.sin_addr.s_addr);
    packet.port = ntohs(from.sin_port);
    return packet;
  }

 private:
  int fd_;
};

}  // namespace nanet::link::test
