// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/latency_histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

namespace nanet::flow {
namespace {

using Histogram = LatencyHistogram;

// HdrHistogram's own index arithmetic, step by step, for HdrHistogram(1, 3600000000000, 3).
struct HdrReference {
  static constexpr int kUnitMagnitude = 0;
  static constexpr int kSubBucketHalfCountMagnitude = 10;
  static constexpr std::int64_t kSubBucketHalfCount = 1024;
  static constexpr std::int64_t kSubBucketMask = 2047;

  static int bucket_index(std::int64_t value) {
    int bits = 0;
    for (std::int64_t rest = value | kSubBucketMask; rest != 0; rest >>= 1) ++bits;
    return bits - kUnitMagnitude - (kSubBucketHalfCountMagnitude + 1);
  }
  static std::int64_t sub_bucket_index(std::int64_t value) { return value >> (bucket_index(value) + kUnitMagnitude); }
  static std::int64_t counts_index(std::int64_t value) {
    const std::int64_t base = std::int64_t{bucket_index(value) + 1} << kSubBucketHalfCountMagnitude;
    return base + sub_bucket_index(value) - kSubBucketHalfCount;
  }
  static std::int64_t lowest_equivalent(std::int64_t value) {
    return sub_bucket_index(value) << (bucket_index(value) + kUnitMagnitude);
  }
  static std::int64_t highest_equivalent(std::int64_t value) {
    return lowest_equivalent(value) + (std::int64_t{1} << (bucket_index(value) + kUnitMagnitude)) - 1;
  }
  static std::int64_t counts_length() {
    int buckets = 1;
    for (std::int64_t untrackable = 2048; untrackable <= 3'600'000'000'000; untrackable <<= 1) ++buckets;
    return (buckets + 1) * kSubBucketHalfCount;
  }
};

TEST(LatencyHistogram, LiteralBuckets) {
  const std::pair<std::uint64_t, std::size_t> known[] = {{0, 0},
                                                         {1, 1},
                                                         {1023, 1023},
                                                         {2047, 2047},
                                                         {2048, 2048},
                                                         {2049, 2048},
                                                         {2050, 2049},
                                                         {4095, 3071},
                                                         {4096, 3072},
                                                         {4099, 3072},
                                                         {4100, 3073},
                                                         {1'000'000, 11169},
                                                         {1'000'000'000, 21363},
                                                         {3'600'000'000'000, 33420}};
  for (const auto& [value, bucket] : known) {
    EXPECT_EQ(Histogram::bucket_of_value(value), bucket) << value;
  }
}

TEST(LatencyHistogram, LayoutIsHdrHistograms) {
  EXPECT_EQ(static_cast<std::int64_t>(Histogram::kBucketCount), HdrReference::counts_length());
  std::mt19937_64 random(1);
  for (int k = 0; k < 200'000; ++k) {
    const std::uint64_t value = std::min<std::uint64_t>(random() >> (22 + random() % 42), Histogram::kHighestNs);
    const auto signed_value = static_cast<std::int64_t>(value);
    const std::size_t bucket = Histogram::bucket_of_value(value);
    ASSERT_EQ(static_cast<std::int64_t>(bucket), HdrReference::counts_index(signed_value)) << value;
    ASSERT_EQ(static_cast<std::int64_t>(Histogram::value_of_bucket(bucket)), HdrReference::lowest_equivalent(signed_value));
    ASSERT_EQ(static_cast<std::int64_t>(Histogram::last_value_of_bucket(bucket)), HdrReference::highest_equivalent(signed_value));
  }
  for (std::size_t bucket = 1; bucket < Histogram::kBucketCount; ++bucket) {
    ASSERT_EQ(Histogram::value_of_bucket(bucket), Histogram::last_value_of_bucket(bucket - 1) + 1);
    ASSERT_EQ(Histogram::bucket_of_value(Histogram::value_of_bucket(bucket)), bucket);
  }
}

// The rank rule by exact integers: the smallest sorted[k] with (k + 1) / n >= p, p in units of 1/1000 percent.
std::uint64_t sorted_at(const std::vector<std::uint64_t>& sorted, std::uint64_t milli_percent) {
  const std::uint64_t rank = std::max<std::uint64_t>(1, (milli_percent * sorted.size() + 99'999) / 100'000);
  return sorted[rank - 1];
}

TEST(LatencyHistogram, PercentilesMatchASortedArray) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> latency(10.0, 1.5);
  for (const std::size_t size : {1u, 2u, 10u, 999u, 100'000u}) {
    Histogram histogram;
    std::vector<std::uint64_t> values;
    double sum = 0;
    for (std::size_t k = 0; k < size; ++k) {
      values.push_back(static_cast<std::uint64_t>(latency(random)));
      histogram.record(values.back());
      sum += static_cast<double>(values.back());
    }
    std::ranges::sort(values);
    EXPECT_EQ(histogram.count(), size);
    EXPECT_EQ(histogram.min(), values.front());
    EXPECT_EQ(histogram.max(), values.back());
    EXPECT_NEAR(histogram.mean(), sum / static_cast<double>(size), 0.001 * sum / static_cast<double>(size) + 0.5);
    for (const std::uint64_t milli_percent : {1u, 1000u, 10'000u, 25'000u, 50'000u, 90'000u, 99'000u, 99'900u, 99'990u, 100'000u}) {
      const auto truth = static_cast<std::int64_t>(sorted_at(values, milli_percent));
      EXPECT_EQ(static_cast<std::int64_t>(histogram.value_at_percentile(static_cast<double>(milli_percent) / 1000.0)),
                HdrReference::highest_equivalent(truth))
          << size << " values, " << milli_percent;
    }
    EXPECT_EQ(static_cast<std::int64_t>(histogram.value_at_percentile(0)),
              HdrReference::lowest_equivalent(static_cast<std::int64_t>(values.front())));
  }
}

TEST(LatencyHistogram, EmptyClampedCountedAndReset) {
  Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.mean(), 0.0);
  EXPECT_EQ(histogram.value_at_percentile(99), 0u);
  histogram.record(10, 5);
  histogram.record(20, 0);
  histogram.record(Histogram::kHighestNs);
  EXPECT_EQ(histogram.clamped(), 0u);
  histogram.record(Histogram::kHighestNs + 1, 2);
  histogram.record(~std::uint64_t{0});
  EXPECT_EQ(histogram.clamped(), 3u);
  EXPECT_EQ(histogram.count(), 9u);
  EXPECT_EQ(histogram.max(), Histogram::kHighestNs);
  EXPECT_EQ(histogram.counts()[10], 5u);
  EXPECT_EQ(histogram.counts()[20], 0u);
  EXPECT_EQ(histogram.counts()[33420], 4u);
  EXPECT_EQ(histogram.value_at_percentile(50), 10u);
  histogram.reset();
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.clamped(), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  histogram.record(7);
  EXPECT_EQ(histogram.min(), 7u);
}

TEST(LatencyHistogram, AddAndCopy) {
  Histogram a, b, both;
  std::mt19937_64 random(3);
  for (int k = 0; k < 5000; ++k) {
    const std::uint64_t value = random() >> (random() % 30 + 25);
    (k % 3 == 0 ? a : b).record(value);
    both.record(value);
  }
  a.add(Histogram{});
  a.add(b);
  EXPECT_TRUE(std::ranges::equal(a.counts(), both.counts()));
  EXPECT_EQ(a.count(), both.count());
  EXPECT_EQ(a.min(), both.min());
  EXPECT_EQ(a.max(), both.max());
  const Histogram copy(a);
  a.record(1);
  EXPECT_TRUE(std::ranges::equal(copy.counts(), both.counts()));
  b = copy;
  EXPECT_TRUE(std::ranges::equal(b.counts(), both.counts()));
  EXPECT_EQ(b.min(), both.min());
}

TEST(LatencyHistogram, SnapshotWhileItIsWritten) {
  constexpr std::uint64_t kRecords = 200'000;
  Histogram histogram;
  std::thread writer([&] {
    for (std::uint64_t k = 0; k < kRecords; ++k) histogram.record(1000 + k % 5000);
  });
  Histogram snapshot;
  std::uint64_t last = 0;
  while (last < kRecords) {
    snapshot = histogram;
    ASSERT_GE(snapshot.count(), last);
    last = snapshot.count();
    std::uint64_t sum = 0;
    for (const std::uint64_t count : snapshot.counts()) sum += count;
    ASSERT_EQ(sum, last);
    if (last == 0) continue;
    ASSERT_GE(snapshot.value_at_percentile(50), 1000u);
    ASSERT_LE(snapshot.value_at_percentile(100), Histogram::last_value_of_bucket(Histogram::bucket_of_value(5999)));
    ASSERT_LE(snapshot.min(), snapshot.max());
  }
  writer.join();
}

// Against a sum over all values: exact where a bound ends a bucket, and of a bucket that a bound cuts nothing counts.
TEST(LatencyHistogram, CountsUpToBounds) {
  Histogram histogram;
  const std::vector<std::uint64_t> bounds{0, 10, 2047, 2048, 2049, 4098, 4099, 1'000'000, Histogram::kHighestNs, ~std::uint64_t{0}};
  std::vector<std::uint64_t> counts(bounds.size(), 7);
  EXPECT_EQ(histogram.counts_up_to(bounds, counts), 0u);
  EXPECT_EQ(counts, std::vector<std::uint64_t>(bounds.size(), 0));

  std::vector<std::uint64_t> values{0, 0, 10, 11, 2047, 2048, 2049, 4096, 4099, 4100, 999'000, 1'000'100, Histogram::kHighestNs};
  for (const std::uint64_t value : values) histogram.record(value);
  EXPECT_EQ(histogram.counts_up_to(bounds, counts), values.size());
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const auto within = std::count_if(values.begin(), values.end(), [&](std::uint64_t value) {
      return Histogram::last_value_of_bucket(Histogram::bucket_of_value(value)) <= bounds[i];
    });
    EXPECT_EQ(counts[i], static_cast<std::uint64_t>(within)) << bounds[i];
  }
  EXPECT_EQ(counts[3], counts[2]) << "2048 and 2049 share a bucket, which 2048 cuts";
  EXPECT_EQ(counts.back(), values.size());
}

TEST(LatencyHistogram, CountsUpToBoundsNeverFall) {
  Histogram histogram;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    std::mt19937_64 random(3);
    while (!done.load()) histogram.record(random() >> (30 + random() % 30));
  });
  const std::vector<std::uint64_t> bounds{1000, 100'000, 10'000'000};
  std::vector<std::uint64_t> counts(bounds.size()), before(bounds.size());
  std::uint64_t total_before = 0;
  for (int look = 0; look < 200; ++look) {
    const std::uint64_t total = histogram.counts_up_to(bounds, counts);
    for (std::size_t i = 0; i < bounds.size(); ++i) EXPECT_GE(counts[i], before[i]);
    EXPECT_TRUE(std::is_sorted(counts.begin(), counts.end()));
    EXPECT_GE(total, std::max(total_before, counts.back()));
    before = counts;
    total_before = total;
  }
  done = true;
  writer.join();
}

}  // namespace
}  // namespace nanet::flow
