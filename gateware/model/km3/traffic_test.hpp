// SPDX-License-Identifier: Apache-2.0
// What a link carries with every slot full, and whether time and express codes come as late then as on an idle link.
#pragma once

#include <cstdint>

#include "model/km3/loop.hpp"

namespace nanet::gateware::km3 {

struct TrafficResult {
  std::uint32_t line_mbps = 0, frame_words = 0;
  std::uint64_t frames = 0;     // on the idle link, and as many on the busy one
  double payload_fraction = 0;  // words of slots, of all that the line has symbols for; of the busy link
  Seen seen;                    // of both
  bool up = false;

  // The most of frames' and codes' latencies down and up: 1 if all are the same on the idle and on the busy link.
  std::size_t latency_values() const;
  std::uint64_t wrong() const;  // words, codes and times that are not what was sent, frames that were dropped or lost
};

TrafficResult traffic_test(const Settings& settings, std::uint64_t frames);

}  // namespace nanet::gateware::km3
