// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/completion_queue.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "nanet/setup_error.hpp"

namespace nanet::flow {
namespace {

constexpr std::uint64_t kHourNs = 3'600'000'000'000;

CompletionQueue make_queue(std::uint32_t capacity) { return CompletionQueue(capacity, {.name = "test queue", .locked = false}); }

Completion completion_of(std::uint64_t tag) {
  Completion completion{};
  completion.first_packet_ns = tag * 3;
  completion.last_packet_ns = tag * 5;
  completion.tag = tag;
  completion.bytes = static_cast<std::uint32_t>(tag * 7);
  completion.status = static_cast<std::uint16_t>(tag);
  completion.kind = CompletionKind::buffer_filled;
  completion.sequence = 0xdeadbeef;  // must not be taken over
  return completion;
}

TEST(CompletionQueue, EntryIsTheContractInMemory) {
  auto queue = make_queue(4);
  EXPECT_EQ(queue.peek(), nullptr);
  Completion completion{};
  completion.first_packet_ns = 0x0102030405060708;
  completion.last_packet_ns = 0x1112131415161718;
  completion.tag = 0x2122232425262728;
  completion.bytes = 0x31323334;
  completion.event_count = 0x41424344;
  completion.packets_lost = 0x51525354;
  completion.buffer_index = 0x6162;
  completion.packet_count = 0x7172;
  completion.stride_bytes = 0x8182;
  completion.clop = 0x91;
  completion.packet_events_max = 0xA1;
  completion.kind = CompletionKind::packet_sent;
  completion.status = status::gap | status::flush;
  ASSERT_TRUE(queue.push(completion));
  const unsigned char expected[64] = {8,    7,    6,    5,    4,    3,    2,    1,    0x18, 0x17, 0x16, 0x15, 0x14,
                                      0x13, 0x12, 0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, 0x34, 0x33,
                                      0x32, 0x31, 0x44, 0x43, 0x42, 0x41, 0x54, 0x53, 0x52, 0x51, 0x0c, 0,    2,
                                      0,    0,    0,    0,    0,    0,    0,    0,    0,    0x62, 0x61, 0x72, 0x71,
                                      0x82, 0x81, 0x91, 0xA1, 8,    7,    6,    5,    1,    0,    0,    0};
  EXPECT_EQ(std::memcmp(queue.memory().data(), expected, 64), 0);
  EXPECT_EQ(queue.memory().size(), 4u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(queue.memory().data()) % 4096, 0u);
}

TEST(CompletionQueue, KeepsOrderOverManyLaps) {
  auto queue = make_queue(4);
  std::uint64_t pushed = 0, popped = 0;
  for (int lap = 0; lap < 50; ++lap) {
    for (int k = 0; k < 1 + lap % 4; ++k) ASSERT_TRUE(queue.push(completion_of(pushed++)));
    while (const Completion* completion = queue.peek()) {
      EXPECT_EQ(completion->tag, popped);
      EXPECT_EQ(completion->sequence, popped + 1);
      EXPECT_EQ(completion->bytes, popped * 7);
      queue.pop();
      ++popped;
    }
    EXPECT_EQ(popped, pushed);
  }
}

TEST(CompletionQueue, FullQueueWritesNothing) {
  auto queue = make_queue(2);
  EXPECT_TRUE(queue.has_room());
  ASSERT_TRUE(queue.push(completion_of(0)));
  ASSERT_TRUE(queue.push(completion_of(1)));
  EXPECT_FALSE(queue.has_room());
  EXPECT_FALSE(queue.push(completion_of(2)));
  ASSERT_NE(queue.peek(), nullptr);
  EXPECT_EQ(queue.peek()->tag, 0u);
  queue.pop();
  EXPECT_TRUE(queue.has_room());
  ASSERT_TRUE(queue.push(completion_of(3)));
  EXPECT_EQ(queue.peek()->tag, 1u);
  queue.pop();
  EXPECT_EQ(queue.peek()->tag, 3u);
}

TEST(CompletionQueue, WaitEndsWithOrWithoutData) {
  auto queue = make_queue(2);
  EXPECT_FALSE(queue.wait(0, 0));
  EXPECT_FALSE(queue.wait(0, 10));
  EXPECT_FALSE(queue.wait(1'000'000, 10)) << "a sleep of 1 ms times out";
  queue.push(completion_of(0));
  EXPECT_TRUE(queue.wait(0, 0));
  EXPECT_TRUE(queue.wait(kHourNs, 0));
}

TEST(CompletionQueue, WakeEndsASleepWithoutData) {
  auto queue = make_queue(2);
  std::atomic<bool> stop{false};
  std::thread consumer([&] {
    while (!stop.load()) EXPECT_FALSE(queue.wait(kHourNs, 0));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  stop.store(true);
  // The consumer may just have looked at `stop` and not sleep yet: wake until it is out. A wake that does nothing hangs here.
  std::atomic<bool> joined{false};
  std::thread waker([&] {
    while (!joined.load()) {
      queue.wake();
      std::this_thread::yield();
    }
  });
  consumer.join();
  joined.store(true);
  waker.join();
}

TEST(CompletionQueue, RefusesBadCapacities) {
  for (const std::uint32_t capacity : {0u, 1u, 3u, 1u << 21}) EXPECT_THROW(make_queue(capacity), SetupError) << capacity;
}

TEST(CompletionQueue, TwoThreadsStress) {
  constexpr std::uint64_t kCount = 300'000;
  auto queue = make_queue(16);
  std::thread producer([&] {
    for (std::uint64_t tag = 0; tag < kCount;) {
      if (queue.has_room()) {
        queue.push(completion_of(tag++));
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::uint64_t bad = 0;
  for (std::uint64_t tag = 0; tag < kCount;) {
    const Completion* completion = queue.peek();
    if (completion == nullptr) {
      queue.wait(kHourNs, 20);
      continue;
    }
    bad += completion->tag != tag || completion->first_packet_ns != tag * 3 || completion->last_packet_ns != tag * 5 ||
           completion->status != static_cast<std::uint16_t>(tag) || completion->sequence != tag + 1;
    queue.pop();
    ++tag;
  }
  producer.join();
  EXPECT_EQ(bad, 0u);
  EXPECT_EQ(queue.peek(), nullptr);
}

// Both sides sleep after every entry, for an hour if no one wakes them: one lost wake-up and the test never ends.
TEST(CompletionQueue, NoWakeUpIsLost) {
  constexpr std::uint64_t kCount = 20'000;
  auto there = make_queue(2), back = make_queue(2);
  const auto take = [](CompletionQueue& queue) {
    while (queue.peek() == nullptr) queue.wait(kHourNs, 0);
    const std::uint64_t tag = queue.peek()->tag;
    queue.pop();
    return tag;
  };
  std::thread echo([&] {
    for (std::uint64_t k = 0; k < kCount; ++k) back.push(completion_of(take(there)));
  });
  std::uint64_t bad = 0;
  for (std::uint64_t k = 0; k < kCount; ++k) {
    there.push(completion_of(k));
    bad += take(back) != k;
  }
  echo.join();
  EXPECT_EQ(bad, 0u);
}

}  // namespace
}  // namespace nanet::flow
