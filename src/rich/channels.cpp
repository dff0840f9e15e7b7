// SPDX-License-Identifier: Apache-2.0
#include "nanet/rich/channels.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace nanet::rich {
namespace {

constexpr std::size_t kChannelsPerDisk = kChannelCount / 2;

// Within 36 mm.
constexpr std::array<std::array<int, 2>, 18> kNeighbours{{{2, 0},
                                                          {-2, 0},
                                                          {1, 1},
                                                          {1, -1},
                                                          {-1, 1},
                                                          {-1, -1},
                                                          {4, 0},
                                                          {-4, 0},
                                                          {3, 1},
                                                          {3, -1},
                                                          {-3, 1},
                                                          {-3, -1},
                                                          {0, 2},
                                                          {0, -2},
                                                          {2, 2},
                                                          {2, -2},
                                                          {-2, 2},
                                                          {-2, -2}}};

// Median of the hits of the neighbours; false where there are too few of them.
bool median_of_neighbours(ChannelHits hits, std::size_t channel, std::uint64_t& median) {
  const Pm& pm = kPmMap[channel];
  std::array<std::uint64_t, kNeighbours.size()> near;
  std::size_t count = 0;
  for (const auto& [di, dj] : kNeighbours) {
    const std::uint16_t other = channel_at(pm.i + di, pm.j + dj, pm.disk);
    if (other != kNoChannel) near[count++] = hits[other];
  }
  if (count < kNeighboursMin) return false;
  std::nth_element(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count / 2),
                   near.begin() + static_cast<std::ptrdiff_t>(count));
  median = near[count / 2];
  return true;
}

// Hits of a PM of the disk whose channels begin at `first`.
double mean_of_disk(ChannelHits hits, std::size_t first) {
  std::uint64_t sum = 0;
  for (std::size_t c = first; c < first + kChannelsPerDisk; ++c) sum += kPmMap[c].mapped ? hits[c] : 0;
  return static_cast<double>(sum) / kPmsPerDisk;
}

bool is_hot(std::uint64_t hits, std::uint64_t median) {
  const double expected = kHotFactor * static_cast<double>(median);
  return static_cast<double>(hits) > expected + kSigmas * std::sqrt(expected) + static_cast<double>(kHotHits);
}

}  // namespace

ChannelSet hot_channels(ChannelHits hits) {
  ChannelSet hot;
  for (std::size_t first = 0; first < kChannelCount; first += kChannelsPerDisk) {
    // Few get past this, so the neighbours of few are looked at.
    const auto least = std::max(static_cast<double>(kHotHits), 2.0 * mean_of_disk(hits, first));
    for (std::size_t c = first; c < first + kChannelsPerDisk; ++c) {
      if (static_cast<double>(hits[c]) <= least || !kPmMap[c].mapped) continue;
      std::uint64_t median = 0;
      if (median_of_neighbours(hits, c, median) && is_hot(hits[c], median)) hot.add(static_cast<std::uint32_t>(c));
    }
  }
  return hot;
}

ChannelSet dead_channels(ChannelHits hits) {
  ChannelSet dead;
  for (std::size_t first = 0; first < kChannelCount; first += kChannelsPerDisk) {
    const double least = std::max(static_cast<double>(kDeadHits), kLitShare * mean_of_disk(hits, first));
    for (std::size_t c = first; c < first + kChannelsPerDisk; ++c) {
      std::uint64_t median = 0;
      if (!kPmMap[c].mapped || !median_of_neighbours(hits, c, median)) continue;
      const auto expected = static_cast<double>(median);
      if (expected >= least && static_cast<double>(hits[c]) <= kDeadShare * expected) dead.add(static_cast<std::uint32_t>(c));
    }
  }
  return dead;
}

}  // namespace nanet::rich
