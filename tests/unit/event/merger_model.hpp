// SPDX-License-Identifier: Apache-2.0
// What Merger should do, written a second time with maps and vectors and without a thought for speed. Tests and the
// fuzz target give both the same calls and compare every answer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nanet/event/merger.hpp"

namespace nanet::event {

// a - b on the circle of 2^40 keys, as a number of -2^39 .. 2^39 - 1.
inline std::int64_t key_distance(std::uint64_t a, std::uint64_t b) {
  constexpr std::int64_t circle = std::int64_t{1} << 40;
  const std::int64_t distance = (static_cast<std::int64_t>(a) - static_cast<std::int64_t>(b) + circle) % circle;
  return distance >= circle / 2 ? distance - circle : distance;
}

struct ModelEvent {
  std::uint64_t key = 0;
  std::uint64_t first_part_ns = 0;
  std::set<std::uint32_t> sources;
  std::vector<std::uint16_t> hits;
  std::uint64_t hits_cut = 0;
  CloseReason closed_by = CloseReason::open;
  std::uint64_t closed_tick = 0;
};

class MergerModel {
 public:
  explicit MergerModel(const MergerConfig& config) : config_(config) {}

  PartResult add_part(std::uint32_t source, std::uint64_t key, const std::vector<std::uint16_t>& hits, std::uint64_t now_ns) {
    key %= std::uint64_t{1} << 40;
    const std::uint64_t tick = now_ns / 67'108'864;
    auto known = newest_.find(key);
    const bool closed = known != newest_.end() && event(known->second).closed_by != CloseReason::open;
    if (closed && tick - event(known->second).closed_tick <= 16) {
      const bool here = event(known->second).sources.count(source) != 0;
      ++(here ? stats.parts_duplicate : stats.parts_late);
      return here ? PartResult::duplicate : PartResult::late;
    }
    if (known == newest_.end() || closed) {
      if (horizon_ && tick - horizon_tick_ <= 16 && key_distance(key, *horizon_) <= 0) {
        ++stats.parts_late;
        return PartResult::late;
      }
      const std::size_t room = config_.open_events_max + std::max<std::size_t>(config_.open_events_max, 256);
      if (open_.size() + ready.size() == room) {
        ++stats.parts_no_room;
        return PartResult::no_room;
      }
      open_event(key, now_ns, tick);
    }
    return merge(newest_.at(key), source, hits, tick);
  }

  void expire(std::uint64_t now_ns) {
    while (!open_.empty() && event(*open_.begin()).first_part_ns + config_.window_ns <= now_ns) {
      close(*open_.begin(), CloseReason::window, now_ns / 67'108'864);
    }
  }

  void drain(std::uint64_t now_ns) {
    while (!open_.empty()) close(*open_.begin(), CloseReason::flush, now_ns / 67'108'864);
  }

  void flush() {
    drain(0);
    first_number_ += events_.size();
    events_.clear();
    newest_.clear();
    horizon_.reset();
    run_length_ = 0;
  }

  std::size_t open_count() const { return open_.size(); }

  // Empty, or what differs between the ready events and statistics of the two.
  std::string difference(const Merger& merger) const {
    if (const std::string counts = difference_of_counts(merger); !counts.empty()) return counts;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      const MergedEvent& is = *merger.ready()[i];
      const ModelEvent& should = ready[i];
      unsigned mask = 0;
      for (const auto source : should.sources) mask |= 1u << source;
      if (is.key != should.key) return "key of ready event " + std::to_string(i);
      if (is.first_part_ns != should.first_part_ns) return "first_part_ns of ready event " + std::to_string(i);
      if (is.parts_mask != mask) return "parts_mask of ready event " + std::to_string(i);
      if (is.closed_by != should.closed_by) return "closed_by of ready event " + std::to_string(i);
      if (is.hits_cut != std::min<std::uint64_t>(should.hits_cut, 65535)) return "hits_cut of ready event " + std::to_string(i);
      const auto hits = is.hit_span();
      if (!std::equal(hits.begin(), hits.end(), should.hits.begin(), should.hits.end())) {
        return "hits of ready event " + std::to_string(i);
      }
    }
    return "";
  }

