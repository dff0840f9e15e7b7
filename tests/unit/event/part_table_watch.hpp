// SPDX-License-Identifier: Apache-2.0
// A part table whose every answer is judged: what it says about a part must be possible after what it said before, and what it
// delivers must be what it took. For tests and for the fuzz target. It does not know in which slots events lie; so it takes the
// table's word for whether a closed event is still remembered and whether there is room, within limits.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "event/part_table.hpp"

namespace nanet::event {

using HostPartTable = PartTable<HostAtomics>;

// Zeroed memory of exactly the table's size.
class PartTableRoom {
 public:
  explicit PartTableRoom(const MergerConfig& config)
      : bytes_(static_cast<std::byte*>(::operator new(part_table_bytes(config), kAlignment))),
        memory_(part_table_memory(config, bytes_.get())) {
    std::memset(bytes_.get(), 0, part_table_bytes(config));
  }
  const PartTableMemory& memory() const { return memory_; }

 private:
  static constexpr std::align_val_t kAlignment{kPartTableAlignment};
  struct Delete {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, kAlignment); }
  };
  std::unique_ptr<std::byte, Delete> bytes_;
  PartTableMemory memory_;
};

struct WatchedEvent {
  std::uint64_t key = 0;
  std::uint64_t number = 0;  // of all opened
  std::uint64_t first_part_ns = 0;
  std::uint32_t parts_mask = 0;
  std::vector<std::uint16_t> hits;  // kept
  std::uint64_t hits_cut = 0;
  CloseReason closed_by = CloseReason::open;
};

// One worker, or one after the other in the place of several.
class PartTableWatch {
 public:
  explicit PartTableWatch(const MergerConfig& config, std::uint32_t first_position = 0, std::uint32_t worker_count = 1)
      : config_(config), room_(config), table(config, room_.memory()), worker_count_(worker_count) {
    PartTableState& state = *room_.memory().state;
    state.next = state.oldest = state.round_start = first_position;
  }

  PartResult add_part(std::uint32_t source, std::uint64_t key, const std::vector<std::uint16_t>& hits, std::uint64_t now_ns) {
    const auto hit_count = static_cast<std::uint32_t>(hits.size());
    const PartResult result = table.add_part(source, key, hits.data(), hit_count, now_ns, tally_);
    ++parts_added_;
    judge(result, source, key & kKeyMask, hits, now_ns);
    return result;
  }

  void expire(std::uint64_t now_ns) {
    table.commit(tally_);
    if (!table.expire_due(now_ns)) {
      for (const auto& [key, event] : open_) require(!over(event, now_ns), "an event is over and expire() is not due");
      return;
    }
    close([&](Share share, PartTally& tally) { table.expire(now_ns, share, tally); });
  }
  void drain(std::uint64_t now_ns) {
    table.commit(tally_);
    close([&](Share share, PartTally& tally) { table.drain(now_ns, share, tally); });
    require(open_.empty(), "drain() or flush() left an event open");
  }
  void flush() {
    table.commit(tally_);
    close([&](Share share, PartTally& tally) { table.flush(share, tally); });
    closed_.clear();
    require(open_.empty(), "drain() or flush() left an event open");
  }

  // Ends the round: judges, takes and releases what is ready.
  void finish_round(std::uint64_t now_ns) {
    table.commit(tally_);
    for (std::uint32_t i = 0; i < table.ready_count(); ++i) take(table.ready(i), now_ns);
    require(completed_.empty(), "a complete event was not delivered");
    require(table.open_count() == open_.size(), "number of open events");
    for (std::uint32_t worker = 0; worker < worker_count_; ++worker) table.release_ready(now_ns, {worker, worker_count_});
    table.finish_round();
    expect_books();
  }

  // After finish_round().
  void expect_books() {
    const MergerStats s = table.stats();
    require(parts_added_ == s.parts_merged + s.parts_late + s.parts_duplicate + s.parts_no_room, "books of parts");
    require(s.events_opened == s.events_complete + s.events_missing_parts + s.events_overflow + table.open_count(),
            "books of events");
    require(s.events_opened == delivered.size() + open_.size(), "delivered exactly once");
    const auto closed_by = [&](CloseReason reason) { return delivered_by_[static_cast<std::size_t>(reason)]; };
    require(s.events_complete == closed_by(CloseReason::complete), "events_complete");
    require(s.events_overflow == closed_by(CloseReason::overflow), "events_overflow");
  }

  // Empty, or what went wrong first.
  const std::string& failure() const { return failure_; }

 private:
  MergerConfig config_;
  PartTableRoom room_;

 public:
  HostPartTable table;
  std::vector<WatchedEvent> delivered;

 private:
  void require(bool holds, const char* what) {
    if (!holds && failure_.empty()) failure_ = std::string(what) + " (part " + std::to_string(parts_added_) + ")";
  }

  bool over(const WatchedEvent& event, std::uint64_t now_ns) const { return now_ns - event.first_part_ns >= config_.window_ns; }

