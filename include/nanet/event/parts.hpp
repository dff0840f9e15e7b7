// SPDX-License-Identifier: Apache-2.0
// What all event builders share: keys, limits, configuration, results and books. Terms are defined in merger.hpp.
#pragma once

#include <cstdint>

#include "nanet/host_device.hpp"

namespace nanet::event {

inline constexpr std::uint32_t kSourcesMax = 8;
inline constexpr std::uint32_t kHitsMax = 128;
inline constexpr std::uint64_t kKeyMask = (std::uint64_t{1} << 40) - 1;

// The memory's clock ticks every 2^26 ns (67 ms); a closed event is remembered for 16 ticks (1.1 s) at most.
inline constexpr std::uint32_t kTickShift = 26;
inline constexpr std::uint32_t kMemoryTicks = 16;

NANET_HD constexpr std::uint64_t event_key(std::uint32_t timestamp, std::uint8_t fine_time) {
  return std::uint64_t{timestamp} << 8 | fine_time;
}
NANET_HD constexpr std::uint32_t key_timestamp(std::uint64_t key) { return static_cast<std::uint32_t>(key >> 8); }
// Whether a comes after b on the circle of 2^40 keys. A key just half of it away comes before, as in wire::tick_difference().
NANET_HD constexpr bool key_after(std::uint64_t a, std::uint64_t b) { return ((b - a) & kKeyMask) > std::uint64_t{1} << 39; }
NANET_HD constexpr std::uint8_t key_fine_time(std::uint64_t key) { return static_cast<std::uint8_t>(key); }

struct MergerConfig {
  std::uint32_t source_count = 4;  // 1..8; an event is complete with a part from each
  std::uint64_t window_ns = 200'000;  // 1 us..10 s. Too small: slow sources miss their events; too big: a lost part delays its event's answer
  std::uint32_t open_events_max = 8192;  // power of two, 1..2^20. Too small: overflow; too big: leaves the cache
  std::uint32_t hits_max = kHitsMax;     // 1..128 hits kept for an event
};

// Throws SetupError if a value is out of its limits.
void check(const MergerConfig& config);

enum class CloseReason : std::uint8_t { open = 0, complete = 1, window = 2, overflow = 3, flush = 4 };
enum class PartResult : std::uint8_t { merged, merged_cut, late, duplicate, no_room };

// Totals since the start.
struct MergerStats {
  std::uint64_t parts_merged = 0;
  std::uint64_t parts_late = 0;           // their event is closed, or too old to be remembered
  std::uint64_t parts_duplicate = 0;      // this source's part is in, whether the event is open or closed
  std::uint64_t parts_no_room = 0;        // no place for another event
  std::uint64_t parts_overflow_hits = 0;  // of parts_merged: hits were cut
  std::uint64_t events_opened = 0;
  std::uint64_t events_complete = 0;
  std::uint64_t events_missing_parts = 0;  // closed by window, drain or flush
  std::uint64_t events_overflow = 0;
};

}  // namespace nanet::event
