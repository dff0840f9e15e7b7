// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/latency_histogram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nanet::flow {

LatencyHistogram::LatencyHistogram() : state_(std::make_unique<State>()) { reset(); }

LatencyHistogram::LatencyHistogram(const LatencyHistogram& other) : LatencyHistogram() { add(other); }

LatencyHistogram& LatencyHistogram::operator=(const LatencyHistogram& other) {
  if (this == &other) return *this;
  reset();
  add(other);
  return *this;
}

void LatencyHistogram::add(const LatencyHistogram& other) {
  // The total is that of the buckets read, not the other's: it may keep counting, and ranks must fit the buckets.
  std::uint64_t total = 0;
  std::size_t first = kBucketCount, last = 0;
  for (std::size_t bucket = 0; bucket < kBucketCount; ++bucket) {
    const std::uint64_t count = load(other.state_->counts[bucket]);
    if (count == 0) continue;
    increase(state_->counts[bucket], count);
    total += count;
    first = std::min(first, bucket);
    last = bucket;
  }
  if (total == 0) return;
  increase(state_->total, total);
  increase(state_->clamped, load(other.state_->clamped));
  // The extremes may lag or lead the buckets read by a record: keep them inside the outermost buckets.
  const std::uint64_t min_ns = std::clamp(load(other.state_->min_ns), value_of_bucket(first), last_value_of_bucket(first));
  const std::uint64_t max_ns = std::clamp(load(other.state_->max_ns), value_of_bucket(last), last_value_of_bucket(last));
  store(state_->min_ns, std::min(load(state_->min_ns), min_ns));
  store(state_->max_ns, std::max(load(state_->max_ns), max_ns));
}

void LatencyHistogram::reset() {
  store(state_->total, 0);
  store(state_->clamped, 0);
  store(state_->min_ns, std::numeric_limits<std::uint64_t>::max());
  store(state_->max_ns, 0);
  for (std::uint64_t& count : state_->counts) store(count, 0);
}

std::uint64_t LatencyHistogram::min() const { return count() == 0 ? 0 : load(state_->min_ns); }

std::uint64_t LatencyHistogram::max() const { return load(state_->max_ns); }

double LatencyHistogram::mean() const {
  double sum = 0, total = 0;
  for (std::size_t bucket = 0; bucket < kBucketCount; ++bucket) {
    const auto count = static_cast<double>(load(state_->counts[bucket]));
    if (count == 0) continue;
    const std::uint64_t width = last_value_of_bucket(bucket) - value_of_bucket(bucket) + 1;
    sum += count * static_cast<double>(value_of_bucket(bucket) + width / 2);
    total += count;
  }
  return total == 0 ? 0 : sum / total;
}

std::uint64_t LatencyHistogram::value_at_percentile(double percentile) const {
  const std::uint64_t total = count();
  if (total == 0) return 0;
  // One step down first, so that a percentile that has no exact double does not round up past its rank.
  const double fraction = std::clamp(std::nextafter(percentile, -1.0), 0.0, 100.0) / 100.0;
  const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(total))));
  std::uint64_t seen = 0;
  std::size_t found = bucket_of_value(max());
  for (std::size_t bucket = 0; bucket < kBucketCount; ++bucket) {
    seen += load(state_->counts[bucket]);
    if (seen >= rank) {
      found = bucket;
      break;
    }
  }
  return percentile <= 0 ? value_of_bucket(found) : last_value_of_bucket(found);
}

std::uint64_t LatencyHistogram::counts_up_to(std::span<const std::uint64_t> bounds_ns, std::span<std::uint64_t> counts) const {
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  for (std::size_t i = 0; i < bounds_ns.size(); ++i) {
    for (; bucket < kBucketCount && last_value_of_bucket(bucket) <= bounds_ns[i]; ++bucket) seen += load(state_->counts[bucket]);
    counts[i] = seen;
  }
  for (; bucket < kBucketCount; ++bucket) seen += load(state_->counts[bucket]);
  return seen;
}

}  // namespace nanet::flow
