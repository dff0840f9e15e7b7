// SPDX-License-Identifier: Apache-2.0
// StreamMerge: units with one number from several streams, such as the modules of a detector, as one unit: the part of stream k of the list lies at
// k * part_bytes. A mapping of what packets say, before the assembler, for which there is one stream then.
//
// Thread rules: one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "nanet/engine/unit_facts.hpp"
#include "nanet/flow/counters.hpp"

namespace nanet::engine {

class StreamMerge {
 public:
  // streams: by their keys; none: packets stay as they are.
  StreamMerge(std::vector<std::uint64_t> streams, std::uint64_t part_bytes)
      : streams_(std::move(streams)), part_bytes_(part_bytes) {}

  // Null, or what a packet is refused as.
  std::optional<flow::Counter> map(UnitFacts& facts) {
    if (streams_.empty()) return std::nullopt;
    if (streams_[last_] != facts.stream) {
      const auto found = std::find(streams_.begin(), streams_.end(), facts.stream);
      if (found == streams_.end()) return flow::Counter::packets_no_stream;
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
    return std::nullopt;
  }

 private:
  const std::vector<std::uint64_t> streams_;
  const std::uint64_t part_bytes_;
  std::size_t last_ = 0;
};

}  // namespace nanet::engine
