// SPDX-License-Identifier: Apache-2.0
#include "emulate/run_watch.hpp"

#include <algorithm>

namespace nanet::emulate {

void StallWatch::add(std::uint64_t now_ns, std::uint64_t gap_ns) {
  last_end_ns_ = now_ns;
  count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  total_ns_.store(total_ns_.load(std::memory_order_relaxed) + gap_ns, std::memory_order_relaxed);
  if (gap_ns > longest_ns_.load(std::memory_order_relaxed)) longest_ns_.store(gap_ns, std::memory_order_relaxed);
}

Course::Course() : slots_(std::make_unique<Slot[]>(kPointsMax)) {}

void Course::close_step(std::uint64_t now_ns, std::uint64_t events_sent, std::uint64_t events_answered) {
  const std::uint64_t number = published_.load(std::memory_order_relaxed);
  const std::array<std::uint64_t, kWords> words{
      now_ns - start_ns_, events_sent - sent_before_, events_answered - answered_before_, percentile(50), percentile(99), max_ns_};
  // A reader that sees any of the new words (acquire) sees `begun_` too, and throws the torn point away.
  begun_.store(number + 1, std::memory_order_relaxed);
  Slot& slot = slots_[number % kPointsMax];
  for (std::size_t i = 0; i < kWords; ++i) slot[i].store(words[i], std::memory_order_release);
  published_.store(number + 1, std::memory_order_release);

  buckets_.fill(0);
  records_ = 0;
  max_ns_ = 0;
  sent_before_ = events_sent;
  answered_before_ = events_answered;
  // After a stall the steps stay on their grid; one long step stands for those that were missed.
  const std::uint64_t steps = now_ns >= step_end_ns_ ? (now_ns - step_end_ns_) / kStepNs + 1 : 0;
  step_end_ns_ += steps * kStepNs;
}

std::uint64_t Course::percentile(std::uint32_t percent) const {
  if (records_ == 0) return 0;
  const std::uint64_t rank = std::max<std::uint64_t>(1, (records_ * percent + 99) / 100);
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    seen += buckets_[bucket];
    if (seen < rank) continue;
    const int shift = bucket < kLinear ? 0 : static_cast<int>(bucket >> (kLinearBits - 1)) - 1;
    const std::uint64_t low = (bucket - (static_cast<std::size_t>(shift) << (kLinearBits - 1))) << shift;
    return std::min(low + ((std::uint64_t{1} << shift) - 1), max_ns_);
  }
  return max_ns_;
}

std::vector<CoursePoint> Course::snapshot() const {
  const std::uint64_t published = published_.load(std::memory_order_acquire);
  const std::uint64_t first = published > kPointsMax ? published - kPointsMax : 0;
  std::vector<CoursePoint> points;
  points.reserve(published - first);
  for (std::uint64_t number = first; number < published; ++number) {
    const Slot& slot = slots_[number % kPointsMax];
    std::array<std::uint64_t, kWords> words{};
    for (std::size_t i = 0; i < kWords; ++i) words[i] = slot[i].load(std::memory_order_acquire);
    if (begun_.load(std::memory_order_relaxed) > number + kPointsMax) continue;
    points.push_back({words[0], words[1], words[2], words[3], words[4], words[5]});
  }
  return points;
}

}  // namespace nanet::emulate
