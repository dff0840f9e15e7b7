// SPDX-License-Identifier: Apache-2.0
// UDP sockets, side by side, that answer whoever asks: for control, not for data.
//
// Thread rules: one thread; endpoint() from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nanet/link/endpoint.hpp"

namespace nanet::link {

class ReplySockets {
 public:
  // `count` sockets: the first listens at `first`, the others at the ports after it; at port 0 the kernel chooses each. Throws SetupError.
  ReplySockets(const Endpoint& first, std::uint32_t count);
  ~ReplySockets();

  struct Request {
    std::uint32_t socket;
    std::size_t bytes;  // that are in the room; a longer packet is cut
    Endpoint from;
  };

  // The oldest packet of the first socket that has one.
  std::optional<Request> receive(std::span<std::byte> room);

  // True: the kernel took it.
  bool reply(const Request& to, std::span<const std::byte> packet);

  // Sleeps until a socket has a packet, at most timeout_ns; true: one has.
  bool wait(std::uint64_t timeout_ns);

  const Endpoint& endpoint(std::uint32_t socket) const { return endpoints_[socket]; }

 private:
  struct Sockets;
  std::unique_ptr<Sockets> sockets_;
  std::vector<Endpoint> endpoints_;
};

}  // namespace nanet::link
