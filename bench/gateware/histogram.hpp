// SPDX-License-Identifier: Apache-2.0
// How often each number of cycles was seen: exact, because cycles are whole numbers.
//
// Thread rules: one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace nanet::bench {

class Histogram {
 public:
  void add(std::uint64_t cycles) {
    if (cycles >= counts_.size()) counts_.resize(cycles + 1);
    ++counts_[cycles];
    ++count_;
    min_ = count_ == 1 ? cycles : std::min(min_, cycles);
    max_ = std::max(max_, cycles);
  }

  // All 0 without a value.
  std::uint64_t count() const { return count_; }
  std::uint64_t min() const { return min_; }
  std::uint64_t max() const { return max_; }
  std::uint64_t spread() const { return max_ - min_; }
  std::uint64_t of(std::uint64_t cycles) const { return cycles < counts_.size() ? counts_[cycles] : 0; }

 private:
  std::vector<std::uint64_t> counts_;  // by cycles
  std::uint64_t count_ = 0, min_ = 0, max_ = 0;
};

}  // namespace nanet::bench
