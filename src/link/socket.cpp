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

Socket::Socket(int family) : fd_(::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  if (fd_ < 0) {
    throw SetupError("cannot open a UDP socket", std::strerror(errno),
                     errno == EAFNOSUPPORT ? "this kernel has no IPv6: use an IPv4 address"
                                           : "raise the limit of open files (ulimit -n) if there are too many");
  }
  if (family == AF_INET6) set(SOL_IPV6, IPV6_V6ONLY, 1);
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

bool set(const Socket& socket, const IpAddress& family, FamilyOption option, int value) {
  return family.is_ipv6() ? socket.set(SOL_IPV6, option.v6, value) : socket.set(SOL_IP, option.v4, value);
}

int get(const Socket& socket, const IpAddress& family, FamilyOption option) {
  return family.is_ipv6() ? socket.get(SOL_IPV6, option.v6) : socket.get(SOL_IP, option.v4);
}

SocketAddress::SocketAddress(const Endpoint& endpoint) : v6{} {
  if (endpoint.address.is_ipv6()) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    v6.sin6_scope_id = endpoint.address.scope();
    std::memcpy(&v6.sin6_addr, endpoint.address.bytes().data(), sizeof v6.sin6_addr);
  } else {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    v4.sin_addr.s_addr = htonl(endpoint.address.ipv4());
  }
}

IpAddress SocketAddress::ipv6() const {
  IpAddress::Bytes bytes;
  std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
  return IpAddress::ipv6(bytes, v6.sin6_scope_id);
}

Endpoint SocketAddress::endpoint() const { return {"udp", v4.sin_family == AF_INET6 ? ipv6() : IpAddress(ipv4()), port()}; }

Endpoint local_endpoint(const Socket& socket) {
  SocketAddress address;
  socklen_t length = sizeof address;
  ::getsockname(socket.fd(), address.data(), &length);
  return address.endpoint();
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
      if ((c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) || (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR)) {
        sock_extended_err error;
        std::memcpy(&error, CMSG_DATA(c), sizeof error);
        const bool not_there = error.ee_errno == ECONNREFUSED || error.ee_errno == EHOSTUNREACH || error.ee_errno == ENETUNREACH;
        const bool is_notice = error.ee_origin == SO_EE_ORIGIN_ICMP || error.ee_origin == SO_EE_ORIGIN_ICMP6;
        refused += is_notice && not_there ? 1 : 0;
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
