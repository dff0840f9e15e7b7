// SPDX-License-Identifier: Apache-2.0
// The TX ring: contract TxDescriptors and one payload slot for each, and the doorbell that says how many are posted.
//
// The producer writes a payload into slot(), posts it, and rings the doorbell once for any number of posts. The consumer
// polls what lies before the doorbell, sends it, and completes the oldest; each descriptor is polled once, so several
// polls may be in flight before one complete().
//
// Thread rules: one producer thread (slot, post, ring_doorbell), one consumer thread (poll, complete, wait). wake() and
// in_use() from any thread.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nanet/contract.hpp"
#include "nanet/flow/region.hpp"
#include "nanet/flow/wait.hpp"

namespace nanet::flow {

struct TxRingConfig {
  std::uint32_t capacity = 1024;    // descriptors, power of two, 2..2^20. Too few: the processor waits for the sender
  std::uint32_t slot_bytes = 1472;  // room for one payload, 1..65536; slots lie on cache lines
  std::string name = "tx ring";
  bool huge_pages = false;
  bool locked = true;
};

class TxRing {
 public:
  explicit TxRing(const TxRingConfig& config);  // throws SetupError

  std::uint32_t capacity() const { return mask_ + 1; }
  std::uint32_t slot_bytes() const { return slot_bytes_; }
  const std::vector<std::string>& notes() const { return region_.notes(); }
  std::span<const TxDescriptor> memory() const { return {descriptors_, capacity()}; }

  // Descriptors, slots and the indexes after them: what a producer on another device registers. It writes what post() and ring_doorbell()
  // write, and then no one calls those.
  std::span<std::byte> region() const { return region_.span(); }
  Indexes& indexes() const { return *indexes_; }
  std::span<std::byte> slots() const { return {slots_, std::size_t{capacity()} * slot_stride_bytes_}; }
  std::size_t slot_stride_bytes() const { return slot_stride_bytes_; }

  // Producer. The payload room of the next descriptor; empty when the ring is full. Returns the same until post().
  std::span<std::byte> slot() {
    if (posted_ - completed_seen_ > mask_) {
      completed_seen_ = completed().load(std::memory_order_acquire);
      if (posted_ - completed_seen_ > mask_) return {};
    }
    return {slot_of(posted_), slot_bytes_};
  }

  // Producer. Describes the slot that slot() gave. bytes <= slot_bytes(). event_count: events in it, for whoever keeps books of them.
  void post(std::uint32_t bytes, std::uint32_t destination, std::uint64_t tag, std::uint32_t event_count = 0) {
    assert(bytes <= slot_bytes_ && posted_ - completed_seen_ <= mask_);
    TxDescriptor& descriptor = descriptors_[posted_ & mask_];
    descriptor.address = reinterpret_cast<std::uintptr_t>(slot_of(posted_));
    descriptor.bytes = bytes;
    descriptor.destination = destination;
    descriptor.tag = tag;
    event_counts_[posted_ & mask_] = event_count;
    ++posted_;
    std::atomic_ref(descriptor.sequence).store(posted_, std::memory_order_release);
  }

  // Producer. Publishes everything posted, and wakes the consumer if it sleeps.
  void ring_doorbell() {
    if (posted_ == doorbell().load(std::memory_order_relaxed)) return;
    doorbell().store(posted_, std::memory_order_release);
    wait_point_.wake();
  }

  // Consumer. The next descriptors before the doorbell, oldest first; returns how many were written to `out`. They and
  // their payloads stay until complete().
  std::uint32_t poll(std::span<const TxDescriptor*> out);

  // Consumer. Events in what a polled descriptor describes; 0: no one said.
  std::uint32_t event_count(const TxDescriptor& descriptor) const {
    return event_counts_[static_cast<std::size_t>(&descriptor - descriptors_)];
  }

  // Consumer. Frees the `count` oldest polled descriptors; at most those polled and not completed yet.
  void complete(std::uint32_t count) {
    const std::uint64_t before = completed().load(std::memory_order_relaxed);
    assert(count <= polled_ - before);
    completed().store(before + count, std::memory_order_release);
  }

  // Consumer. True when poll() has something. See WaitPoint::wait: may come back early with false.
  bool wait(std::uint64_t timeout_ns, std::uint32_t spins) {
    return wait_point_.wait(timeout_ns, spins, [this] { return doorbell().load(std::memory_order_acquire) != polled_; });
  }

  // Any thread. Ends a sleep of the consumer early, for example to stop it.
  void wake() { wait_point_.wake(); }

  // Descriptors rung and not completed; a snapshot.
  std::uint32_t in_use() const {
    const std::uint64_t before = completed().load(std::memory_order_acquire);
    return static_cast<std::uint32_t>(doorbell().load(std::memory_order_acquire) - before);
  }

 private:
  std::atomic_ref<std::uint64_t> doorbell() const { return std::atomic_ref(indexes_->produced); }
  std::atomic_ref<std::uint64_t> completed() const { return std::atomic_ref(indexes_->consumed); }
  std::byte* slot_of(std::uint64_t number) const { return slots_ + (number & mask_) * slot_stride_bytes_; }

  Region region_;
  TxDescriptor* descriptors_;
  std::byte* slots_;
  std::vector<std::uint32_t> event_counts_;  // by descriptor; not in the region, as no NIC needs it
  std::uint32_t mask_;
  std::uint32_t slot_bytes_;
  std::size_t slot_stride_bytes_;
  Indexes* indexes_;
  alignas(64) std::uint64_t posted_ = 0;  // the producer's line
  std::uint64_t completed_seen_ = 0;
  alignas(64) std::uint64_t polled_ = 0;  // the consumer's line
  WaitPoint wait_point_;
};

}  // namespace nanet::flow
