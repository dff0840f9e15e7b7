// SPDX-License-Identifier: Apache-2.0
// Sets of channels, the hits that are left after those of a set are left out (the mask), and which channels fire too often or hardly ever.
//
// Terms
//   hits of a channel  how often it fired in some number of events, in an array of kChannelCount.
//   neighbours         the up to 18 PMs within two rows of a PM, on its disk. What light and beam do to it they do to them too, so the
//                      median of their hits is what it should have; a median, because a neighbour may be as bad.
//   hot                fires more than kHotFactor times as often as the median of its neighbours, and twice as often as the mean of its disk;
//                      by more than chance can explain: kSigmas of a Poisson distribution and kHotHits more.
//   dead               has at most kDeadShare of the median of its neighbours, which is at least kDeadHits and kLitShare of the mean of the
//                      disk: where there is hardly any light, at the edge, two neighbours may differ much.
// A PM with fewer than kNeighboursMin neighbours is not judged, nor is a channel without a PM.
// Thread rules: pure functions; no allocation, no exception.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nanet/host_device.hpp"
#include "nanet/rich/pm_map.hpp"
#include "nanet/rich/ring.hpp"

namespace nanet::rich {

struct ChannelSet {
  std::uint32_t words[kChannelCount / 32] = {};

  // Of a hit word too: the time is not looked at.
  NANET_HD constexpr bool has(std::uint32_t channel) const {
    const std::uint32_t place = channel & kChannelMask;
    return (words[place / 32] >> place % 32 & 1u) != 0;
  }
  constexpr void add(std::uint32_t channel) { words[(channel & kChannelMask) / 32] |= 1u << channel % 32; }
  constexpr std::uint32_t size() const {
    std::uint32_t count = 0;
    for (const std::uint32_t word : words) count += static_cast<std::uint32_t>(std::popcount(word));
    return count;
  }
  constexpr bool empty() const { return size() == 0; }
  friend constexpr bool operator==(const ChannelSet&, const ChannelSet&) = default;
};

// The hits of `event` whose channels are not in `mask`: all of them are counted, the first kMaxHits written to `room`, which may be where
// the event's hits are.
NANET_HD inline event::Event without_masked(event::Event event, const ChannelSet& mask, std::uint16_t* room) {
  std::uint32_t kept = 0;
  for (std::uint32_t k = 0; k < event.count; ++k) {
    const std::uint16_t hit = event.hits[k];
    if (mask.has(hit)) continue;
    if (kept < kMaxHits) room[kept] = hit;
    ++kept;
  }
  event.hits = room;
  event.count = kept;
  return event;
}

inline constexpr double kHotFactor = 4.0;
inline constexpr double kSigmas = 6.0;
inline constexpr std::uint64_t kHotHits = 25;
inline constexpr double kDeadShare = 0.02;
inline constexpr std::uint64_t kDeadHits = 100;
inline constexpr double kLitShare = 0.1;
inline constexpr std::uint32_t kNeighboursMin = 5;

using ChannelHits = std::span<const std::uint64_t, kChannelCount>;

ChannelSet hot_channels(ChannelHits hits);
ChannelSet dead_channels(ChannelHits hits);

}  // namespace nanet::rich
