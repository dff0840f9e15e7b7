// SPDX-License-Identifier: Apache-2.0
// Packets to a link, in batches, with what goes wrong on purpose. Which packet meets which fault depends on the seed and on what packet it is, not
// on time.
//
// Books: packets_made = packets_sent - packets_duplicated + packets_lost + packets_silent, once flush() was called.
//
// Thread rules: one thread; counters from any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "km3_emulate/packets.hpp"
#include "nanet/link/link.hpp"

namespace nanet::km3_emulate {

#define NANET_TOWER_COUNTERS(X) \
  X(slices)                     \
  X(units)                      \
  X(units_made_late)            \
  X(hits)                       \
  X(packets_made)               \
  X(packets_sent)               \
  X(bytes_sent)                 \
  X(packets_lost)               \
  X(packets_duplicated)         \
  X(packets_reordered)          \
  X(packets_damaged)            \
  X(packets_silent)             \
  X(control_requests)           \
  X(control_repeated)           \
  X(control_bad)

enum class TowerCounter : std::uint8_t {
#define X(name) name,
  NANET_TOWER_COUNTERS(X)
#undef X
};

inline constexpr std::string_view kTowerCounterNames[] = {
#define X(name) #name,
    NANET_TOWER_COUNTERS(X)
#undef X
};
inline constexpr std::size_t kTowerCounters = std::size(kTowerCounterNames);

class TowerCounters {
 public:
  void add(TowerCounter counter, std::uint64_t n = 1) { set(counter, value(counter) + n); }
  void set(TowerCounter counter, std::uint64_t n) {
    values_[static_cast<std::size_t>(counter)].store(n, std::memory_order_relaxed);
  }
  std::uint64_t value(TowerCounter counter) const {
    return values_[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
  }

  void add_damaged(std::size_t field) { damaged_[field].store(damaged(field) + 1, std::memory_order_relaxed); }
  std::uint64_t damaged(std::size_t field) const { return damaged_[field].load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::uint64_t>, kTowerCounters> values_{};
  std::array<std::atomic<std::uint64_t>, std::size(kPacketFields)> damaged_{};
};

class Sender {
 public:
  Sender(const TowerConfig& config, std::uint32_t streams, link::Link& link, TowerCounters& counters);

  // Where a packet is among all of its tower.
  struct PacketPlace {
    std::uint64_t slice;
    std::uint32_t stream;  // index
    std::uint32_t floor;   // from 0
    std::uint32_t index;
  };

  // The packet has to stay where it is until its stream's next one was given, or flush().
  void send(std::span<const std::byte> packet, const PacketPlace& place, std::uint64_t now_ns);

  // What is in a batch leaves; packets that wait for a later one still wait.
  void send_batch(std::uint64_t now_ns);

  // So does what waits of a stream: its unit ends.
  void release(std::uint32_t stream, std::uint64_t now_ns);

 private:
  void put(const link::TxPacket& packet, std::uint64_t now_ns);
  link::TxPacket damaged(const link::TxPacket& packet, class Random& random);

  static constexpr std::uint32_t kBatchMax = 128;

  const TowerConfig& config_;
  link::Link& link_;
  TowerCounters& counters_;
  bool has_faults_;
  std::uint32_t batched_ = 0;
  std::array<link::TxPacket, kBatchMax> batch_;
  std::uint32_t scratch_used_ = 0;
  std::vector<std::byte> scratch_;                      // for damaged packets of a batch
  std::vector<std::optional<link::TxPacket>> waiting_;  // by stream
};

}  // namespace nanet::km3_emulate
