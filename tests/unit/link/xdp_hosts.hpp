// SPDX-License-Identifier: Apache-2.0
// Two hosts for the tests of AF_XDP: two network namespaces joined by a veth pair, made for a test and gone after it.
//
//   here   10.77.0.1 on nanet0: where the link under test runs, and the thread that made this object is
//   there  10.77.0.2 on nanet1: where ordinary sockets send and receive
//
// Takes what a container may not allow: new network namespaces, AF_XDP sockets, BPF. why_no_hosts() says what is missing.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sockets.hpp"

namespace nanet::link::test {

constexpr std::uint32_t kHere = 0x0A4D0001;
constexpr std::uint32_t kThere = 0x0A4D0002;

// Runs a command in the namespace of this thread; its exit status.
inline int run(const std::string& command) {
  const int status = std::system((command + " >/dev/null 2>&1").c_str());
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

// An ordinary UDP socket of a host, in the namespace of the thread that makes it.
class HostSocket {
 public:
  HostSocket(std::uint32_t address, std::uint16_t port) : fd_(::socket(AF_INET, SOCK_DGRAM, 0)) {
    const sockaddr_in to = at(address, port);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    const int bytes = 8 << 20;
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
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

  // Waits until packets go both ways: the kernel takes its time after an interface came up. Each host knows the other's address then.
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

  static void bring_up(const std::string& name, const std::string& address, int mtu) {
    // IPv6 would send packets of its own accord.
    run("sysctl -w net.ipv6.conf." + name + ".disable_ipv6=1");
    EXPECT_EQ(run("ip link set " + name + " mtu " + std::to_string(mtu) + " up"), 0);
    EXPECT_EQ(run("ip addr add " + address + "/24 dev " + name), 0);
    EXPECT_EQ(run("ip link set lo up"), 0);
  }

  int before_fd_ = -1;
  int there_fd_ = -1;
  int here_fd_ = -1;
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
