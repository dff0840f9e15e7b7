// SPDX-License-Identifier: Apache-2.0
// What a link of a torus keeps of each sender and of each receiver. Payload n of a sender, from 0 on, lies in slot n modulo slot_count, at both ends; all numbers are
// modulo 2^16, and are told in full each time, so a lost message heals with the next one.
//
// Of a PUT `process` is n. An EVENT has its kind in bits 15:14 of `process`, below it the generation of the slots that it is about, and a number as its value:
//   hello   sender to receiver    its next payload has this number, and it knows the slots
//   ask     sender to receiver    so many were sent: what has not come by now is lost, since nothing passes anything between two nodes
//   credit  receiver to sender    all before this one are taken or lost: their slots are free
//
// Thread rules: of the thread that has the link's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "flow/fence.hpp"
#include "link/torus/torus_file.hpp"

namespace nanet::link {

using TorusNumber = std::uint16_t;

enum class TorusNews : std::uint16_t { hello = 1, ask = 2, credit = 3 };

inline constexpr std::uint32_t kTorusGenerations = 1u << 14;

constexpr TorusNumber torus_distance(TorusNumber from, TorusNumber to) { return static_cast<TorusNumber>(to - from); }

struct TorusArrival {
  TorusNumber number = 0;
  std::uint16_t bytes = 0;
  bool is_after_loss = false;
};

// Of one sender.
class TorusArrivals {
 public:
  TorusArrivals(std::uint32_t node, std::uint32_t memory_at, std::uint32_t slot_count, std::uint32_t slot_bytes)
      : node_(node), memory_at_(memory_at), slot_count_(slot_count), slot_bytes_(slot_bytes), waiting_(slot_count) {}

  std::uint32_t node() const { return node_; }
  std::uint32_t at(TorusNumber number) const { return memory_at_ + number % slot_count_ * slot_bytes_; }

  // A PUT has landed. False: its sender had no room for it, or does not say hello, or the slot is too short.
  bool land(TorusNumber number, std::uint32_t bytes) {
    if (bytes > slot_bytes_ || !catch_up(number, slot_count_ - 1)) return false;
    waiting_[(first_ + count_++) % slot_count_] = {number, static_cast<std::uint16_t>(bytes), is_after_loss_};
    is_after_loss_ = false;
    ++next_;
    return true;
  }
  void begin(TorusNumber number) { hello_ = number; }
  bool ask(TorusNumber number) {
    owes_ = true;
    return catch_up(number, slot_count_);
  }

  const TorusArrival* oldest() const { return count_ != 0 ? &waiting_[first_] : nullptr; }
  void pop() {
    first_ = (first_ + 1) % slot_count_;
    --count_;
  }

  // What its sender is to be told now: after half of the slots, or when nothing is left to take.
  std::optional<TorusNumber> credit() const {
    const TorusNumber freed = count_ != 0 ? waiting_[first_].number : next_;
    const bool is_due = torus_distance(told_, freed) >= slot_count_ / 2 || (count_ == 0 && freed != told_);
    if (!owes_ && !is_due) return std::nullopt;
    return freed;
  }
  void told(TorusNumber number) {
    told_ = number;
    owes_ = false;
  }
  // What a sender before it has sent is taken first.
  void greet() {
    if (!hello_ || count_ != 0) return;
    next_ = told_ = *hello_;
    hello_.reset();
    owes_ = true;
  }

  std::uint64_t lost() const { return lost_; }
  std::uint32_t held() const { return count_; }

 private:
  // All before this number are here or lost; at most so many of them have not been given free.
  bool catch_up(TorusNumber number, std::uint32_t most) {
    const TorusNumber missing = torus_distance(next_, number);
    if (missing + count_ > most) return false;
    lost_ += missing;
    is_after_loss_ = is_after_loss_ || missing != 0;
    next_ = number;
    return true;
  }

