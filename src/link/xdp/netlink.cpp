// SPDX-License-Identifier: Apache-2.0
#include "link/xdp/netlink.hpp"

#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "link/socket.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

std::span<const std::byte> bytes_of(const IpAddress& address) {
  return std::as_bytes(std::span(address.bytes())).subspan(address.is_ipv6() ? 0 : 12);
}

// A message with an address and perhaps a number after it.
template <typename Body>
struct Request {
  nlmsghdr header{};
  Body body{};
  alignas(RTA_ALIGNTO) std::byte attributes[RTA_SPACE(16) + RTA_SPACE(4)]{};

  Request(std::uint16_t type, int flags) {
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    header.nlmsg_len = NLMSG_LENGTH(sizeof body);
  }
  void add(std::uint16_t type, std::span<const std::byte> value) {
    const rtattr head{.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(value.size())), .rta_type = type};
    std::byte* const at = attributes + (header.nlmsg_len - NLMSG_LENGTH(sizeof body));
    std::memcpy(at, &head, sizeof head);
    std::memcpy(at + RTA_LENGTH(0), value.data(), value.size());
    header.nlmsg_len += static_cast<std::uint32_t>(RTA_SPACE(value.size()));
  }
};
static_assert(sizeof(Request<rtmsg>) == NLMSG_SPACE(sizeof(rtmsg)) + sizeof(Request<rtmsg>::attributes));
static_assert(sizeof(Request<ndmsg>) == NLMSG_SPACE(sizeof(ndmsg)) + sizeof(Request<ndmsg>::attributes));

template <typename Body>
const Body& body_of(const std::byte* message) {
  return *reinterpret_cast<const Body*>(message + NLMSG_HDRLEN);
}

// Calls each(type, data, bytes) for the attributes after the body.
template <typename Body, typename Each>
void for_each_attribute(const std::byte* message, std::size_t message_bytes, Each each) {
  std::size_t offset = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(Body));
  while (offset + sizeof(rtattr) <= message_bytes) {
    rtattr head;
    std::memcpy(&head, message + offset, sizeof head);
    if (head.rta_len < sizeof head || offset + head.rta_len > message_bytes) return;
    each(head.rta_type, message + offset + RTA_LENGTH(0), std::size_t{head.rta_len} - RTA_LENGTH(0));
    offset += RTA_ALIGN(head.rta_len);
  }
}

// What an attribute says, if it holds an address of the family of `before`; else that.
IpAddress address_in(const std::byte* data, std::size_t bytes, const IpAddress& before) {
  if (before.is_ipv6()) {
    IpAddress::Bytes v6;
    if (bytes != v6.size()) return before;
    std::memcpy(v6.data(), data, v6.size());
    return IpAddress::ipv6(v6);
  }
  std::uint32_t v4;
  if (bytes != sizeof v4) return before;
  std::memcpy(&v4, data, sizeof v4);
  return ntohl(v4);
}

}  // namespace

Netlink::Netlink(std::uint32_t groups) : fd_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = groups;
  const timeval patience{1, 0};
  if (fd_ < 0 || ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
    const int error = errno;
    if (fd_ >= 0) ::close(fd_);
    throw SetupError("cannot ask the kernel for routes and neighbours", std::strerror(error), "allow rtnetlink sockets");
  }
}

Netlink::~Netlink() { ::close(fd_); }

void Netlink::drain() {
  while (::recv(fd_, answer_, sizeof answer_, MSG_DONTWAIT) > 0 || errno == ENOBUFS) {  // some were lost: they only say "look again"
  }
}

int Netlink::find_route(const IpAddress& destination, int interface_index, Route& out) {
  Request<rtmsg> request(RTM_GETROUTE, 0);
  request.body.rtm_family = static_cast<std::uint8_t>(family_of(destination));
  request.body.rtm_dst_len = static_cast<std::uint8_t>(destination.bit_count());
  request.add(RTA_DST, bytes_of(destination));
  request.add(RTA_OIF, std::as_bytes(std::span(&interface_index, 1)));
  if (int error = talk(&request, request.header.nlmsg_len, RTM_NEWROUTE)) return error;
  out = {destination, any_of(destination), body_of<rtmsg>(answer_).rtm_type};
  // IPv6 answers with such a route where IPv4 answers with an error.
  if (out.type == RTN_UNREACHABLE || out.type == RTN_BLACKHOLE || out.type == RTN_PROHIBIT) return ENETUNREACH;
  int error = 0;
  for_each_attribute<rtmsg>(answer_, answer_bytes_, [&](std::uint16_t type, const std::byte* data, std::size_t bytes) {
    if (type == RTA_GATEWAY) out.next_hop = address_in(data, bytes, out.next_hop);
    if (type == RTA_PREFSRC) out.source = address_in(data, bytes, out.source);
    if (type == RTA_VIA) error = EAFNOSUPPORT;  // a gateway with an address of the other family
  });
  return error;
}

int Netlink::find_neighbour(const IpAddress& address, int interface_index, Neighbour& out) {
  out = {};
  Request<ndmsg> request(RTM_GETNEIGH, 0);
  request.body.ndm_family = static_cast<std::uint8_t>(family_of(address));
  request.body.ndm_ifindex = interface_index;
  request.add(NDA_DST, bytes_of(address));
  if (int error = talk(&request, request.header.nlmsg_len, RTM_NEWNEIGH)) return error;
  const std::uint16_t state = body_of<ndmsg>(answer_).ndm_state;
  out.is_fresh = (state & (NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP | NUD_DELAY | NUD_PROBE)) != 0;
  for_each_attribute<ndmsg>(answer_, answer_bytes_, [&](std::uint16_t type, const std::byte* data, std::size_t bytes) {
    if (type == NDA_LLADDR && bytes == out.mac.size()) {
      std::memcpy(out.mac.data(), data, bytes);
      out.is_known = out.is_fresh || (state & NUD_STALE) != 0;
    }
  });
  return 0;
}

int Netlink::ask_for_neighbour(const IpAddress& address, int interface_index) {
  Request<ndmsg> request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_ACK);
  request.body.ndm_family = static_cast<std::uint8_t>(family_of(address));
  request.body.ndm_ifindex = interface_index;
  request.body.ndm_flags = NTF_USE;  // as if a packet were waiting for it
  request.add(NDA_DST, bytes_of(address));
  return talk(&request, request.header.nlmsg_len, NLMSG_ERROR);
}

// Sends a request and finds the message of answer_type, which then begins answer_. 0 or errno.
int Netlink::talk(void* request, std::size_t bytes, std::uint16_t answer_type) {
  auto* header = static_cast<nlmsghdr*>(request);
  header->nlmsg_seq = ++sequence_;
  if (::send(fd_, request, bytes, 0) < 0) return errno;
  for (;;) {
    const ssize_t got = ::recv(fd_, answer_, sizeof answer_, 0);
    if (got < static_cast<ssize_t>(sizeof(nlmsghdr))) return got < 0 ? errno : EIO;
    nlmsghdr first;  // every answer here is one message
    std::memcpy(&first, answer_, sizeof first);
    if (first.nlmsg_seq != sequence_) continue;  // late, to an earlier question
    if (first.nlmsg_len < sizeof first || first.nlmsg_len > static_cast<std::size_t>(got)) return EIO;
    answer_bytes_ = first.nlmsg_len;
    if (first.nlmsg_type == NLMSG_ERROR) return -body_of<nlmsgerr>(answer_).error;
    return first.nlmsg_type == answer_type ? 0 : EIO;
  }
}

}  // namespace nanet::link
