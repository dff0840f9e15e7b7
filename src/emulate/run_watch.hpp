// SPDX-License-Identifier: Apache-2.0
// What is monitored during a run: stalls of the emulator's own thread, and the course of rate and latency in steps of 0.1 s.
//
// Thread rules: one writer; snapshot() by any thread while the writer continues.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace nanet::emulate {

struct StallTotals {
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t longest_ns = 0;
};

// A stall: more than threshold_ns between two looks at the clock. The thread was not running or the kernel kept it, so whatever
// was measured across it says little about the engine.
class StallWatch {
 public:
  explicit StallWatch(std::uint64_t threshold_ns) : threshold_ns_(threshold_ns) {}

  // Call at every look at the clock.
  void look(std::uint64_t now_ns) {
    const std::uint64_t gap_ns = now_ns - last_look_ns_;
    if (gap_ns > threshold_ns_ && last_look_ns_ != 0) [[unlikely]]
      add(now_ns, gap_ns);
    last_look_ns_ = now_ns;
  }

  // The thread slept until now because it had nothing to do: no stall.
  void skip_to(std::uint64_t now_ns) { last_look_ns_ = now_ns; }

  // End of the newest stall, 0: none. An interval that ends now overlaps a stall exactly if it began before this.
  std::uint64_t last_end_ns() const { return last_end_ns_; }

  StallTotals snapshot() const {
    return {count_.load(std::memory_order_relaxed), total_ns_.load(std::memory_order_relaxed),
            longest_ns_.load(std::memory_order_relaxed)};
  }

 private:
  void add(std::uint64_t now_ns, std::uint64_t gap_ns);

  std::uint64_t threshold_ns_;
  std::uint64_t last_look_ns_ = 0;
  std::uint64_t last_end_ns_ = 0;
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> total_ns_{0};
  std::atomic<std::uint64_t> longest_ns_{0};
};

// One step of the course. Latencies are of the answers that came in it; percentiles to 3 %, from above.
struct CoursePoint {
  std::uint64_t end_ns = 0;  // since the start of the run
  std::uint64_t events_sent = 0;
  std::uint64_t events_answered = 0;
  std::uint64_t p50_ns = 0;
  std::uint64_t p99_ns = 0;
  std::uint64_t max_ns = 0;
};

class Course {
 public:
  static constexpr std::uint64_t kStepNs = 100'000'000;
  static constexpr std::size_t kPointsMax = 4096;  // 409 s; older points are overwritten

  Course();

  void start(std::uint64_t now_ns) {
    start_ns_ = now_ns;
    step_end_ns_ = now_ns + kStepNs;
  }

  void record(std::uint64_t latency_ns, std::uint32_t count) {
    const int shift = static_cast<int>(std::bit_width(latency_ns | (kLinear - 1))) - kLinearBits;
    const std::size_t bucket = (static_cast<std::size_t>(shift) << (kLinearBits - 1)) + static_cast<std::size_t>(latency_ns >> shift);
    buckets_[bucket] += count;
    records_ += count;
    if (latency_ns > max_ns_) max_ns_ = latency_ns;
  }

  // Totals since start. Cheap while the step lasts; at its end it takes about 1 us.
  void look(std::uint64_t now_ns, std::uint64_t events_sent, std::uint64_t events_answered) {
    if (now_ns >= step_end_ns_) [[unlikely]]
      close_step(now_ns, events_sent, events_answered);
  }
  // The end of the run: the last step is closed as it is.
  void close_step(std::uint64_t now_ns, std::uint64_t events_sent, std::uint64_t events_answered);

  // Oldest first; without the points that were overwritten meanwhile.
  std::vector<CoursePoint> snapshot() const;

 private:
  static constexpr int kLinearBits = 6;
  static constexpr std::uint64_t kLinear = 1u << kLinearBits;
  static constexpr std::size_t kBuckets = (64 - kLinearBits + 2) << (kLinearBits - 1);
  static constexpr std::size_t kWords = sizeof(CoursePoint) / sizeof(std::uint64_t);
  using Slot = std::array<std::atomic<std::uint64_t>, kWords>;

  std::uint64_t percentile(std::uint32_t percent) const;

  std::uint64_t start_ns_ = 0;
  std::uint64_t step_end_ns_ = ~std::uint64_t{0};
  std::uint64_t sent_before_ = 0;
  std::uint64_t answered_before_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t max_ns_ = 0;
  std::array<std::uint32_t, kBuckets> buckets_{};
  std::unique_ptr<Slot[]> slots_;
  std::atomic<std::uint64_t> begun_{0};      // points whose slot may be changing or done
  std::atomic<std::uint64_t> published_{0};  // points that are done
};

}  // namespace nanet::emulate