  std::uint32_t node_, memory_at_, slot_count_, slot_bytes_;
  std::vector<TorusArrival> waiting_;
  std::uint32_t first_ = 0, count_ = 0;
  TorusNumber next_ = 0, told_ = 0;
  std::optional<TorusNumber> hello_;
  bool owes_ = false, is_after_loss_ = false;
  std::uint64_t lost_ = 0;
};

// Of one receiver: what of the slots there this node fills.
class TorusWindow {
 public:
  TorusWindow(std::uint32_t node, std::uint32_t memory_at, std::uint32_t slot_count, std::uint32_t slot_bytes)
      : node_(node), memory_at_(memory_at), slot_count_(slot_count), slot_bytes_(slot_bytes) {}

  std::uint32_t node() const { return node_; }
  std::uint32_t generation() const { return generation_; }
  std::uint32_t bytes_max() const { return there_.slot_bytes < slot_bytes_ ? there_.slot_bytes : slot_bytes_; }
  bool is_known() const { return is_known_; }
  TorusNumber next() const { return next_; }
  bool has_room() const { return is_known_ && under_way() < (there_.slot_count < slot_count_ ? there_.slot_count : slot_count_); }
  // A receiver that stands still is not waited for again before it moves.
  bool is_stalled = false;
  std::uint64_t probed_ns = 0;

  // Looks at the slots that the receiver offers. False: none. True and not is_known(): others than before, which are to be greeted.
  bool look(const TorusInbox& inbox) {
    const std::uint32_t generation = inbox.generation.load(std::memory_order_acquire);
    if (generation == generation_) return generation != 0;
    const There there{.region = inbox.region.load(std::memory_order_relaxed),
                      .nonce = inbox.nonce.load(std::memory_order_relaxed),
                      .slot_count = inbox.slot_count.load(std::memory_order_relaxed),
                      .slot_bytes = inbox.slot_bytes.load(std::memory_order_relaxed)};
    flow::full_fence();
    const bool is_changing = inbox.generation.load(std::memory_order_relaxed) != generation;
    if (is_changing || (generation != 0 && there.slot_count == 0)) return false;
    given_up_ += under_way();
    generation_ = generation;
    is_known_ = is_stalled = false;
    there_ = there;
    freed_ = next_;
    return generation != 0;
  }
  // A credit: whether it was of use. Of slots that were just greeted only the answer is.
  bool take_credit(TorusNumber freed) {
    if (torus_distance(freed_, freed) > under_way()) return false;
    freed_ = freed;
    is_known_ = true;
    is_stalled = false;
    return true;
  }

  std::uint32_t local() const { return memory_at_ + next_ % slot_count_ * slot_bytes_; }
  TorusJob put(std::uint32_t bytes) const {
    return {.kind = TorusJobKind::put,
            .region = static_cast<std::uint8_t>(there_.region),
            .process = next_,
            .to = node_,
            .nonce = there_.nonce,
            .bytes = bytes,
            .offset = next_ % there_.slot_count * there_.slot_bytes,
            .local = local()};
  }
  void sent() { ++next_; }
  // Payloads that were sent and of which the receiver has not said that it has them: to the slots it has, and to those before.
  TorusNumber under_way() const { return torus_distance(freed_, next_); }
  std::uint64_t given_up() const { return given_up_; }
  // The slots that it knows went: for what is under way to them there will be no credit.
  bool has_lost(const TorusInbox& inbox) const { return inbox.generation.load(std::memory_order_acquire) != generation_; }

 private:
  struct There {
    std::uint32_t region = 0, nonce = 0, slot_count = 1, slot_bytes = 0;
  };

  std::uint32_t node_, memory_at_, slot_count_, slot_bytes_;
  std::uint32_t generation_ = 0;
  There there_;
  bool is_known_ = false;
  TorusNumber next_ = 0, freed_ = 0;
  std::uint64_t given_up_ = 0;
};

}  // namespace nanet::link
