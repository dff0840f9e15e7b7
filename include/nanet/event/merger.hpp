// SPDX-License-Identifier: Apache-2.0
// Event building: puts the parts of an event, sent by up to eight sources, together by their time key.
//
// Terms
//   key      timestamp << 8 | fine_time: 40 bits of 97.46 ps. It wraps after 107 s: "before" is meant modulo 2^40.
//   part     what one source says about one event: its key and its hits, of which there may be none.
//   open     an event that waits for parts. It closes complete, by expire() (window_ns after its first part), by
//            drain() or flush(), or by overflow: open_events_max others are open, or the memory is full; the oldest
//            has to go.
//   ready    closed and not yet cleared. Each event opened becomes ready exactly once, with whatever parts it has.
//   memory   what tells a late part from a new event: the last 2 * open_events_max events opened (at least 1024; up to
//            64 fewer just after some were forgotten), and for older ones the horizon: the newest key among them that
//            can be trusted. Either holds for 1.1 s after that event closed. docs/design/merger.md says why.
//
// Books, at all times
//   calls of add_part = parts_merged + parts_late + parts_duplicate + parts_no_room
//   events_opened     = events_complete + events_missing_parts + events_overflow + open_count()
//
// Rules
//   * One thread. No clock, no I/O; nothing is allocated and nothing throws after the constructor.
//   * now_ns comes from one clock that never goes back.
//   * Call clear_ready() at least once every max(open_events_max, 256) parts (once per packet is always enough).
//     Otherwise new events may find no room: their parts are refused and counted as parts_no_room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "nanet/event/parts.hpp"

namespace nanet::event {

inline constexpr std::uint32_t kHitsPad = 8;  // add_padded_part() reads in steps of this many hits

// The header and the first 20 hits lie in one cache line.
struct alignas(64) MergedEvent {
  std::uint64_t key;
  std::uint64_t first_part_ns;  // now_ns of the part that opened it
  std::uint8_t parts_mask;      // bit s: source s's part is in
  CloseReason closed_by;
  std::uint16_t hit_count;  // hits kept
  std::uint16_t hits_cut;   // hits for which there was no room, saturating
  std::uint16_t reserved;
  std::uint16_t hits[kHitsMax + 20];  // only the first hit_count are meaningful; in order of arrival of the parts

  std::span<const std::uint16_t> hit_span() const { return {hits, hit_count}; }
};
static_assert(sizeof(MergedEvent) == 320 && offsetof(MergedEvent, hits) == 24);

class Merger {
 public:
  explicit Merger(const MergerConfig& config);  // throws SetupError
  Merger(const Merger&) = delete;
  Merger& operator=(const Merger&) = delete;

  // Precondition: source < source_count. Only the low 40 bits of key count. hits may be null when hit_count is 0.
  PartResult add_part(std::uint32_t source, std::uint64_t key, const std::uint16_t* hits, std::uint32_t hit_count,
                      std::uint64_t now_ns);

  // The same, faster: the memory at `hits` must be readable up to the next multiple of kHitsPad hits, and kHitsPad of
  // them also when hit_count is 0 (true of any event in the padded format, and of an unpacked one in a buffer with
  // that much room).
  PartResult add_padded_part(std::uint32_t source, std::uint64_t key, const std::uint16_t* hits, std::uint32_t hit_count,
                             std::uint64_t now_ns) {
    return add(source, key, hit_count, now_ns, [hits](std::uint16_t* to, std::uint32_t count) {
      std::memcpy(to, hits, 16);
      for (std::uint32_t i = kHitsPad; i < count; i += kHitsPad) std::memcpy(to + i, hits + i, 16);
    });
  }

  // Closes the events that opened window_ns ago or earlier. Amortised O(1); call it as often as you like.
  void expire(std::uint64_t now_ns);

  // Closes all open events but remembers them: late parts stay late. For the end of a run.
  void drain(std::uint64_t now_ns);

  // Closes all open events and forgets everything, so that timestamps may start again. For the start of a run: once
  // per run, not per source, or parts of the new run's first events are torn apart.
  void flush();

  // Events closed since clear_ready(), in order of closing; pointers and contents are valid until clear_ready().
  std::span<const MergedEvent* const> ready() const { return {ready_.data(), ready_count_}; }
  void clear_ready();

  const MergerStats& stats() const { return stats_; }
  std::uint32_t open_count() const { return event_count_ - free_count_ - ready_count_; }
  std::uint32_t memory_events() const { return entry_mask_ + 1; }  // events that the memory holds

 private:
  // One remembered event, open or closed. Entries form a ring in order of opening; `position` counts all openings.
  struct Entry {
    std::uint64_t key = 0;
    std::uint32_t older = 0;        // position of the next older entry with the same hash
    std::uint32_t state = kClosed;  // open: index of its MergedEvent; closed: kClosed | tick of closing << 8 | parts_mask
  };
  static_assert(sizeof(Entry) == 16);
  static constexpr std::uint32_t kClosed = 1u << 31;
  static constexpr std::uint32_t kTickMask = (1u << 23) - 1;

  struct Place {
    PartResult result;  // merged: the part belongs to the open event at `position`
    std::uint32_t position;
  };

  // copy(to, count) writes `count` hits, and may write up to kHitsPad - 1 more.
  template <class Copy>
  PartResult add(std::uint32_t source, std::uint64_t key, std::uint32_t hit_count, std::uint64_t now_ns, Copy copy);
  std::uint32_t cut_hits(MergedEvent& event, std::uint32_t hit_count);
  void close(Entry& entry, CloseReason reason, std::uint64_t now_ns);

