// SPDX-License-Identifier: Apache-2.0
// A link without a network for tests: keeps copies of what is sent, and gives out what it was told to receive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

#include "nanet/link/link.hpp"

namespace nanet::emulate {

class FakeLink final : public link::Link {
 public:
  struct Sent {
    std::vector<std::byte> payload;
    std::uint32_t destination;
    std::uint64_t at_ns;
  };

  std::size_t min_room_bytes() const override { return 2048; }

  link::RxBatch receive(std::span<std::byte> room, std::span<link::RxPacket> packets, std::uint64_t) override {
    link::RxBatch batch;
    while (!to_receive.empty() && batch.packet_count < packets.size() && batch.bytes_used + to_receive.front().size() <= room.size()) {
      const std::vector<std::byte>& payload = to_receive.front();
      std::copy(payload.begin(), payload.end(), room.begin() + batch.bytes_used);
      packets[batch.packet_count++] = {batch.bytes_used, static_cast<std::uint16_t>(payload.size()), 0, 0, next_flags, 0};
      batch.bytes_used += static_cast<std::uint32_t>((payload.size() + 7) / 8 * 8);
      to_receive.pop_front();
    }
    return batch;
  }

  void send(std::span<const link::TxPacket> packets, std::uint64_t now_ns) override {
    send_sizes.push_back(packets.size());
    for (const link::TxPacket& packet : packets) {
      sent.push_back({std::vector<std::byte>(packet.data, packet.data + packet.bytes), packet.destination, now_ns});
      contiguous = contiguous && (&packet == packets.data() || packet.data == (&packet - 1)->data + packet.bytes);
    }
  }

  void wait(std::uint64_t) override {}
  link::Endpoint local() const override { return {}; }
  std::string path() const override { return "memory"; }
  std::vector<std::string> notes() const override { return {}; }
  link::LinkStats stats() const override { return {}; }

  std::vector<Sent> sent;
  std::vector<std::size_t> send_sizes;  // packets of each call
  bool contiguous = true;               // the packets of every call lay back to back
  std::deque<std::vector<std::byte>> to_receive;
  std::uint16_t next_flags = 0;
};

}  // namespace nanet::emulate
