// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "nanet/setup_error.hpp"

namespace nanet::flow {
namespace {

TEST(Thread, PinnedThreadRunsThere) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(static_cast<std::size_t>(core), &allowed)) continue;
    int ran_on = -1;
    std::thread([&] {
      pin_this_thread(core);
      ran_on = sched_getcpu();
    }).join();
    EXPECT_EQ(ran_on, core);
  }
}

TEST(Thread, RefusesCoresThatAreNotThere) {
  for (const int core : {-1, 100'000, CPU_SETSIZE}) {
    std::thread([&] { EXPECT_THROW(pin_this_thread(core), SetupError) << core; }).join();
  }
}

TEST(Thread, ShortTurnsLeaveThePolicyAsItIs) {
  std::thread([] {
    ask_for_short_turns();
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  }).join();
}

TEST(Thread, NameIsCutToWhatTheKernelKeeps) {
  std::thread([] {
    char name[32] = {};
    name_this_thread("nanet rx 0");
    pthread_getname_np(pthread_self(), name, sizeof name);
    EXPECT_STREQ(name, "nanet rx 0");
    name_this_thread("a name of more than fifteen bytes");
    pthread_getname_np(pthread_self(), name, sizeof name);
    EXPECT_STREQ(name, "a name of more ");
  }).join();
}

// Two threads that never sleep share a core: each waits for it while the other runs.
TEST(Thread, KnowsHowLongItWaitedForItsCore) {
  const int core = sched_getcpu();
  std::atomic<bool> both_waited{false};
  const auto compete = [&] {
    pin_this_thread(core);
    const std::uint64_t before_ns = this_thread_core_wait_ns();
    while (!both_waited && this_thread_core_wait_ns() - before_ns < 5'000'000) {
    }
    both_waited = true;
    EXPECT_GT(this_thread_core_wait_ns(), before_ns);
  };
  std::thread first(compete);
  std::thread second(compete);
  first.join();
  second.join();
}

TEST(StartedThread, PreparesBeforeStartReturnsAndThenRuns) {
  std::atomic<bool> go{false};
  std::atomic<int> step{0};
  Thread thread;
  thread.start([&] { step = 1; },
               [&] {
                 go.wait(false);
                 step = 2;
               });
  EXPECT_EQ(step, 1);
  EXPECT_TRUE(thread.joinable());
  go = true;
  go.notify_all();
  thread.join();
  EXPECT_EQ(step, 2);
}

TEST(StartedThread, ThatCannotBePreparedDoesNotRunAndIsNotThere) {
  bool ran = false;
  Thread thread;
  EXPECT_THROW(thread.start([] { pin_this_thread(-1); }, [&] { ran = true; }), SetupError);
  EXPECT_FALSE(ran);
  EXPECT_FALSE(thread.joinable());
  thread.start([] {}, [&] { ran = true; });  // and may be tried again
  thread.join();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace nanet::flow
