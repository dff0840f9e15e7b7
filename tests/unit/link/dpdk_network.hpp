// SPDX-License-Identifier: Apache-2.0
// A network for the tests of DPDK: each runs in a process and a network namespace of its own, in which the kernel has
// one end ("far", 10.77.0.1) of a pair of virtual interfaces and the link the other ("near", address 10.77.0.2, which no kernel has).
// Both end with the test. An own process also because DPDK can be started once a process.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>

#include "network.hpp"

namespace nanet::link::test {

inline constexpr std::uint32_t kFar = 0x0A4D0001;   // 10.77.0.1, the kernel's
inline constexpr std::uint32_t kNear = 0x0A4D0002;  // 10.77.0.2, the link's

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
        run("echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6");  // for what a driver makes
        ASSERT_EQ(run("ip link add near type veth peer name far"), 0);
        bring_up("near", "", 1500);
        bring_up("far", "10.77.0.1", 1500);
        scenario();
      },
      seconds_max);
}

// An ordinary socket at the far end.
class FarSocket : public HostSocket {
 public:
  explicit FarSocket(int type = SOCK_DGRAM, int protocol = 0) : HostSocket(kFar, 0, type, protocol) {}

  bool send(std::uint16_t port, const Bytes& data, std::uint32_t address = kNear) { return HostSocket::send(address, port, data); }
};

}  // namespace nanet::link::test
