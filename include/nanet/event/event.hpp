// SPDX-License-Identifier: Apache-2.0
// Event: what a detector saw at one time. The host's one event type: event building makes them, sinks take them, finders look at their hits.
#pragma once

#include <cstdint>

namespace nanet::event {

struct Event {
  const std::uint16_t* hits = nullptr;  // bits 10..0 channel, bits 15..11 time (signed, 2/256 of a timestamp unit)
  std::uint32_t count = 0;              // of hits
  std::uint32_t timestamp = 0;          // 24.951059536 ns
  std::uint8_t fine_time = 0;           // 1/256 of it
};

}  // namespace nanet::event
