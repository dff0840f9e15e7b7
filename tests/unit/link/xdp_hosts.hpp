// SPDX-License-Identifier: Apache-2.0
// Two hosts for the tests of AF_XDP: two network namespaces joined by a veth pair, made for a test and gone after it.
//
//   here   10.77.0.1 on nanet0: where the link under test runs, and the thread that made this object is
//   there  10.77.0.2 on nanet1: where ordinary sockets send and receive
//
// Takes what a container may not allow: new network namespaces, AF_XDP sockets, BPF. why_no_hosts() says what is missing.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "network.hpp"

namespace nanet::link::test {

constexpr std::uint32_t kHere = 0x0A4D0001;
constexpr std::uint32_t kThere = 0x0A4D0002;

// Empty: the tests can run. Asked in a thread of its own, so that this one stays where it is.
inline std::string why_no_hosts() {
  std::string why;
  std::thread([&why] {
    bpf_attr map{};
    map.map_type = BPF_MAP_TYPE_XSKMAP;
    map.key_size = map.value_size = 4;
    map.max_entries = 1;
    if (::unshare(CLONE_NEWNET) != 0) {
      why = std::string("no new network namespace: ") + std::strerror(errno);
    } else if (run("ip link add nanet0 type veth peer name nanet1") != 0) {
      why = "no veth pair: `ip link add type veth` fails";
    } else if (const int fd = ::socket(AF_XDP, SOCK_RAW, 0); fd < 0) {
      why = std::string("no AF_XDP socket: ") + std::strerror(errno);
    } else {
      ::close(fd);
      const auto map_fd = static_cast<int>(::syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map));
      if (map_fd < 0) {
        why = std::string("no BPF: ") + std::strerror(errno);
      } else {
        ::close(map_fd);
      }
    }
  }).join();
  return why;
}

class Hosts {
 public:
  // queues of each interface, and its MTU.
  explicit Hosts(int queues = 1, int mtu = 1500) {
    before_fd_ = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(::unshare(CLONE_NEWNET), 0);
    there_fd_ = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(::unshare(CLONE_NEWNET), 0);
    here_fd_ = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    const std::string count = " numrxqueues " + std::to_string(queues) + " numtxqueues " + std::to_string(queues);
    EXPECT_EQ(run("ip link add nanet0" + count + " type veth peer name nanet1" + count + " netns /proc/" +
                  std::to_string(::getpid()) + "/fd/" + std::to_string(there_fd_)),
              0);
    bring_up("nanet0", "10.77.0.1", mtu);
    there([mtu] { bring_up("nanet1", "10.77.0.2", mtu); });
    meet();
  }
  ~Hosts() {
    EXPECT_EQ(::setns(before_fd_, CLONE_NEWNET), 0);
    for (const int fd : {before_fd_, there_fd_, here_fd_}) ::close(fd);
  }
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  // Does something as the other host.
  void there(const std::function<void()>& what) const {
    EXPECT_EQ(::setns(there_fd_, CLONE_NEWNET), 0);
    what();
    EXPECT_EQ(::setns(here_fd_, CLONE_NEWNET), 0);
  }

  // Waits until packets go to and fro: the kernel takes a while after an interface came up. Each host knows the other's address then.
  void meet() const {
    HostSocket mine(kHere, kMeetingPort);
    std::optional<HostSocket> other;
    there([&] { other.emplace(kThere, kMeetingPort); });
    for (int i = 0; i < 100; ++i) {
      other->send(kHere, kMeetingPort, payload(1, 10));
      if (!mine.receive(100)) continue;
      mine.send(kThere, kMeetingPort, payload(2, 10));
      if (other->receive(100)) return;
    }
    ADD_FAILURE() << "no packet goes through the veth pair";
  }

 private:
  static constexpr std::uint16_t kMeetingPort = 7000;

  int before_fd_ = -1;
  int there_fd_ = -1;
  int here_fd_ = -1;
};

}  // namespace nanet::link::test
