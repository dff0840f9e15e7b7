// SPDX-License-Identifier: Apache-2.0
// A total with one writer and any readers.
#pragma once

#include <atomic>
#include <cstdint>

namespace nanet::link {

class Tally {
 public:
  void set(std::uint64_t n) { value_.store(n, std::memory_order_relaxed); }
  void add(std::uint64_t n) { set(value() + n); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace nanet::link
