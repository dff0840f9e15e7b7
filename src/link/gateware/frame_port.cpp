// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/frame_port.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

[[noreturn]] void fail(int socket, const std::string& interface, const char* why) {
  const std::string reason = why != nullptr ? why : std::strerror(errno);
  const bool is_forbidden = errno == EPERM || errno == EACCES;
  if (socket >= 0) ::close(socket);
  throw SetupError(
      "the board's host port cannot be reached through interface " + interface, reason,
      is_forbidden ? "run as root, or with CAP_NET_RAW" : "set host_interface to the port that its cable is in (ip link)");
}

}  // namespace

PacketSocket::PacketSocket(const std::string& interface, std::uint16_t ethertype) {
  errno = 0;
  if (interface.empty() || interface.size() >= IFNAMSIZ) fail(-1, interface, "no interface has such a name");
  const unsigned index = ::if_nametoindex(interface.c_str());
  if (index == 0) fail(-1, interface, nullptr);
  const int protocol = htons(ethertype);
  socket_ = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
  if (socket_ < 0) fail(-1, interface, nullptr);
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  if (::ioctl(socket_, SIOCGIFHWADDR, &request) != 0) fail(socket_, interface, nullptr);
  std::memcpy(address_.data(), request.ifr_hwaddr.sa_data, address_.size());
  sockaddr_ll place{};
  place.sll_family = AF_PACKET;
  place.sll_protocol = static_cast<std::uint16_t>(protocol);
  place.sll_ifindex = static_cast<int>(index);
  if (::bind(socket_, reinterpret_cast<const sockaddr*>(&place), sizeof(place)) != 0) fail(socket_, interface, nullptr);
}

PacketSocket::~PacketSocket() { ::close(socket_); }

void PacketSocket::send(std::span<const std::byte> frame) { (void)::send(socket_, frame.data(), frame.size(), MSG_NOSIGNAL); }

std::span<const std::byte> PacketSocket::receive(std::span<std::byte> room, std::uint64_t timeout_ns) {
  ssize_t bytes = ::recv(socket_, room.data(), room.size(), 0);
  if (bytes < 0 && timeout_ns != 0) {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    const timespec timeout{static_cast<time_t>(timeout_ns / kSecond), static_cast<long>(timeout_ns % kSecond)};
    pollfd waiting{socket_, POLLIN, 0};
    if (::ppoll(&waiting, 1, &timeout, nullptr) > 0) bytes = ::recv(socket_, room.data(), room.size(), 0);
  }
  return room.first(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
}

}  // namespace nanet::link::gateware
