// SPDX-License-Identifier: Apache-2.0
#include "nanet/event/merger.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::event {

namespace {

// An entry must be told from any that was ever linked before it, also when positions have wrapped: half the range away
// is never in memory.
constexpr std::uint32_t kFarAway = 1u << 31;

void check(const MergerConfig& config) {
  const auto refuse = [](const char* name, std::uint64_t value, const std::string& why, const char* suggestion) {
    throw SetupError("merger: " + std::string(name) + " is " + std::to_string(value), why, suggestion);
  };
  if (config.source_count < 1 || config.source_count > kSourcesMax) {
    refuse("source_count", config.source_count, "it must be 1 to 8", "merge more sources in two steps");
  }
  if (config.window_ns < 1'000 || config.window_ns > 10'000'000'000) {
    refuse("window_ns", config.window_ns, "it must be 1 us to 10 s", "start with 200000 (200 us)");
  }
  if (!std::has_single_bit(config.open_events_max) || config.open_events_max > 1u << 20) {
    refuse("open_events_max", config.open_events_max, "it must be a power of two up to 1048576", "start with 8192");
  }
  if (config.hits_max < 1 || config.hits_max > kHitsMax) {
    refuse("hits_max", config.hits_max, "it must be 1 to 128", "leave it at 128");
  }
}

}  // namespace

Merger::Merger(const MergerConfig& config) {
  check(config);
  const std::uint32_t entry_count = std::max(2 * config.open_events_max, 1024u);
  // Open events, and as many again (at least a packet's worth) that are ready and not yet cleared.
  const std::uint32_t event_count = config.open_events_max + std::max(config.open_events_max, 256u);
  const std::uint32_t bucket_count = 2 * entry_count;
  entries_.resize(entry_count);
  events_.resize(event_count);  // also touches the memory, so that no page fault comes later
  ready_.resize(event_count);
  ready_index_.resize(event_count);
  buckets_.resize(bucket_count);
  free_index_.resize(event_count);
  for (std::uint32_t i = 0; i < event_count; ++i) free_index_[i] = event_count - 1 - i;
  free_count_ = event_count;
  entry_ = entries_.data();
  event_ = events_.data();
  entry_mask_ = entry_count - 1;
  hits_max_ = config.hits_max;
  full_mask_ = (1u << config.source_count) - 1;
  open_max_ = config.open_events_max;
  bucket_shift_ = 64 - static_cast<std::uint32_t>(std::countr_zero(bucket_count));
  window_ns_ = config.window_ns;
}

void Merger::expire(std::uint64_t now_ns) {
  for (; oldest_ != next_; ++oldest_) {
    Entry& entry = entry_[oldest_ & entry_mask_];
    if (entry.state >= kClosed) continue;
    const auto age_ns = static_cast<std::int64_t>(now_ns - event_[entry.state].first_part_ns);
    if (age_ns < static_cast<std::int64_t>(window_ns_)) return;
    close(entry, CloseReason::window, now_ns);
  }
}

void Merger::drain(std::uint64_t now_ns) { close_all(now_ns); }

void Merger::flush() {
  close_all(0);  // the time does not matter: nothing is remembered
  remembered_ = 0;
  horizon_set_ = 0;
}

void Merger::clear_ready() {
  std::copy_n(ready_index_.data(), ready_count_, free_index_.data() + free_count_);
  free_count_ += ready_count_;
  ready_count_ = 0;
}

std::uint32_t Merger::cut_hits(MergedEvent& event, std::uint32_t hit_count) {
  const std::uint32_t room = hits_max_ - event.hit_count;
  const std::uint64_t cut = std::uint64_t{event.hits_cut} + (hit_count - room);
  event.hits_cut = static_cast<std::uint16_t>(std::min<std::uint64_t>(cut, 65535));
  ++stats_.parts_overflow_hits;
  return room;
}

