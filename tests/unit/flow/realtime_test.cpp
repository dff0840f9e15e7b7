// SPDX-License-Identifier: Apache-2.0
#include "flow/realtime.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <iostream>
#include <thread>

#include "../refused_calls.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::flow {
namespace {

constexpr RealtimeGuard kOn{.runtime_us = 950'000, .period_us = 1'000'000, .core_count = 2};

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

std::string refusal(const RealtimeGuard& guard) {
  try {
    check(guard);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

TEST(Realtime, NeedsTheGuard) {
  EXPECT_EQ(refusal(kOn), "");
  for (const std::int64_t runtime_us : {std::int64_t{-1}, kOn.period_us}) {
    RealtimeGuard off = kOn;
    off.runtime_us = runtime_us;
    EXPECT_TRUE(has(refusal(off), "guard is off (sched_rt_runtime_us)")) << runtime_us;
  }
  EXPECT_TRUE(has(refusal({.core_count = 2}), "guard is off"));  // not to be seen
}

TEST(Realtime, NeverOnASingleCore) {
  RealtimeGuard single = kOn;
  single.core_count = 1;
  EXPECT_TRUE(has(refusal(single), "one core"));
}

TEST(Realtime, NoteSaysWhatTheGuardDoes) { EXPECT_TRUE(has(realtime_note(kOn), "up to 50 ms of each 1000 ms")); }

TEST(Realtime, PrioritiesAreOneTo99) {
  for (const int priority : {0, 100, -5}) {
    std::thread([&] {
      EXPECT_THROW(set_realtime_priority(priority), SetupError) << priority;
      EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    }).join();
  }
}

TEST(Realtime, WithoutThePrivilegeItIsRefused) {
  nanet::test::with_refused({{SYS_sched_setscheduler, EPERM}}, [] {
    if (const std::string why = refusal(realtime_guard()); !why.empty()) {
      std::cout << "NOT RUN: real-time priority without the privilege: " << why << '\n';
      return;
    }
    try {
      set_realtime_priority(7);
      FAIL() << "it was taken";
    } catch (const SetupError& error) {
      EXPECT_TRUE(has(error.what(), "the thread cannot have real-time priority 7 (Operation not permitted) start as root"));
    }
  });
}

// What the machine allows shows by what happens: the priority, or a reason.
TEST(Realtime, ThreadHasItOrSaysWhyNot) {
  std::string why;
  std::thread([&] {
    try {
      set_realtime_priority(7);
    } catch (const SetupError& error) {
      why = error.what();
      EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
      return;
    }
    sched_param got{};
    sched_getparam(0, &got);
    EXPECT_EQ(sched_getscheduler(0), SCHED_FIFO | SCHED_RESET_ON_FORK);
    EXPECT_EQ(got.sched_priority, 7);
    std::thread([] { EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER); }).join();  // not inherited
  }).join();
  if (!why.empty()) std::cout << "NOT RUN: a thread with real-time priority: " << why << '\n';
}

}  // namespace
}  // namespace nanet::flow
