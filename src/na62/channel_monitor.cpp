// SPDX-License-Identifier: Apache-2.0
#include "na62/channel_monitor.hpp"

#include <algorithm>

namespace nanet::na62 {
namespace {

// Plain words to the compiler, and a reader sees no tear.
std::uint64_t load(std::uint64_t& word) { return std::atomic_ref(word).load(std::memory_order_relaxed); }
void add(std::uint64_t& word, std::uint64_t n) { std::atomic_ref(word).store(load(word) + n, std::memory_order_relaxed); }

}  // namespace

ChannelMonitor::ChannelMonitor(const rich::ChannelSet& mask, HotChannels hot)
    : configured_(mask), hot_(hot), mask_(mask), masks_(!mask.empty()), room_(kBatchMax * rich::kMaxHits) {}

std::span<const event::Event> ChannelMonitor::admit(std::span<const event::Event> events, std::uint64_t now_ns) {
  count(events);
  events_ += events.size();
  if (hot_ == HotChannels::mask && events_ >= period_end_) look(now_ns);
  masked_hits_ = 0;
  return masks_ ? leave_out(events) : events;
}

void ChannelMonitor::take(std::span<const std::uint64_t, rich::kChannelCount> hits) {
  for (std::size_t c = 0; c < hits.size(); ++c) add(hits_[c], hits[c]);
}

std::array<std::uint64_t, rich::kChannelCount> ChannelMonitor::hits() const {
  std::array<std::uint64_t, rich::kChannelCount> copy;
  for (std::size_t c = 0; c < copy.size(); ++c) copy[c] = load(hits_[c]);
  return copy;
}

void ChannelMonitor::count(std::span<const event::Event> events) {
  for (const event::Event& event : events) {
    for (std::uint32_t k = 0; k < event.count; ++k) add(hits_[event.hits[k] & rich::kChannelMask], 1);
  }
}

void ChannelMonitor::look(std::uint64_t now_ns) {
  std::array<std::uint64_t, rich::kChannelCount> in_period;
  for (std::size_t c = 0; c < in_period.size(); ++c) in_period[c] = hits_[c] - hits_before_[c];
  hits_before_ = hits_;
  period_ = std::min(2 * period_, kLongestPeriod);
  period_end_ = events_ + period_;
  const rich::ChannelSet hot = rich::hot_channels(in_period);
  if (hot.empty()) return;
  std::uint32_t count = found_count_.load(std::memory_order_relaxed);
  for (std::uint32_t c = 0; c < rich::kChannelCount && count < kFoundMax; ++c) {
    if (!hot.has(c) || mask_.has(c)) continue;
    mask_.add(c);
    found_[count++] = {static_cast<std::uint16_t>(c), now_ns, events_};
  }
  masks_ = !mask_.empty();
  found_count_.store(count, std::memory_order_release);
}

std::span<const event::Event> ChannelMonitor::leave_out(std::span<const event::Event> events) {
  std::uint16_t* room = room_.data();
  for (std::size_t e = 0; e < events.size(); ++e) {
    batch_[e] = rich::without_masked(events[e], mask_, room);
    masked_hits_ += events[e].count - batch_[e].count;
    room += std::min(batch_[e].count, rich::kMaxHits);
  }
  return std::span(batch_).first(events.size());
}

}  // namespace nanet::na62
