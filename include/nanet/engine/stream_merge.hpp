// SPDX-License-Identifier: Apache-2.0
// StreamFilter: which streams a configuration accepts. What it refuses costs neither a place in the table of streams nor a buffer.
// StreamMerge: units of several streams, such as the modules of a detector, as one unit: the part of stream k of the list lies at k * part_bytes. Parts
// of one unit have the same number, or the same time. A mapping of what packets say, before the assembler, for which there is one stream then.
//
// Thread rules: one thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "nanet/config/setting.hpp"
#include "nanet/engine/config.hpp"
#include "nanet/engine/unit_facts.hpp"
#include "nanet/flow/counters.hpp"

namespace nanet::engine {

class StreamFilter {
 public:
  // ranges: in any order, they may overlap; none, and every stream is accepted.
  explicit StreamFilter(std::vector<StreamRangeConfig> ranges) {
    std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const StreamRangeConfig& range : ranges) {
      if (!ranges_.empty() && range.first <= ranges_.back().last) {
        ranges_.back().last = std::max(ranges_.back().last, range.last);
      } else {
        ranges_.push_back(range);
      }
    }
    // To a power of two, so that the search has no branch that depends on the stream.
    if (!ranges_.empty()) ranges_.resize(std::bit_ceil(ranges_.size()), ranges_.back());
  }

  bool refuses(std::uint64_t stream) {
    if (ranges_.empty() || has(ranges_[last_], stream)) return false;
    std::size_t at = 0;  // the last one that begins at or before the stream
    for (std::size_t step = ranges_.size() / 2; step > 0; step /= 2) at += ranges_[at + step].first <= stream ? step : 0;
    if (!has(ranges_[at], stream)) return true;
    last_ = at;
    return false;
  }

 private:
  static bool has(const StreamRangeConfig& range, std::uint64_t stream) { return range.first <= stream && stream <= range.last; }

  std::vector<StreamRangeConfig> ranges_;  // ascending, and apart
  std::size_t last_ = 0;
};

// Times that belong together: a packet's unit is known by the time of the packet that was the first to say one no further away than the tolerance.
class TimeGroups {
 public:
  explicit TimeGroups(std::uint64_t tolerance) : tolerance_(tolerance) {}

  std::uint64_t group_of(std::uint64_t time) {
    if (tolerance_ == 0) return time;
    if (count_ > 0 && fits(firsts_[last_], time)) return firsts_[last_];
    for (std::size_t k = 1; k <= std::min(count_, kKept); ++k) {  // the newest first
      const std::size_t i = (count_ - k) % kKept;
      if (!fits(firsts_[i], time)) continue;
      last_ = i;
      return firsts_[i];
    }
    last_ = count_++ % kKept;
    return firsts_[last_] = time;
  }

 private:
  static constexpr std::size_t kKept = 128;  // twice as many as the closed units that the assembler remembers of a stream

  bool fits(std::uint64_t first, std::uint64_t time) const {
    return std::min(time - first, first - time) <= tolerance_;  // of a circle of 2^64
  }

  const std::uint64_t tolerance_;
  std::size_t count_ = 0;
  std::size_t last_ = 0;
  std::array<std::uint64_t, kKept> firsts_{};
};

class StreamMerge {
 public:
  // config: none, and packets stay as they are. Throws SetupError.
  StreamMerge(const std::optional<StreamMergeConfig>& config, const UnitTime& time)
      : streams_(config ? config->streams : std::vector<std::uint64_t>()),
        part_bytes_(config ? config->part_bytes : 0),
        by_time_(config && config->is_by_time(time)),
        times_(by_time_ ? ticks(*config, time) : 0) {}

  // Null, or what a packet is refused as.
  std::optional<flow::Counter> map(UnitFacts& facts) {
    if (streams_.empty()) return std::nullopt;
    if (streams_[last_] != facts.stream) {
      const auto found = std::find(streams_.begin(), streams_.end(), facts.stream);
      if (found == streams_.end()) return flow::Counter::packets_unknown_stream;
      last_ = static_cast<std::size_t>(found - streams_.begin());
    }
    if (facts.unit_bytes != 0 && facts.unit_bytes != part_bytes_) return flow::Counter::packets_bad_unit;
    // A number of packets says nothing of the whole.
    if (facts.place_is_index || facts.place > part_bytes_ || facts.payload_bytes > part_bytes_ - facts.place) {
      return flow::Counter::packets_bad_place;
    }
    facts.stream = 0;
    facts.place += last_ * part_bytes_;
    facts.unit_bytes = streams_.size() * part_bytes_;
    facts.unit_packets = 0;
    facts.ends_unit = false;
    if (by_time_) facts.unit = times_.group_of(facts.time);
    return std::nullopt;
  }

 private:
  static std::uint64_t ticks(const StreamMergeConfig& config, const UnitTime& time) {
    config::refuse_broken(config.check(time));
    return static_cast<std::uint64_t>(std::floor(static_cast<double>(config.tolerance_ns) / time.tick_ns));
  }

  const std::vector<std::uint64_t> streams_;
  const std::uint64_t part_bytes_;
  const bool by_time_;
  TimeGroups times_;
  std::size_t last_ = 0;
};

}  // namespace nanet::engine
