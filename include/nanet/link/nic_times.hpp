// SPDX-License-Identifier: Apache-2.0
// What a NIC says of itself: how long packets took in it (Link::nic_times), in cycles of its own clock, not one of the host's, and what it counted
// (Link::nic_counts). Or how long they took through a kernel that stamps them, in ns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nanet::link {

// Samples of from_cycles to to_cycles, both included.
struct NicTimesBin {
  static constexpr std::uint64_t no_end = ~std::uint64_t{0};

  std::uint64_t from_cycles;
  std::uint64_t to_cycles;  // no_end: everything that took longer is in it too
  std::uint64_t count;
};

// Of one stage, since start.
struct NicStageTimes {
  std::string name;    // letters and underscores
  std::string sample;  // what has one sample: "packet", "buffer"
  std::uint64_t count = 0;
  std::uint64_t min_cycles = 0;  // 0 without samples, as are the next two
  std::uint64_t max_cycles = 0;
  std::uint64_t sum_cycles = 0;
  std::vector<NicTimesBin> bins;  // those with samples, the shortest first
};

struct NicTimes {
  std::string clock;  // whose cycles these are, in words
  double cycle_ns = 0.0;
  std::vector<NicStageTimes> stages;  // in the order a packet passes them
};

// Counters that belong together, by the names of the NIC's registers, since reset.
struct NicCounts {
  std::string name;                   // of the group, such as "rx"
  std::optional<std::uint32_t> port;  // none: of the NIC as a whole
  std::vector<std::pair<std::string, std::uint64_t>> counts;
};

}  // namespace nanet::link