// Where a part belongs that is not at its source's cursor.
Merger::Place Merger::place(std::uint32_t source, std::uint64_t key, std::uint64_t now_ns) {
  const std::uint32_t bucket = bucket_of(key);
  for (std::uint32_t position = buckets_[bucket]; in_memory(position);) {
    const Entry& entry = entry_[position & entry_mask_];
    if (entry.key == key) {
      if (entry.state < kClosed) return {PartResult::merged, position};
      const std::uint32_t age_ticks = (tick_of(now_ns) - (entry.state >> 8)) & kTickMask;
      if (age_ticks <= kMemoryTicks) return place_closed(source, position);
      return open(key, bucket, now_ns);  // so old that it cannot be the same event: the key has come round again
    }
    position = entry.older;
  }
  if (before_horizon(key, now_ns)) {
    ++stats_.parts_late;
    return {PartResult::late, 0};
  }
  return open(key, bucket, now_ns);
}

Merger::Place Merger::place_closed(std::uint32_t source, std::uint32_t position) {
  if (entry_[position & entry_mask_].state >> source & 1) {
    ++stats_.parts_duplicate;
    return {PartResult::duplicate, position};
  }
  ++stats_.parts_late;
  cursors_[source] = position + 1;  // its next part most likely belongs to the next event
  return {PartResult::late, position};
}

Merger::Place Merger::open(std::uint64_t key, std::uint32_t bucket, std::uint64_t now_ns) {
  if (free_count_ == 0) [[unlikely]] {
    ++stats_.parts_no_room;
    return {PartResult::no_room, 0};
  }
  if (open_count_ == open_max_) [[unlikely]] close_oldest_open(now_ns);
  if (remembered_ > entry_mask_) evict_oldest_entry(now_ns);

  const std::uint32_t position = next_;
  const std::uint32_t index = free_index_[--free_count_];
  Entry& entry = entry_[position & entry_mask_];
  entry.key = key;
  const std::uint32_t older = buckets_[bucket];
  entry.older = in_memory(older) ? older : position - kFarAway;
  entry.state = index;
  buckets_[bucket] = position;
  ++next_;
  ++remembered_;

  MergedEvent& event = event_[index];
  event.key = key;
  event.first_part_ns = now_ns;
  event.parts_mask = 0;
  event.closed_by = CloseReason::open;
  event.hit_count = 0;
  event.hits_cut = 0;
  event.reserved = 0;
  ++open_count_;
  ++stats_.events_opened;
  return {PartResult::merged, position};
}

void Merger::evict_oldest_entry(std::uint64_t now_ns) {
  const std::uint32_t position = next_ - remembered_;
  Entry& entry = entry_[position & entry_mask_];
  if (entry.state < kClosed) [[unlikely]] close(entry, CloseReason::overflow, now_ns);
  if (oldest_ == position) ++oldest_;
  --remembered_;

  // One source's word is not enough to declare everything before this key late: its clock may be wild.
  const std::uint32_t parts_mask = entry.state & 0xff;
  if ((parts_mask & (parts_mask - 1)) == 0) return;
  if (before_horizon(entry.key, now_ns)) return;
  horizon_key_ = entry.key;
  horizon_tick_ = tick_of(now_ns);
  horizon_set_ = 1;
}

void Merger::close_oldest_open(std::uint64_t now_ns) {
  while (entry_[oldest_ & entry_mask_].state >= kClosed) ++oldest_;
  close(entry_[oldest_ & entry_mask_], CloseReason::overflow, now_ns);
  ++oldest_;
}

void Merger::close_all(std::uint64_t now_ns) {
  for (; oldest_ != next_; ++oldest_) {
    Entry& entry = entry_[oldest_ & entry_mask_];
    if (entry.state < kClosed) close(entry, CloseReason::flush, now_ns);
  }
}

bool Merger::before_horizon(std::uint64_t key, std::uint64_t now_ns) const {
  if (horizon_set_ == 0 || ((tick_of(now_ns) - horizon_tick_) & kTickMask) > kMemoryTicks) return false;
  return ((horizon_key_ - key) & kKeyMask) < (kKeyMask + 1) / 2;
}

}  // namespace nanet::event
