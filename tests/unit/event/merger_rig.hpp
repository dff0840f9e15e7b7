// SPDX-License-Identifier: Apache-2.0
// A merger in virtual time, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "nanet/event/merger.hpp"

namespace nanet::event {

inline constexpr std::uint64_t kSecond_ns = 1'000'000'000;

// A merger and a tally of what came out of it.
struct Rig {
  explicit Rig(const MergerConfig& config) : merger(config) {}

  PartResult add(std::uint32_t source, std::uint64_t key, const std::vector<std::uint16_t>& hits = {1}) {
    return merger.add_part(source, key, hits.data(), static_cast<std::uint32_t>(hits.size()), now_ns);
  }

  // All parts of `count` events whose keys start at `first`, `step` apart, from the sources in turn.
  void add_complete(std::uint64_t first, std::uint32_t count, std::uint64_t step, std::uint32_t source_count) {
    for (std::uint32_t source = 0; source < source_count; ++source) {
      for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(add(source, first + i * step), PartResult::merged);
    }
    take();
  }

  void take() {
    for (const MergedEvent* event : merger.ready()) delivered.push_back(*event);
    merger.clear_ready();
  }

  void expect_books() {
    const MergerStats& s = merger.stats();
    EXPECT_EQ(s.events_opened, s.events_complete + s.events_missing_parts + s.events_overflow + merger.open_count());
  }

  std::uint64_t now_ns = kSecond_ns;
  Merger merger;
  std::vector<MergedEvent> delivered;
};

}  // namespace nanet::event
