// SPDX-License-Identifier: Apache-2.0
// A link made of memory whose payloads stay where they are, for the engine's tests: it keeps account of what it has lent.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <bit>

#include "support.hpp"

namespace nanet::engine::test {

class PlacedLink final : public link::Link {
 public:
  static constexpr std::size_t kSlotBytes = 1472;

  // kind device: nothing of a payload after its head can be read; the page tables ensure that.
  PlacedLink(std::uint32_t slots, MemoryKind kind) : kind_(kind), bytes_(slots * kSlotBytes), lent_(slots, false), free_(slots) {
    const int access = kind == MemoryKind::device ? PROT_NONE : PROT_READ | PROT_WRITE;
    void* const mapping = ::mmap(nullptr, bytes_, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(mapping, MAP_FAILED);
    memory_ = static_cast<std::byte*>(mapping);
    for (std::uint32_t slot = 0; slot < slots; ++slot) free_[slot] = slot;
  }
  ~PlacedLink() override { ::munmap(memory_, bytes_); }

  std::deque<MemoryLink::Incoming> incoming;

  std::size_t lent() const { return lent_.size() - free_.size(); }
  std::size_t lent_most() const { return lent_most_; }

  std::size_t min_room_bytes() const override { return sizeof(PlacedPacket); }
  flow::PayloadMemory payload_memory() const override { return {.memory = {memory_, bytes_}, .kind = kind_}; }

  link::RxBatch receive(std::span<std::byte> room, std::span<link::RxPacket> packets, std::uint64_t) override {
    link::RxBatch batch;
    while (!incoming.empty() && batch.packet_count < packets.size() && room.size() - batch.bytes_used >= sizeof(PlacedPacket)) {
      EXPECT_FALSE(free_.empty()) << "the receiver keeps more than its buffers hold";
      if (free_.empty()) break;
      const auto& next = incoming.front();
      const auto bytes = static_cast<std::uint16_t>(next.payload.size());
      const PlacedPacket placed = place(next.payload);
      std::memcpy(room.data() + batch.bytes_used, &placed, sizeof placed);
      packets[batch.packet_count++] = {.offset = batch.bytes_used, .bytes = bytes, .peer_address = next.from, .flags = next.flags};
      batch.bytes_used += sizeof placed;
      incoming.pop_front();
    }
    lent_most_ = std::max(lent_most_, lent());
    return batch;
  }

  void give_back(std::span<const PlacedPacket> packets) override {
    for (const PlacedPacket& packet : packets) {
      ASSERT_LT(packet.handle, lent_.size());
      ASSERT_TRUE(lent_[packet.handle]) << "given back twice";
      lent_[packet.handle] = false;
      free_.push_back(static_cast<std::uint32_t>(packet.handle));
    }
  }

  void send(std::span<const link::TxPacket>, std::uint64_t) override {}
  void wait(std::uint64_t) override {}
  link::Endpoint local() const override { return {}; }
  std::string path() const override { return "memory, in place"; }
  std::vector<std::string> notes() const override { return {}; }
  link::LinkStats stats() const override { return {}; }

 private:
  PlacedPacket place(const Bytes& payload) {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    lent_[slot] = true;
    std::byte* const there = memory_ + slot * kSlotBytes;
    PlacedPacket placed{};
    placed.handle = slot;
    placed.bytes = static_cast<std::uint16_t>(payload.size());
    placed.address = std::bit_cast<std::uint64_t>(there);
    if (kind_ == MemoryKind::device) {
      placed.head_bytes = PlacedPacket::head_bytes_max;
      std::copy_n(payload.begin(), std::min<std::size_t>(payload.size(), placed.head_bytes), placed.head);
    } else {
      std::copy(payload.begin(), payload.end(), there);
    }
    return placed;
  }

  MemoryKind kind_;
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
  std::vector<bool> lent_;
  std::vector<std::uint32_t> free_;  // the one given back last comes first: what is used too long shows soon
  std::size_t lent_most_ = 0;
};

}  // namespace nanet::engine::test
