// SPDX-License-Identifier: Apache-2.0
// A latency histogram with HdrHistogram's bucket layout, so that HdrHistogram's tools can read what we write.
//
// Same layout as HdrHistogram(1, 3600000000000, 3): 1 ns to one hour, three significant digits, 33792 counts. Values below
// 2048 ns have a bucket each; above, every power of two is cut into 1024 buckets, so a bucket is at most 1/1024 of its value.
//
// Thread rules: one writer (record, add, reset). Any thread may take a copy while the writer goes on: the copy is a histogram of
// all records up to some moment, give or take those made during the copy. counts() of a histogram that is being written to
// is for its writer alone.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace nanet::flow {

class LatencyHistogram {
 public:
  static constexpr std::uint64_t kLowestNs = 1;
  static constexpr std::uint64_t kHighestNs = 3'600'000'000'000;
  static constexpr int kSignificantDigits = 3;
  static constexpr std::size_t kBucketCount = 33792;

  LatencyHistogram();                                          // allocates its 264 KiB, the only allocation
  LatencyHistogram(const LatencyHistogram& other);             // a snapshot
  LatencyHistogram& operator=(const LatencyHistogram& other);  // a snapshot, without allocation
  LatencyHistogram(LatencyHistogram&&) noexcept = default;
  LatencyHistogram& operator=(LatencyHistogram&&) noexcept = default;
  ~LatencyHistogram() = default;

  // Values above kHighestNs are recorded as kHighestNs and counted in clamped().
  void record(std::uint64_t value_ns, std::uint64_t count = 1) {
    if (count == 0) return;
    if (value_ns > kHighestNs) [[unlikely]] {
      increase(state_->clamped, count);
      value_ns = kHighestNs;
    }
    increase(state_->counts[bucket_of_value(value_ns)], count);
    increase(state_->total, count);
    if (value_ns > load(state_->max_ns)) store(state_->max_ns, value_ns);
    if (value_ns < load(state_->min_ns)) store(state_->min_ns, value_ns);
  }

  // Adds the counts of another histogram, which may be one that is being written to.
  void add(const LatencyHistogram& other);
  void reset();

  std::uint64_t count() const { return load(state_->total); }
  std::uint64_t clamped() const { return load(state_->clamped); }
  std::uint64_t min() const;  // smallest value recorded, exact; 0 when empty
  std::uint64_t max() const;  // largest value recorded (clamped), exact; 0 when empty
  double mean() const;        // of the buckets' middles, as HdrHistogram does; 0 when empty

  // The largest value that is equivalent to the one at this percentile (0..100): at least so many percent of all records are
  // at most this. 0 when empty; percentile 0 gives the lowest equivalent of the smallest. The rank is rounded up as in the
  // Java HdrHistogram; those in C and Python round it to the nearest, and may say one record less.
  std::uint64_t value_at_percentile(double percentile) const;

  // counts[i] becomes the number of records of at most bounds_ns[i]; both have one length, the bounds ascend. A bucket that a bound
  // cuts is above it, so the bound that is applied may be up to 1/1024 lower. Any thread may call it; nothing is allocated. In later calls
  // no count is smaller. Returns the number of all records read, no less than the last count.
  std::uint64_t counts_up_to(std::span<const std::uint64_t> bounds_ns, std::span<std::uint64_t> counts) const;

  // Bucket i counts the values value_of_bucket(i) .. last_value_of_bucket(i).
  std::span<const std::uint64_t> counts() const { return state_->counts; }

  static constexpr std::size_t bucket_of_value(std::uint64_t value_ns) {
    const int shift = static_cast<int>(std::bit_width(value_ns | (kLinearBuckets - 1))) - kLinearBits;
    return (static_cast<std::size_t>(shift) << (kLinearBits - 1)) + static_cast<std::size_t>(value_ns >> shift);
  }
  static constexpr std::uint64_t value_of_bucket(std::size_t bucket) {
    const int shift = shift_of_bucket(bucket);
    return (bucket - (static_cast<std::size_t>(shift) << (kLinearBits - 1))) << shift;
  }
  static constexpr std::uint64_t last_value_of_bucket(std::size_t bucket) {
    return value_of_bucket(bucket) + (std::uint64_t{1} << shift_of_bucket(bucket)) - 1;
  }

 private:
  static constexpr int kLinearBits = 11;  // 2 * 10^3 values need 11 bits
  static constexpr std::uint64_t kLinearBuckets = std::uint64_t{1} << kLinearBits;

  struct State {
    std::uint64_t total;
    std::uint64_t clamped;
    std::uint64_t min_ns;
    std::uint64_t max_ns;
    std::uint64_t counts[kBucketCount];
  };

  static constexpr int shift_of_bucket(std::size_t bucket) {
    return bucket < kLinearBuckets ? 0 : static_cast<int>(bucket >> (kLinearBits - 1)) - 1;
  }
  // Plain words, touched through relaxed atomics: the compiler makes them ordinary loads and stores, and a reader sees no tear.
  static std::uint64_t load(std::uint64_t& word) { return std::atomic_ref(word).load(std::memory_order_relaxed); }
  static void store(std::uint64_t& word, std::uint64_t value) { std::atomic_ref(word).store(value, std::memory_order_relaxed); }
  static void increase(std::uint64_t& word, std::uint64_t n) { store(word, load(word) + n); }

  std::unique_ptr<State> state_;
};

}  // namespace nanet::flow
