// SPDX-License-Identifier: Apache-2.0
// For the tests of links whose payloads stay in place: receives, keeps account of what is lent, and gives it back.
#pragma once

#include <algorithm>
#include <bit>
#include <deque>

#include "sockets.hpp"

namespace nanet::link::test {

class Lent {
 public:
  struct One {
    PlacedPacket placed;
    RxPacket packet;

    const std::byte* address() const { return std::bit_cast<const std::byte*>(placed.address); }
    Bytes data() const {
      Bytes bytes(placed.head, placed.head + std::min<std::size_t>(placed.head_bytes, placed.bytes));
      const std::size_t rest = placed.bytes - bytes.size();
      bytes.insert(bytes.end(), address(), address() + rest);
      return bytes;
    }
  };

  explicit Lent(Link& link, std::size_t entries = 128) : link_(link), room_(entries), entries_(entries) {}
  ~Lent() { give_back(all_.size()); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  // One call; how many came.
  std::size_t receive() {
    const RxBatch batch = link_.receive(std::as_writable_bytes(std::span(room_)), entries_, 0);
    EXPECT_EQ(batch.bytes_used, batch.packet_count * sizeof(PlacedPacket));
    const flow::PayloadMemory memory = link_.payload_memory();
    for (std::uint32_t i = 0; i < batch.packet_count; ++i) {
      const One one{room_[i], entries_[i]};
      EXPECT_EQ(one.packet.offset, i * sizeof(PlacedPacket));
      EXPECT_EQ(one.packet.bytes, one.placed.bytes);
      if (one.placed.bytes > one.placed.head_bytes) {
        EXPECT_GE(one.address(), memory.memory.data());
        EXPECT_LE(one.address() + one.placed.bytes - one.placed.head_bytes, memory.memory.data() + memory.memory.size());
      }
      all_.push_back(one);
    }
    return batch.packet_count;
  }

  // Until so many more are there, or none came for a second.
  void collect(std::size_t count) {
    for (const std::size_t enough = all_.size() + count; all_.size() < enough;) {
      if (receive() != 0) continue;
      link_.wait(1'000'000'000);
      if (receive() == 0) return;
    }
  }

  // The oldest.
  void give_back(std::size_t count) {
    std::vector<PlacedPacket> packets;
    for (; packets.size() < count && !all_.empty(); all_.pop_front()) packets.push_back(all_.front().placed);
    link_.give_back(packets);
  }

  std::deque<One>& all() { return all_; }

 private:
  Link& link_;
  std::vector<PlacedPacket> room_;
  std::vector<RxPacket> entries_;
  std::deque<One> all_;  // lent, oldest first
};

}  // namespace nanet::link::test