  // The same of all but the contents of ready events: quick.
  std::string difference_of_counts(const Merger& merger) const {
    if (merger.open_count() != open_.size()) return "open_count";
    if (merger.ready().size() != ready.size()) return "number of ready events";
    const MergerStats& is = merger.stats();
    if (is.parts_merged != stats.parts_merged) return "parts_merged";
    if (is.parts_late != stats.parts_late) return "parts_late";
    if (is.parts_duplicate != stats.parts_duplicate) return "parts_duplicate";
    if (is.parts_no_room != stats.parts_no_room) return "parts_no_room";
    if (is.parts_overflow_hits != stats.parts_overflow_hits) return "parts_overflow_hits";
    if (is.events_opened != stats.events_opened) return "events_opened";
    if (is.events_complete != stats.events_complete) return "events_complete";
    if (is.events_missing_parts != stats.events_missing_parts) return "events_missing_parts";
    if (is.events_overflow != stats.events_overflow) return "events_overflow";
    return "";
  }

  std::vector<ModelEvent> ready;
  MergerStats stats;

 private:
  ModelEvent& event(std::uint64_t number) { return events_.at(number - first_number_); }

  void open_event(std::uint64_t key, std::uint64_t now_ns, std::uint64_t tick) {
    const std::size_t memory = std::max<std::size_t>(2 * config_.open_events_max, 1024);
    if (events_.size() == memory) {
      for (int i = 0; i < 64; ++i) forget_oldest(tick);
    }
    if (open_.size() == config_.open_events_max) close(*open_.begin(), CloseReason::overflow, tick);
    const std::uint64_t number = first_number_ + events_.size();
    events_.push_back({});
    events_.back().key = key;
    events_.back().first_part_ns = now_ns;
    newest_[key] = number;
    open_.insert(number);
    ++stats.events_opened;
  }

  void forget_oldest(std::uint64_t tick) {
    if (open_.count(first_number_) != 0) close(first_number_, CloseReason::overflow, tick);
    const ModelEvent oldest = events_.front();  // closed by now
    const std::int64_t step = key_distance(oldest.key, last_forgotten_key_);
    run_length_ = step >= -(1 << 30) && step < 1 << 30 ? run_length_ + 1 : 0;
    last_forgotten_key_ = oldest.key;
    const bool trusted = oldest.sources.size() >= 2 || run_length_ >= 512;
    if (trusted && tick - oldest.closed_tick <= 16) {
      const bool has_horizon = horizon_ && tick - horizon_tick_ <= 16;
      if (!has_horizon || key_distance(oldest.key, *horizon_) > 0) {
        horizon_ = oldest.key;
        horizon_tick_ = oldest.closed_tick;
      }
    }
    if (newest_.at(oldest.key) == first_number_) newest_.erase(oldest.key);
    events_.pop_front();
    ++first_number_;
  }

  PartResult merge(std::uint64_t number, std::uint32_t source, const std::vector<std::uint16_t>& hits, std::uint64_t tick) {
    ModelEvent& target = event(number);
    if (!target.sources.insert(source).second) {
      ++stats.parts_duplicate;
      return PartResult::duplicate;
    }
    ++stats.parts_merged;
    const std::size_t kept = std::min<std::size_t>(hits.size(), config_.hits_max - target.hits.size());
    target.hits.insert(target.hits.end(), hits.begin(), hits.begin() + static_cast<std::ptrdiff_t>(kept));
    target.hits_cut += hits.size() - kept;
    if (kept < hits.size()) ++stats.parts_overflow_hits;
    if (target.sources.size() == config_.source_count) close(number, CloseReason::complete, tick);
    return kept < hits.size() ? PartResult::merged_cut : PartResult::merged;
  }

  void close(std::uint64_t number, CloseReason reason, std::uint64_t tick) {
    ModelEvent& closed = event(number);
    closed.closed_by = reason;
    closed.closed_tick = tick;
    if (reason == CloseReason::complete) {
      ++stats.events_complete;
    } else if (reason == CloseReason::overflow) {
      ++stats.events_overflow;
    } else {
      ++stats.events_missing_parts;
    }
    ready.push_back(closed);
    open_.erase(number);
  }

  MergerConfig config_;
  std::deque<ModelEvent> events_;                  // all that are remembered, in order of opening
  std::uint64_t first_number_ = 0;                 // of events_.front()
  std::map<std::uint64_t, std::uint64_t> newest_;  // key -> number of the newest remembered event with it
  std::set<std::uint64_t> open_;
  std::optional<std::uint64_t> horizon_;
  std::uint64_t horizon_tick_ = 0;
  std::uint64_t last_forgotten_key_ = 0;
  std::uint64_t run_length_ = 0;
};

}  // namespace nanet::event
