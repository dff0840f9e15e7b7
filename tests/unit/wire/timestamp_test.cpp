// SPDX-License-Identifier: Apache-2.0
#include "nanet/wire/timestamp.hpp"

#include <gtest/gtest.h>

#include <random>

namespace nanet::wire {
namespace {

static_assert(ticks(0x01020304, 0x80) == 0x0102030480);
static_assert(timestamp_of(0x0102030480) == 0x01020304 && fine_time_of(0x0102030480) == 0x80);
// 256e9 ticks are 1e9 timestamps of 24.951059536 ns: 24.951059536 s exactly.
static_assert(ns_from_ticks(256'000'000'000) == 24'951'059'536);
static_assert(ticks_from_ns(24'951'059'536) == 256'000'000'000);
static_assert(ns_from_ticks(256) == 25 && ns_from_ticks(0) == 0);

TEST(Timestamp, NoDriftAgainstLongDouble) {
  std::mt19937_64 generator(3);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t tick_count = generator() & kTickMask;
    const long double exact = static_cast<long double>(tick_count) * 24.951059536L / 256;
    ASSERT_LE(std::abs(static_cast<long double>(ns_from_ticks(tick_count)) - exact), 0.5L + 1e-6L) << tick_count;
  }
}

TEST(Timestamp, NanosecondsComeBack) {
  std::mt19937_64 generator(4);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t ns = generator() >> 4 >> generator() % 60;
    ASSERT_EQ(ns_from_ticks(ticks_from_ns(ns)), ns);
  }
}

TEST(Timestamp, DifferencesAcrossTheWrap) {
  EXPECT_EQ(tick_difference(5, 3), 2);
  EXPECT_EQ(tick_difference(3, 5), -2);
  EXPECT_EQ(tick_difference(1, kTickMask), 2);
  EXPECT_EQ(tick_difference(kTickMask, 1), -2);
  EXPECT_EQ(tick_difference(std::uint64_t{1} << 39, 0), -(std::int64_t{1} << 39));
}

}  // namespace
}  // namespace nanet::wire
