// SPDX-License-Identifier: Apache-2.0
// Several sockets that share an endpoint (SO_REUSEPORT), and which of them a packet belongs to: docs/design/queues.md.
//
// The kernel chooses by a program of classic BPF, which needs no privileges. It runs once for each message, and of a coalesced one it sees the
// first packet. So the receiver looks at the key of every packet again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "link/socket.hpp"

namespace nanet::link {

class QueueSteering {
 public:
  explicit QueueSteering(const UdpConfig& config)
      : queues_(config.queues),
        queue_(config.queue),
        key_at_(config.key_at),
        key_bytes_(config.key_bytes),
        by_key_(config.queues > 1 && config.steer_by == SteerBy::key) {}

  // RxPacket::wrong_queue, or 0.
  std::uint16_t flag_of(std::span<const std::byte> payload) const {
    return by_key_ && queue_of(payload) != queue_ ? RxPacket::wrong_queue : std::uint16_t{0};
  }

  // By its key; a packet that is too short for one belongs to queue 0.
  std::uint32_t queue_of(std::span<const std::byte> payload) const {
    if (payload.size() < std::size_t{key_at_} + key_bytes_) return 0;
    std::byte folded{};
    for (const std::byte byte : payload.subspan(key_at_, key_bytes_)) folded ^= byte;
    return static_cast<std::uint32_t>(folded) % queues_;
  }

 private:
  std::uint32_t queues_;
  std::uint32_t queue_;
  std::uint32_t key_at_;
  std::uint32_t key_bytes_;
  bool by_key_;
};

// Before and after a socket of several is bound. Throw SetupError.
void before_bind(const Socket& socket, const UdpConfig& config);
void after_bind(const Socket& socket, const UdpConfig& config);

}  // namespace nanet::link
