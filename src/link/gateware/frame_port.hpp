// SPDX-License-Identifier: Apache-2.0
// Ethernet frames of one kind, without their check sequence, by a port of this machine: what the board of docs/design/gateware-board.md is reached by.
//
// Thread rules: send: one thread at a time; receive: one thread; both may run at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "link/udp_frame.hpp"

namespace nanet::link::gateware {

class FramePort {
 public:
  virtual ~FramePort() = default;

  virtual MacAddress address() const = 0;
  virtual void send(std::span<const std::byte> frame) = 0;  // lost where the port has no room

  // The next frame, copied into `room`, what is longer cut; empty: none came in timeout_ns.
  virtual std::span<const std::byte> receive(std::span<std::byte> room, std::uint64_t timeout_ns) = 0;
};

// A packet socket: needs CAP_NET_RAW. It sees frames of its EtherType only.
class PacketSocket final : public FramePort {
 public:
  PacketSocket(const std::string& interface, std::uint16_t ethertype);  // throws SetupError
  ~PacketSocket() override;
  PacketSocket(const PacketSocket&) = delete;
  PacketSocket& operator=(const PacketSocket&) = delete;

  MacAddress address() const override { return address_; }
  void send(std::span<const std::byte> frame) override;
  std::span<const std::byte> receive(std::span<std::byte> room, std::uint64_t timeout_ns) override;

 private:
  int socket_ = -1;
  MacAddress address_{};
};

}  // namespace nanet::link::gateware
