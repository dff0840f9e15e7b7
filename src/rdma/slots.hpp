// SPDX-License-Identifier: Apache-2.0
// The slots of one connection: what is in flight, and what has ended but was not reported yet. All of them are made at set-up.
//
// There are depth + 1. Calls that return at once (Use::later) have at most depth of them, calls that wait (Use::waits) at most depth too;
// since those leave none in use, one is always there for them.
#pragma once

#include <ucp/api/ucp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace nanet::rdma::detail {

enum class Use : std::uint8_t { later, waits };

struct Slot {
  void* owner = nullptr;
  std::uint64_t tag = 0;
  std::uint64_t deadline_ns = 0;
  ucs_status_t status = UCS_OK;
  Use use = Use::later;
  bool is_under_way = false;  // UCX has it
};

class Slots {
 public:
  Slots(void* owner, std::size_t depth) : depth_(depth), slots_(depth + 1), ended_(depth) {
    free_.reserve(slots_.size());
    for (Slot& slot : slots_) {
      slot.owner = owner;
      free_.push_back(&slot);
    }
  }

  // Null: no slot for this use.
  Slot* take(Use use) {
    std::size_t& count = count_of(use);
    if (count == depth_ || free_.empty()) return nullptr;
    ++count;
    Slot* slot = free_.back();
    free_.pop_back();
    slot->use = use;
    return slot;
  }

  void give_back(Slot& slot) {
    --count_of(slot.use);
    free_.push_back(&slot);
  }

  void is_posted(Slot& slot, std::uint64_t deadline_ns) {
    slot.is_under_way = true;
    slot.deadline_ns = deadline_ns;
    next_look_ns_ = std::min(next_look_ns_, deadline_ns);
    ++under_way_count_;
  }

  // It is over: to be reported, or free at once if its call waits.
  void end(Slot& slot, ucs_status_t status) {
    if (slot.is_under_way) --under_way_count_;
    slot.is_under_way = false;
    slot.status = status;
    if (slot.use == Use::waits) {
      give_back(slot);
    } else {
      ended_[(ended_first_ + ended_count_++) % ended_.size()] = &slot;
    }
  }

  // Null: nothing more has ended. To be given back.
  Slot* next_ended() {
    if (ended_count_ == 0) return nullptr;
    Slot* slot = ended_[ended_first_];
    ended_first_ = (ended_first_ + 1) % ended_.size();
    --ended_count_;
    return slot;
  }

  // Whether anything is in flight for longer than it may. Cheap: the slots are scanned about once per time limit.
  bool has_expired(std::uint64_t now_ns) {
    if (under_way_count_ == 0 || now_ns < next_look_ns_) return false;
    next_look_ns_ = UINT64_MAX;
    for (const Slot& slot : slots_)
      if (slot.is_under_way) next_look_ns_ = std::min(next_look_ns_, slot.deadline_ns);
    return now_ns >= next_look_ns_;
  }

  std::size_t under_way_count() const { return under_way_count_; }
  std::size_t count(Use use) const { return use == Use::later ? later_count_ : waiting_count_; }

 private:
  std::size_t& count_of(Use use) { return use == Use::later ? later_count_ : waiting_count_; }

  std::size_t depth_;
  std::vector<Slot> slots_;
  std::vector<Slot*> free_;
  std::vector<Slot*> ended_;  // a ring
  std::size_t ended_first_ = 0, ended_count_ = 0;
  std::size_t later_count_ = 0, waiting_count_ = 0, under_way_count_ = 0;
  std::uint64_t next_look_ns_ = UINT64_MAX;
};

}  // namespace nanet::rdma::detail
