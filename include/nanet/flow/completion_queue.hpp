// SPDX-License-Identifier: Apache-2.0
// The completion queue: a ring of contract Completions in one region, so that anything that can read memory can poll it.
//
// Entry k lies at k modulo capacity and is there when its `sequence` reads k + 1 modulo 2^32. The producer overwrites an entry only after
// the consumer index went past it, so the rest of an entry is never read and written at once.
//
// Thread rules: one producer thread (push, has_room), one consumer thread (peek, pop, wait). wake() from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "nanet/contract.hpp"
#include "nanet/flow/region.hpp"
#include "nanet/flow/wait.hpp"

namespace nanet::flow {

class CompletionQueue {
 public:
  // capacity: power of two, 2..2^20; as many entries as can be outstanding, so that has_room() never says no (all buffers
  // of all CLOPs that use it, and all TX descriptors). region.bytes is ignored. Throws SetupError.
  explicit CompletionQueue(std::uint32_t capacity, RegionConfig region = {.name = "completion queue"});

  std::uint32_t capacity() const { return mask_ + 1; }
  const std::vector<std::string>& notes() const { return region_.notes(); }
  std::span<const Completion> memory() const { return {entries_, capacity()}; }

  // Entries and the indexes after them: what a processor on another device registers.
  std::span<std::byte> region() const { return region_.span(); }
  Indexes& indexes() const { return *indexes_; }

  // Producer.
  bool has_room() {
    if (pushed_ - popped_seen_ <= mask_) return true;
    popped_seen_ = popped().load(std::memory_order_acquire);
    return pushed_ - popped_seen_ <= mask_;
  }

  // Producer. Fills in `first_packet_low` and `sequence`, writes that last, and wakes the consumer if it sleeps. Without room nothing is written
  // and false is returned: check has_room() before giving away what the completion describes.
  bool push(const Completion& completion) {
    if (!has_room()) return false;
    Completion& entry = entries_[pushed_ & mask_];
    std::memcpy(static_cast<void*>(&entry), &completion, offsetof(Completion, sequence));
    entry.first_packet_low = static_cast<std::uint32_t>(completion.first_packet_ns);
    ++pushed_;
    std::atomic_ref(entry.sequence).store(static_cast<std::uint32_t>(pushed_), std::memory_order_release);
    wait_point_.wake();
    return true;
  }

  // Consumer. The oldest completion, or the one `ahead` entries after it, or nullptr. Valid until pop().
  const Completion* peek(std::uint64_t ahead = 0) {
    const std::uint64_t next = popped().load(std::memory_order_relaxed) + ahead;
    Completion& entry = entries_[next & mask_];
    return std::atomic_ref(entry.sequence).load(std::memory_order_acquire) == static_cast<std::uint32_t>(next + 1) ? &entry : nullptr;
  }

  // Consumer. Only after peek() returned an entry.
  void pop() { popped().store(popped().load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  // Consumer. True when peek() has something. See WaitPoint::wait: may come back early with false.
  bool wait(std::uint64_t timeout_ns, std::uint32_t spins) {
    return wait_point_.wait(timeout_ns, spins, [this] { return peek() != nullptr; });
  }

  // Any thread. Ends a sleep of the consumer early, for example to stop it.
  void wake() { wait_point_.wake(); }

 private:
  std::atomic_ref<std::uint64_t> popped() const { return std::atomic_ref(indexes_->consumed); }

  Region region_;
  Completion* entries_;
  Indexes* indexes_;  // produced is not used: an entry's sequence says that it is there
  std::uint32_t mask_;
  alignas(64) std::uint64_t pushed_ = 0;  // the producer's line
  std::uint64_t popped_seen_ = 0;
  WaitPoint wait_point_;
};

}  // namespace nanet::flow
