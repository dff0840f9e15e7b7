// SPDX-License-Identifier: Apache-2.0
// When packets are due, in virtual time.
#include "link/pace.hpp"

#include <gtest/gtest.h>

#include "nanet/setup_error.hpp"

namespace nanet::link::test {
namespace {

constexpr std::uint64_t kStart = 1'000'000;

TEST(Pace, OriginalKeepsGapsOverLaps) {
  Pace pace(ReplayPace::original, 0);
  pace.start(kStart);
  EXPECT_EQ(pace.lap_packets(), 0u);
  for (std::uint64_t lap = 0; lap < 3; ++lap) {
    const std::uint64_t begin = kStart + lap * 450;  // 300 ns, and a mean gap of 150
    EXPECT_EQ(pace.due_ns(77'000, 16), begin);
    EXPECT_EQ(pace.due_ns(77'300, 16), begin + 300);
    EXPECT_EQ(pace.due_ns(77'200, 16), begin + 300);  // recorded before its predecessor: with it
    EXPECT_EQ(pace.lap_packets(), 3u);
    pace.next_lap();
  }
}

TEST(Pace, PacketsAndEventsComeAtTheirRate) {
  Pace packets(ReplayPace::packets, 3e6);
  Pace events(ReplayPace::events, 16e6);
  packets.start(kStart);
  events.start(kStart);
  for (std::uint64_t p = 0; p < 3000; ++p) {
    EXPECT_EQ(packets.due_ns(0, 0), kStart + (1000 * p + 1) / 3);  // rounded to the nearest
    EXPECT_EQ(events.due_ns(0, 16), kStart + 1000 * p);            // the events before it
    if (p % 100 == 99) {
      packets.next_lap();
      events.next_lap();
    }
  }
  EXPECT_EQ(events.due_ns(0, 0), events.due_ns(0, 0));  // markers take no time
}

TEST(Pace, MaximumIsAlwaysDue) {
  Pace pace(ReplayPace::maximum, 0);
  pace.start(kStart);
  EXPECT_EQ(pace.due_ns(1, 1), 0u);
  EXPECT_EQ(pace.due_ns(1ull << 62, 1), 0u);
}

TEST(Pace, RatesThatCannotBeThrow) {
  for (const double rate : {0.0, -1.0, 1.1e9}) {
    EXPECT_THROW(Pace(ReplayPace::packets, rate), SetupError);
    EXPECT_THROW(Pace(ReplayPace::events, rate), SetupError);
    EXPECT_NO_THROW(Pace(ReplayPace::original, rate));
  }
}

}  // namespace
}  // namespace nanet::link::test
