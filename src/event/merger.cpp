// SPDX-License-Identifier: Apache-2.0
#include "nanet/event/merger.hpp"

#include <algorithm>
namespace nanet::event {

namespace {

// An entry must be distinguishable from any that was ever linked before it, also when positions have wrapped: half the range away
// is never in memory.
constexpr std::uint32_t kFarAway = 1u << 31;

constexpr std::uint32_t kEvictedAtOnce = 64;

// A run of keys that can be trusted: more events than two packets hold, each within 0.1 s of the one before.
constexpr std::uint64_t kStepMax = std::uint64_t{1} << 30;
constexpr std::uint64_t kRunTrusted = 512;

// Reads no further than the last hit.
void copy_hits(std::uint16_t* to, const std::uint16_t* from, std::uint32_t count) {
  if (count >= 8) {
    for (std::uint32_t i = 0; i + 8 < count; i += 8) std::memcpy(to + i, from + i, 16);
    std::memcpy(to + count - 8, from + count - 8, 16);
  } else if (count >= 4) {
    std::memcpy(to, from, 8);
    std::memcpy(to + count - 4, from + count - 4, 8);
  } else if (count >= 2) {
    std::memcpy(to, from, 4);
    to[count - 1] = from[count - 1];
  } else if (count == 1) {
    to[0] = from[0];
  }
}

}  // namespace

Merger::Merger(const MergerConfig& config) {
  check(config);
  const std::uint32_t entry_count = std::max(2 * config.open_events_max, 1024u);
  // Open events, and as many again (at least a packet's worth) that are ready and not yet cleared.
  event_count_ = config.open_events_max + std::max(config.open_events_max, 256u);
  entries_.resize(entry_count);
  events_.resize(event_count_);  // also touches the memory, so that no page fault comes later
  ready_.resize(event_count_);
  ready_index_.resize(event_count_);
  buckets_.resize(entry_count);
  free_index_.resize(event_count_);
  for (std::uint32_t i = 0; i < event_count_; ++i) free_index_[i] = event_count_ - 1 - i;
  free_count_ = event_count_;
  spare_count_ = event_count_ - config.open_events_max;
  entry_ = entries_.data();
  event_ = events_.data();
  entry_mask_ = entry_count - 1;
  hits_max_ = config.hits_max;
  full_mask_ = (1u << config.source_count) - 1;
  open_max_ = config.open_events_max;
  window_ns_ = config.window_ns;
}

PartResult Merger::add_part(std::uint32_t source, std::uint64_t key, const std::uint16_t* hits, std::uint32_t hit_count,
                            std::uint64_t now_ns) {
  return add(source, key, hit_count, now_ns, [hits](std::uint16_t* to, std::uint32_t count) { copy_hits(to, hits, count); });
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
  floor_ = next_;
  horizon_set_ = 0;
  run_length_ = 0;
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

// Where a part that is not at its source's cursor belongs: nearly always in a new event. Whatever prevents
// that is left to place_carefully(), by a tail call, so that this function saves no registers.
Merger::Place Merger::place(std::uint32_t source, std::uint64_t key, std::uint64_t now_ns) {
  const std::uint64_t hash = hash_of(key);
  Bucket& bucket = bucket_of(hash);
  const std::uint32_t tag = tag_of(hash);
  const bool perhaps_known = (bucket.tags & tag) != 0 && in_memory(bucket.newest);
  const bool no_room = free_count_ == 0 || free_count_ + ready_count_ <= spare_count_;
  if (perhaps_known || !key_after(key, horizon_key_) || memory_full() || no_room) [[unlikely]] {
    return place_carefully(source, key, now_ns);
  }
  return open(key, bucket, tag, now_ns);
}

[[gnu::noinline]] Merger::Place Merger::place_carefully(std::uint32_t source, std::uint64_t key, std::uint64_t now_ns) {
  const std::uint64_t hash = hash_of(key);
  Bucket& bucket = bucket_of(hash);
  for (std::uint32_t position = bucket.newest; in_memory(position);) {
    const Entry& entry = entry_[position & entry_mask_];
    if (entry.key == key) {
      if (entry.state < kClosed) return {PartResult::merged, position};
      const std::uint32_t age_ticks = (tick_of(now_ns) - (entry.state >> 8)) & kTickMask;
      if (age_ticks <= kMemoryTicks) return place_closed(source, position);
      break;  // closed so long ago that it cannot be the same event: the key has come round again
    }
    position = entry.older;
  }
  if (!key_after(key, horizon_key_) && horizon_is_fresh(now_ns)) {
    ++stats_.parts_late;
    return {PartResult::late, 0};
  }
  if (free_count_ == 0) {
    ++stats_.parts_no_room;
    return {PartResult::no_room, 0};
  }
  if (memory_full()) evict_entries(now_ns);
  if (open_count() == open_max_) close_oldest_open(now_ns);
  return open(key, bucket, tag_of(hash), now_ns);
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

inline Merger::Place Merger::open(std::uint64_t key, Bucket& bucket, std::uint32_t tag, std::uint64_t now_ns) {
  const std::uint32_t position = next_;
  const std::uint32_t index = free_index_[--free_count_];
  const bool linked = in_memory(bucket.newest);
  Entry& entry = entry_[position & entry_mask_];
  entry.key = key;
  entry.older = linked ? bucket.newest : position - kFarAway;
  entry.state = index;
  bucket.tags = (linked ? bucket.tags : 0) | tag;
  bucket.newest = position;
  next_ = position + 1;

  MergedEvent& event = event_[index];
  event.key = key;
  event.first_part_ns = now_ns;
  event.parts_mask = 0;
  event.closed_by = CloseReason::open;
  event.hit_count = 0;
  event.hits_cut = 0;
  event.reserved = 0;
  ++stats_.events_opened;
  return {PartResult::merged, position};
}

bool Merger::horizon_is_fresh(std::uint64_t now_ns) const {
  return horizon_set_ != 0 && ((tick_of(now_ns) - horizon_tick_) & kTickMask) <= kMemoryTicks;
}

// Makes room for some more entries by forgetting the oldest. An event among them that is still open has to go.
//
// A forgotten event moves the horizon to its key. One source's word is not enough to declare everything before it late,
// for that source's clock may be wild: two sources must agree on the key, or it must continue a long unbroken run. And
// it must have closed lately, or a new run would be refused because of what memory still holds of the previous run.
void Merger::evict_entries(std::uint64_t now_ns) {
  const std::uint32_t now_tick = tick_of(now_ns);
  bool has_horizon = horizon_is_fresh(now_ns);
  std::uint64_t horizon_key = horizon_key_;
  std::uint32_t horizon_tick = horizon_tick_;
  std::uint64_t last_key = last_evicted_key_;
  std::uint64_t run_length = run_length_;
  const std::uint32_t end = floor_ + kEvictedAtOnce;
  for (std::uint32_t position = floor_; position != end; ++position) {
    Entry& entry = entry_[position & entry_mask_];
    if (entry.state < kClosed) [[unlikely]]
      close(entry, CloseReason::overflow, now_ns);
    const std::uint64_t step = (entry.key - last_key + kStepMax) & kKeyMask;
    last_key = entry.key;
    run_length = step < 2 * kStepMax ? run_length + 1 : 0;
    const std::uint32_t parts_mask = entry.state & 0xff;
    const bool two_sources = (parts_mask & (parts_mask - 1)) != 0;
    const bool behind = has_horizon && !key_after(entry.key, horizon_key);
    const std::uint32_t closed_tick = entry.state >> 8 & kTickMask;
    const bool fresh = ((now_tick - closed_tick) & kTickMask) <= kMemoryTicks;
    if (behind || !fresh || !(two_sources || run_length >= kRunTrusted)) continue;
    horizon_key = entry.key;
    horizon_tick = closed_tick;
    has_horizon = true;
  }
  floor_ = end;
  if (oldest_ - floor_ > next_ - floor_) oldest_ = floor_;
  last_evicted_key_ = last_key;
  run_length_ = run_length;
  horizon_key_ = horizon_key;
  horizon_tick_ = horizon_tick;
  horizon_set_ = has_horizon ? 1 : 0;
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

}  // namespace nanet::event