  void judge(PartResult result, std::uint32_t source, std::uint64_t key, const std::vector<std::uint16_t>& hits,
             std::uint64_t now_ns) {
    const std::uint32_t bit = 1u << source;
    const auto open = open_.find(key);
    if (open != open_.end()) {
      const bool here = (open->second.parts_mask & bit) != 0;
      if (here) return require(result == PartResult::duplicate, "a second part of a source is no duplicate");
      return merge(result, open->second, bit, hits);
    }
    const auto closed = closed_.find(key);
    const bool lapsed = closed != closed_.end() && closed->second.cleared &&
                        (now_ns >> kTickShift) - closed->second.closed_tick > kMemoryTicks;
    if (result == PartResult::late || result == PartResult::duplicate) {
      require(closed != closed_.end() && !lapsed, "late or duplicate, but its event is not closed or long ago");
      if (closed == closed_.end()) return;
      const bool here = (closed->second.parts_mask & bit) != 0;
      return require(here == (result == PartResult::duplicate), "late is taken for duplicate, or the other way round");
    }
    if (result == PartResult::no_room) {
      return require(open_.size() + in_ready_list_ >= kWays, "no room although no bucket can be full");
    }
    if (closed != closed_.end() && !lapsed) {
      require(closed->second.cleared, "an event is forgotten before it is cleared");
      require(opened_ - closed->second.number >= kWays || open_.size() + in_ready_list_ > 0, "forgotten too early");
      closed_.erase(closed);
    }
    WatchedEvent event;
    event.key = key;
    event.first_part_ns = now_ns;
    event.number = opened_++;
    merge(result, open_[key] = event, bit, hits);
  }

  void merge(PartResult result, WatchedEvent& event, std::uint32_t bit, const std::vector<std::uint16_t>& hits) {
    const std::size_t kept = std::min<std::size_t>(hits.size(), config_.hits_max - event.hits.size());
    require(result == (kept < hits.size() ? PartResult::merged_cut : PartResult::merged), "result of a part that fits");
    event.hits.insert(event.hits.end(), hits.begin(), hits.begin() + static_cast<std::ptrdiff_t>(kept));
    event.hits_cut += hits.size() - kept;
    event.parts_mask |= bit;
    if (event.parts_mask != (1u << config_.source_count) - 1) return;
    ++in_ready_list_;
    event.closed_by = CloseReason::complete;
    completed_.emplace(event.key, event);
    closed_[event.key] = {event.parts_mask, 0, event.number, false};
    open_.erase(event.key);
  }

  template <class Close>
  void close(Close close_share) {
    const std::uint32_t ready_before = table.ready_count();
    std::vector<PartTally> tallies(worker_count_);
    for (std::uint32_t worker = worker_count_; worker-- > 0;) close_share(Share{worker, worker_count_}, tallies[worker]);
    for (PartTally& tally : tallies) table.commit(tally);
    // What it closed is in the ready list; it can be found there already as late.
    for (std::uint32_t i = ready_before; i < table.ready_count(); ++i) {
      const TableEvent& event = table.ready(i);
      const auto open = open_.find(event.key);
      require(open != open_.end(), "an event is closed that was not open");
      if (open == open_.end()) continue;
      open->second.closed_by = event.closed_by;
      ++in_ready_list_;
      completed_.emplace(event.key, open->second);
      closed_[event.key] = {open->second.parts_mask, 0, open->second.number, false};
      open_.erase(open);
    }
  }

  void take(const TableEvent& event, std::uint64_t now_ns) {
    const auto [begin, end] = completed_.equal_range(event.key);
    const auto found = std::find_if(begin, end, [&](const auto& entry) {
      const WatchedEvent& should = entry.second;
      return event.first_part_ns == should.first_part_ns && event.parts_mask == should.parts_mask &&
             event.closed_by == should.closed_by && event.hits_cut == should.hits_cut &&
             std::equal(event.hits, event.hits + event.hit_count, should.hits.begin(), should.hits.end());
    });
    if (found == end) return require(false, "an event is delivered that was not made");
    if (event.closed_by == CloseReason::window) require(over(found->second, now_ns), "closed by window before it was over");
    delivered.push_back(found->second);
    ++delivered_by_[static_cast<std::size_t>(event.closed_by)];
    completed_.erase(found);
    --in_ready_list_;
    const auto closed = closed_.find(event.key);
    if (closed == closed_.end()) return;
    closed->second.closed_tick = now_ns >> kTickShift;
    closed->second.cleared = true;
  }

  struct Closed {
    std::uint32_t parts_mask;
    std::uint64_t closed_tick;
    std::uint64_t number;  // of all opened
    bool cleared;
  };

  std::uint32_t worker_count_;
  PartTally tally_;
  std::uint64_t parts_added_ = 0;
  std::uint64_t opened_ = 0;
  std::size_t in_ready_list_ = 0;
  std::array<std::uint64_t, 5> delivered_by_{};
  std::map<std::uint64_t, WatchedEvent> open_;
  std::multimap<std::uint64_t, WatchedEvent> completed_;  // closed and not yet taken
  std::map<std::uint64_t, Closed> closed_;
  std::string failure_;
};

}  // namespace nanet::event
