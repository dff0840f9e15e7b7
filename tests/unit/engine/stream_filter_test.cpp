// SPDX-License-Identifier: Apache-2.0
// The list of accepted streams beside a walk through it, however its ranges lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "nanet/engine/stream_merge.hpp"

namespace nanet::engine {
namespace {

TEST(StreamFilter, AcceptsWhatIsInARange) {
  std::mt19937_64 random(5);
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<StreamRangeConfig> ranges(random() % 65);
    for (StreamRangeConfig& range : ranges) {
      range.first = random() % 400;
      range.last = range.first + random() % 8;
    }
    if (turn % 50 == 49) ranges.push_back({.first = UINT64_MAX - 3, .last = UINT64_MAX});
    StreamFilter filter(ranges);
    for (int k = 0; k < 500; ++k) {
      const std::uint64_t stream = k % 10 == 0 ? UINT64_MAX - random() % 6 : random() % 420;
      const bool accepted = ranges.empty() || std::any_of(ranges.begin(), ranges.end(), [&](const StreamRangeConfig& range) {
                              return range.first <= stream && stream <= range.last;
                            });
      ASSERT_EQ(filter.refuses(stream), !accepted) << "stream " << stream << " of " << ranges.size() << " ranges";
    }
  }
}

}  // namespace
}  // namespace nanet::engine
