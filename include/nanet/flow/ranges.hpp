// SPDX-License-Identifier: Apache-2.0
// Ranges: which bytes of a unit have come, exactly, in memory that a consumer reads (contract.hpp, UnitRange): ascending, with a hole between any two.
// Packets in order make one range. A unit is whole when its one range is all of it, never because enough bytes came.
//
// Thread rules: one thread. No allocation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "nanet/contract.hpp"

namespace nanet::flow {

enum class Fit : std::uint8_t {
  added,
  duplicate,  // all of it was there
  overlap,    // some of it was there: nothing was added
  no_room,    // it touches no range, and there is no room for a further one
};

class Ranges {
 public:
  Ranges() = default;
  explicit Ranges(std::span<UnitRange> memory) : ranges_(memory.data()), capacity_(static_cast<std::uint32_t>(memory.size())) {}

  // Precondition: begin < end.
  Fit add(std::uint32_t begin, std::uint32_t end) {
    if (count_ > 0 && ranges_[count_ - 1].end == begin) [[likely]] {
      ranges_[count_ - 1].end = end;
      return Fit::added;
    }
    // The first range that does not end before it: all others before that one have nothing to do with it.
    UnitRange* const stop = ranges_ + count_;
    UnitRange* const left = std::partition_point(ranges_, stop, [begin](const UnitRange& range) { return range.end < begin; });
    if (left == stop) return insert(left, begin, end);
    if (left->begin <= begin && end <= left->end) return Fit::duplicate;
    const bool touches_left = left->end == begin;
    UnitRange* const right = touches_left ? left + 1 : left;
    if (right != stop && right->begin < end) return Fit::overlap;
    const bool touches_right = right != stop && right->begin == end;
    if (touches_left && touches_right) {
      left->end = right->end;
      std::copy(right + 1, stop, right);
      --count_;
    } else if (touches_left) {
      left->end = end;
    } else if (touches_right) {
      right->begin = begin;
    } else {
      return insert(right, begin, end);
    }
    return Fit::added;
  }

  bool is_whole(std::uint32_t bytes) const { return count_ == 1 && ranges_->begin == 0 && ranges_->end == bytes; }

  // First byte after all that came.
  std::uint32_t end() const { return count_ > 0 ? ranges_[count_ - 1].end : 0; }

  std::span<const UnitRange> all() const { return {ranges_, count_}; }

 private:
  Fit insert(UnitRange* place, std::uint32_t begin, std::uint32_t end) {
    if (count_ == capacity_) return Fit::no_room;
    std::copy_backward(place, ranges_ + count_, ranges_ + count_ + 1);
    *place = {begin, end};
    ++count_;
    return Fit::added;
  }

  UnitRange* ranges_ = nullptr;
  std::uint32_t capacity_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace nanet::flow
