// SPDX-License-Identifier: Apache-2.0
// The experiment's clock: timestamps of 24.951059536 ns and fine times of 1/256 of that, against nanoseconds.
//
// A tick is one fine time, 24.951059536 / 256 ns = exactly 1559441221 / 16e9 ns. An instant is a number of ticks:
// timestamp * 256 + fine time, 40 bits on the wire (107 s), up to 64 bits here. All conversions are integer arithmetic on
// 128 bits: nothing drifts, whatever the distance. Nanoseconds -> ticks -> nanoseconds gives back the same number.
#pragma once

#include <cstdint>

#include "nanet/host_device.hpp"

namespace nanet::wire {

inline constexpr double kTimestampNs = 24.951059536;
inline constexpr double kTickNs = kTimestampNs / 256;
inline constexpr std::uint64_t kTickNumerator = 1559441221;     // a tick is this many ...
inline constexpr std::uint64_t kTickDenominator = 16000000000;  // ... of these parts of a nanosecond
inline constexpr std::uint64_t kTickMask = (std::uint64_t{1} << 40) - 1;

NANET_HD constexpr std::uint64_t ticks(std::uint32_t timestamp, std::uint8_t fine_time) {
  return std::uint64_t{timestamp} << 8 | fine_time;
}
NANET_HD constexpr std::uint32_t timestamp_of(std::uint64_t tick_count) { return static_cast<std::uint32_t>(tick_count >> 8); }
NANET_HD constexpr std::uint8_t fine_time_of(std::uint64_t tick_count) { return static_cast<std::uint8_t>(tick_count); }

// later - earlier, both on the wire's 40 bits, in -2^39 .. 2^39 - 1: right across the wrap after 107 s.
NANET_HD constexpr std::int64_t tick_difference(std::uint64_t later, std::uint64_t earlier) {
  return static_cast<std::int64_t>((later - earlier) << 24) >> 24;
}

__extension__ using Wide = unsigned __int128;

// Rounded to the nearest; wrong by at most half a nanosecond.
NANET_HD constexpr std::uint64_t ns_from_ticks(std::uint64_t tick_count) {
  return static_cast<std::uint64_t>((Wide{tick_count} * kTickNumerator + kTickDenominator / 2) / kTickDenominator);
}
// Rounded to the nearest; wrong by at most half a tick (0.049 ns). ns < 2^60.
NANET_HD constexpr std::uint64_t ticks_from_ns(std::uint64_t ns) {
  return static_cast<std::uint64_t>((Wide{ns} * kTickDenominator + kTickNumerator / 2) / kTickNumerator);
}

}  // namespace nanet::wire
