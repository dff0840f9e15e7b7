// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/counters.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace nanet::flow {
namespace {

TEST(Counters, TableIsCompleteAndNamesAreUnique) {
  std::set<std::string_view> names;
  for (const CounterInfo& info : kCounterTable) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.unit.empty()) << info.name;
    EXPECT_FALSE(info.help.empty()) << info.name;
  }
  EXPECT_EQ(kCounterTable[static_cast<std::size_t>(Counter::packets_accepted)].name, "packets_accepted");
  EXPECT_EQ(kCounterTable[static_cast<std::size_t>(Counter::rings_electron)].name, "rings_electron");
}

TEST(Counters, AddAndSet) {
  Counters counters;
  EXPECT_EQ(counters.value(Counter::packets_late), 0u);
  counters.add(Counter::packets_late);
  counters.add(Counter::packets_late, 5);
  EXPECT_EQ(counters.value(Counter::packets_late), 6u);
  counters.set(Counter::packets_late, 2);
  EXPECT_EQ(counters.value(Counter::packets_late), 2u);
  EXPECT_EQ(counters.value(Counter::packets_duplicate), 0u);
}

TEST(Counters, AnotherThreadReadsWhileOneWrites) {
  Counters counters;
  std::thread writer([&] {
    for (int k = 0; k < 100'000; ++k) counters.add(Counter::events_answered);
  });
  std::uint64_t last = 0;
  while (last < 100'000) {
    const std::uint64_t now = counters.value(Counter::events_answered);
    ASSERT_GE(now, last);
    last = now;
  }
  writer.join();
  EXPECT_EQ(last, 100'000u);
}

}  // namespace
}  // namespace nanet::flow
