// SPDX-License-Identifier: Apache-2.0
#include "link/reply_sockets.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "link/socket.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {

struct ReplySockets::Sockets {
  std::vector<Socket> all;
  std::vector<pollfd> polled;
};

ReplySockets::ReplySockets(const Endpoint& first, std::uint32_t count) : sockets_(std::make_unique<Sockets>()) {
  for (std::uint32_t k = 0; k < count; ++k) {
    Endpoint endpoint = first;
    if (first.port != 0) {
      if (first.port + k > 65'535) {
        throw SetupError(std::to_string(count) + " ports from " + to_string(first) + " on", "ports end at 65535",
                         "choose a lower one");
      }
      endpoint.port = static_cast<std::uint16_t>(first.port + k);
    }
    const Socket& socket = sockets_->all.emplace_back(family_of(endpoint.address));
    const SocketAddress address(endpoint);
    if (::bind(socket.fd(), address.data(), address.bytes()) != 0) {
      throw SetupError("cannot listen on " + to_string(endpoint), std::strerror(errno),
                       "choose another port, or see who has it: ss -lunp");
    }
    endpoints_.push_back(local_endpoint(socket));
    sockets_->polled.push_back({socket.fd(), POLLIN, 0});
  }
}

ReplySockets::~ReplySockets() = default;

std::optional<ReplySockets::Request> ReplySockets::receive(std::span<std::byte> room) {
  for (std::uint32_t k = 0; k < sockets_->all.size(); ++k) {
    SocketAddress from;
    socklen_t from_bytes = sizeof from;
    const ssize_t bytes = ::recvfrom(sockets_->all[k].fd(), room.data(), room.size(), 0, from.data(), &from_bytes);
    if (bytes >= 0) return Request{k, static_cast<std::size_t>(bytes), from.endpoint()};
  }
  return std::nullopt;
}

bool ReplySockets::reply(const Request& to, std::span<const std::byte> packet) {
  const SocketAddress address(to.from);
  const ssize_t sent = ::sendto(sockets_->all[to.socket].fd(), packet.data(), packet.size(), MSG_NOSIGNAL, address.data(),
                                address.bytes());
  return sent == static_cast<ssize_t>(packet.size());
}

bool ReplySockets::wait(std::uint64_t timeout_ns) {
  timespec limit{static_cast<time_t>(timeout_ns / 1'000'000'000), static_cast<long>(timeout_ns % 1'000'000'000)};
  return ::ppoll(sockets_->polled.data(), sockets_->polled.size(), &limit, nullptr) > 0;
}

}  // namespace nanet::link