  // The newest entry with some hash, and a set of five further hash bits of all entries linked after it. The set
  // tells nearly every new key from the linked ones without following the links, which would be mispredicted.
  struct Bucket {
    std::uint32_t newest = 0;
    std::uint32_t tags = 0;
  };

  Place place(std::uint32_t source, std::uint64_t key, std::uint64_t now_ns);
  Place place_carefully(std::uint32_t source, std::uint64_t key, std::uint64_t now_ns);
  Place place_closed(std::uint32_t source, std::uint32_t position);
  Place open(std::uint64_t key, Bucket& bucket, std::uint32_t tag, std::uint64_t now_ns);
  void evict_entries(std::uint64_t now_ns);
  void close_oldest_open(std::uint64_t now_ns);
  void close_all(std::uint64_t now_ns);
  bool horizon_is_fresh(std::uint64_t now_ns) const;
  bool in_memory(std::uint32_t position) const { return position - floor_ < next_ - floor_; }
  bool memory_full() const { return next_ - floor_ > entry_mask_; }
  static std::uint64_t hash_of(std::uint64_t key) { return key * 0x9E3779B97F4A7C15u; }
  Bucket& bucket_of(std::uint64_t hash) { return buckets_[static_cast<std::uint32_t>(hash >> 32) & entry_mask_]; }
  static std::uint32_t tag_of(std::uint64_t hash) { return 1u << (hash >> 59); }
  static std::uint32_t tick_of(std::uint64_t now_ns) { return static_cast<std::uint32_t>(now_ns >> kTickShift) & kTickMask; }

  // In the order of use by a part that finds its event at the cursor.
  std::uint32_t cursors_[kSourcesMax] = {};  // position after the source's last part
  Entry* entry_;
  MergedEvent* event_;
  std::uint32_t entry_mask_;
  std::uint32_t hits_max_;
  std::uint32_t full_mask_;
  std::uint32_t ready_count_ = 0;
  std::uint32_t free_count_ = 0;
  MergerStats stats_;

  // Positions start shortly before they wrap, so that every test sees it happen.
  static constexpr std::uint32_t kFirstPosition = 0u - 5000u;
  std::uint32_t next_ = kFirstPosition;    // position of the next event to open
  std::uint32_t oldest_ = kFirstPosition;  // no entry before this position is open
  std::uint32_t floor_ = kFirstPosition;   // entries in memory are at positions floor_ .. next_ - 1
  std::uint32_t open_max_;
  std::uint32_t event_count_;  // of events_: each is open, ready or free
  std::uint32_t spare_count_;  // event_count_ - open_max_
  std::uint64_t window_ns_;
  std::uint64_t horizon_key_ = 0;  // what is not in memory and not after this key is late
  std::uint64_t last_evicted_key_ = 0;
  std::uint64_t run_length_ = 0;  // evicted events in a row that were near each other in time
  std::uint32_t horizon_tick_ = 0;
  std::uint32_t horizon_set_ = 0;  // 0: there is no horizon

  std::vector<Entry> entries_;
  std::vector<MergedEvent> events_;
  std::vector<const MergedEvent*> ready_;
  std::vector<std::uint32_t> ready_index_;  // the same events, as indices
  std::vector<std::uint32_t> free_index_;   // a stack: what was used last is used next, and is still in the cache
  std::vector<Bucket> buckets_;
};

template <class Copy>
inline PartResult Merger::add(std::uint32_t source, std::uint64_t key, std::uint32_t hit_count, std::uint64_t now_ns, Copy copy) {
  key &= kKeyMask;
  std::uint32_t position = cursors_[source];
  Entry* entry = &entry_[position & entry_mask_];
  // An open entry with this key is the event, however the cursor came to point there.
  if (entry->key != key || entry->state >= kClosed) {
    const Place placed = place(source, key, now_ns);
    if (placed.result != PartResult::merged) return placed.result;
    position = placed.position;
    entry = &entry_[position & entry_mask_];
  }
  MergedEvent& event = event_[entry->state];
  const std::uint32_t bit = 1u << source;
  if (event.parts_mask & bit) [[unlikely]] {
    ++stats_.parts_duplicate;
    return PartResult::duplicate;
  }
  cursors_[source] = position + 1;
  PartResult result = PartResult::merged;
  if (hit_count > hits_max_ - event.hit_count) [[unlikely]] {
    hit_count = cut_hits(event, hit_count);
    result = PartResult::merged_cut;
  }
  copy(event.hits + event.hit_count, hit_count);
  event.hit_count = static_cast<std::uint16_t>(event.hit_count + hit_count);
  event.parts_mask = static_cast<std::uint8_t>(event.parts_mask | bit);
  ++stats_.parts_merged;
  if (event.parts_mask == full_mask_) close(*entry, CloseReason::complete, now_ns);
  return result;
}

inline void Merger::close(Entry& entry, CloseReason reason, std::uint64_t now_ns) {
  const std::uint32_t index = entry.state;
  MergedEvent& event = event_[index];
  event.closed_by = reason;
  entry.state = kClosed | tick_of(now_ns) << 8 | event.parts_mask;
  ready_[ready_count_] = &event;
  ready_index_[ready_count_] = index;
  ++ready_count_;
  if (reason == CloseReason::complete) {
    ++stats_.events_complete;
  } else if (reason == CloseReason::overflow) {
    ++stats_.events_overflow;
  } else {
    ++stats_.events_missing_parts;
  }
}

}  // namespace nanet::event
