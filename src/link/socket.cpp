// SPDX-License-Identifier: Apache-2.0
#include "socket.hpp"

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "nanet/setup_error.hpp"

namespace nanet::link {

Socket::Socket() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  if (fd_ < 0) {
    throw SetupError("cannot open a UDP socket", std::strerror(errno),
                     "raise the limit of open files (ulimit -n) if there are too many");
  }
}

Socket::~Socket() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

bool Socket::set(int level, int option, int value) const { return ::setsockopt(fd_, level, option, &value, sizeof value) == 0; }

int Socket::get(int level, int option) const {
  int value = 0;
  socklen_t length = sizeof value;
  return ::getsockopt(fd_, level, option, &value, &length) == 0 ? value : -1;
}

void size_buffer(const Socket& socket, Direction direction, std::uint32_t wanted_bytes, const std::string& link_name,
                 std::vector<std::string>& notes) {
  const bool receiving = direction == Direction::receive;
  const int option = receiving ? SO_RCVBUF : SO_SNDBUF;
  const int wanted = static_cast<int>(wanted_bytes);
  if (!socket.set(SOL_SOCKET, receiving ? SO_RCVBUFFORCE : SO_SNDBUFFORCE, wanted)) {
    socket.set(SOL_SOCKET, option, wanted);
  }
  const int got = socket.get(SOL_SOCKET, option) / 2;  // the kernel doubles what was asked, for its own bookkeeping
  if (got < wanted) {
    const std::string limit = receiving ? "net.core.rmem_max" : "net.core.wmem_max";
    notes.push_back("link " + link_name + ": the " + (receiving ? "receive" : "send") + " buffer holds " + std::to_string(got) +
                    " bytes, not " + std::to_string(wanted) + " (" + limit +
                    " is lower, and this program has no CAP_NET_ADMIN) run: sysctl -w " + limit + "=" + std::to_string(wanted));
  }
}

void bind_to_interface(const Socket& socket, const std::string& interface, const std::string& link_name) {
  if (interface.empty()) return;
  const auto length = static_cast<socklen_t>(interface.size());
  if (::setsockopt(socket.fd(), SOL_SOCKET, SO_BINDTODEVICE, interface.data(), length) != 0) {
    throw SetupError(
        "link " + link_name + " cannot keep to interface " + interface, std::strerror(errno),
        errno == ENODEV ? "see `ip link` for the names there are" : "run as root or with CAP_NET_RAW, or leave interface out");
  }
}

sockaddr_in to_sockaddr(const Endpoint& endpoint) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  address.sin_addr.s_addr = htonl(endpoint.address);
  return address;
}

Endpoint from_sockaddr(const sockaddr_in& address) {
  return Endpoint{"udp", ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)};
}

std::uint64_t drain_refusals(int fd) {
  constexpr int kLimit = 1024;  // bounds the time; what is left comes with the next error
  std::uint64_t refused = 0;
  for (int i = 0; i < kLimit; ++i) {
    alignas(cmsghdr) char control[512];
    msghdr message{};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
      break;
    }
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) {
        sock_extended_err error;
        std::memcpy(&error, CMSG_DATA(c), sizeof error);
        const bool not_there = error.ee_errno == ECONNREFUSED || error.ee_errno == EHOSTUNREACH || error.ee_errno == ENETUNREACH;
        refused += error.ee_origin == SO_EE_ORIGIN_ICMP && not_there ? 1 : 0;
      }
    }
  }
  return refused;
}

bool wait_for(int fd, short events, std::uint64_t timeout_ns) {
  pollfd poll{fd, events, 0};
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000u);
  timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000u);
  return ::ppoll(&poll, fd >= 0 ? 1 : 0, &timeout, nullptr) > 0;
}

}  // namespace nanet::link
