// SPDX-License-Identifier: Apache-2.0
// CLOP: circular list of persistent receive buffers, with a packet index beside each buffer.
//
// A buffer belongs to the producer from acquire() to hand_over(), then to the consumer until release(). Buffers are handed
// over and returned in order; a BufferPool (buffer_pool.hpp) in place of acquire() lets a producer fill several side by side. The CLOP does not tell the consumer that a buffer is there: the completion queue does, and
// carries the data's visibility to the consumer; release() carries it back.
//
// Thread rules: one producer thread (acquire, hand_over), one consumer thread (release); in_use() from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nanet/contract.hpp"
#include "nanet/flow/region.hpp"

namespace nanet::flow {

struct ClopConfig {
  std::string name = "clop";
  std::uint8_t id = 0;  // Completion::clop
  MemoryKind kind = MemoryKind::host;
  std::uint32_t buffer_count = 64;  // power of two, 2..65536. Too few: bursts are dropped; too many: caches are missed
  std::uint32_t buffer_bytes = 65536;  // multiple of 4096. Too big: latency at low rates is the time-out; too small: a completion for few packets
  std::uint32_t index_capacity = 0;  // packets a buffer can describe, at most 65535; 0: buffer_bytes / 64
  bool huge_pages = true;
  bool locked = true;
};

class Clop {
 public:
  explicit Clop(const ClopConfig& config);  // throws SetupError

  const ClopConfig& config() const { return config_; }  // index_capacity filled in
  std::uint8_t id() const { return config_.id; }
  std::uint32_t buffer_count() const { return config_.buffer_count; }
  std::uint32_t buffer_bytes() const { return config_.buffer_bytes; }
  std::uint32_t index_capacity() const { return config_.index_capacity; }
  const std::vector<std::string>& notes() const { return region_.notes(); }

  // Either side, for a buffer that is its own. buffer_index < buffer_count.
  std::span<std::byte> buffer(std::uint32_t buffer_index) const {
    return {region_.data() + std::size_t{buffer_index} * config_.buffer_bytes, config_.buffer_bytes};
  }
  std::span<PacketRef> packet_index(std::uint32_t buffer_index) const {
    return {index_ + std::size_t{buffer_index} * config_.index_capacity, config_.index_capacity};
  }
  // All buffers, back to back: what a back-end registers.
  std::span<std::byte> memory() const { return {region_.data(), std::size_t{config_.buffer_count} * config_.buffer_bytes}; }

  // The same with the packet index and the indexes after it: what a processor on another device registers.
  std::span<std::byte> region() const { return region_.span(); }
  Indexes& indexes() const { return *indexes_; }

  // Producer. The next buffer to fill, or false when the consumer holds them all. Returns the same until hand_over().
  bool acquire(std::uint32_t& buffer_index) {
    const std::uint64_t next = handed_over().load(std::memory_order_relaxed);
    if (next - released_seen_ == config_.buffer_count) {
      released_seen_ = released().load(std::memory_order_acquire);
      if (next - released_seen_ == config_.buffer_count) return false;
    }
    buffer_index = static_cast<std::uint32_t>(next) & mask_;
    return true;
  }

  // Producer. Gives the acquired buffer away and returns its hand-over number (0, 1, ...). Only after acquire() returned true.
  // Call it before the completion is pushed.
  std::uint64_t hand_over() {
    const std::uint64_t number = handed_over().load(std::memory_order_relaxed);
    handed_over().store(number + 1, std::memory_order_relaxed);
    return number;
  }

  // Consumer. Returns the oldest buffer that was handed over; nothing of it may be read afterwards.
  void release() { released().store(released().load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  // Buffers that came back so far; what the consumer did with the last of them is over.
  std::uint64_t returned() const { return released().load(std::memory_order_acquire); }

  // Buffers with the consumer. Exact for either thread while the other is idle, a snapshot otherwise.
  std::uint32_t in_use() const {
    const std::uint64_t back = returned();
    return static_cast<std::uint32_t>(handed_over().load(std::memory_order_acquire) - back);
  }

 private:
  std::atomic_ref<std::uint64_t> handed_over() const { return std::atomic_ref(indexes_->produced); }
  std::atomic_ref<std::uint64_t> released() const { return std::atomic_ref(indexes_->consumed); }

  ClopConfig config_;
  Region region_;
  PacketRef* index_;
  Indexes* indexes_;
  std::uint32_t mask_;
  alignas(64) std::uint64_t released_seen_ = 0;  // the producer's
};

}  // namespace nanet::flow
