// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/clop.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "nanet/flow/completion_queue.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::flow {
namespace {

ClopConfig small(std::uint32_t buffer_count) {
  return {.name = "test", .id = 3, .buffer_count = buffer_count, .buffer_bytes = 4096, .huge_pages = false, .locked = false};
}

TEST(Clop, BuffersLieBackToBackAndIndexesBesideThem) {
  Clop clop(small(4));
  EXPECT_EQ(clop.id(), 3);
  EXPECT_EQ(clop.index_capacity(), 64u);
  EXPECT_EQ(clop.memory().size(), 4u * 4096u);
  for (std::uint32_t k = 0; k < 4; ++k) {
    EXPECT_EQ(clop.buffer(k).data(), clop.memory().data() + k * 4096);
    EXPECT_EQ(clop.buffer(k).size(), 4096u);
    EXPECT_EQ(clop.packet_index(k).size(), 64u);
    // Everything is written: an overlap would show below.
    std::memset(clop.buffer(k).data(), static_cast<int>(k + 1), 4096);
    for (PacketRef& packet : clop.packet_index(k)) packet = {k, static_cast<std::uint16_t>(k), static_cast<std::uint16_t>(k)};
  }
  for (std::uint32_t k = 0; k < 4; ++k) {
    for (const std::byte b : clop.buffer(k)) ASSERT_EQ(b, static_cast<std::byte>(k + 1));
    for (const PacketRef& packet : clop.packet_index(k)) ASSERT_EQ(packet.offset, k);
  }
}

TEST(Clop, IndexCapacityCanBeChosen) {
  ClopConfig config = small(2);
  config.index_capacity = 7;
  Clop clop(config);
  EXPECT_EQ(clop.packet_index(1).size(), 7u);
  EXPECT_EQ(clop.packet_index(1).data(), clop.packet_index(0).data() + 7);
}

TEST(Clop, FullClopRefusesAndRecovers) {
  Clop clop(small(2));
  std::uint32_t buffer = 99;
  ASSERT_TRUE(clop.acquire(buffer));
  EXPECT_EQ(buffer, 0u);
  ASSERT_TRUE(clop.acquire(buffer)) << "the same buffer until it is handed over";
  EXPECT_EQ(buffer, 0u);
  EXPECT_EQ(clop.hand_over(), 0u);
  ASSERT_TRUE(clop.acquire(buffer));
  EXPECT_EQ(buffer, 1u);
  EXPECT_EQ(clop.hand_over(), 1u);
  EXPECT_EQ(clop.in_use(), 2u);
  EXPECT_FALSE(clop.acquire(buffer));
  EXPECT_FALSE(clop.acquire(buffer));
  clop.release();
  EXPECT_EQ(clop.in_use(), 1u);
  ASSERT_TRUE(clop.acquire(buffer));
  EXPECT_EQ(buffer, 0u);
  EXPECT_EQ(clop.hand_over(), 2u);
  EXPECT_FALSE(clop.acquire(buffer));
}

TEST(Clop, RefusesBadConfigurations) {
  for (const std::uint32_t count : {0u, 1u, 3u, 65537u, 131072u}) EXPECT_THROW(Clop{small(count)}, SetupError) << count;
  for (const std::uint32_t bytes : {0u, 4095u, 6144u}) {
    ClopConfig config = small(2);
    config.buffer_bytes = bytes;
    EXPECT_THROW(Clop{config}, SetupError) << bytes;
  }
  ClopConfig device = small(2);
  device.kind = MemoryKind::device;
  EXPECT_THROW(Clop{device}, SetupError);
}

// Producer and consumer as in an engine: every byte of every buffer carries the hand-over number.
TEST(Clop, TwoThreadsNeverShareABuffer) {
  constexpr std::uint64_t kHandOvers = 20'000;
  Clop clop(small(4));
  CompletionQueue queue(8, {.name = "queue", .locked = false});
  std::thread producer([&] {
    for (std::uint64_t number = 0; number < kHandOvers;) {
      std::uint32_t buffer = 0;
      if (!clop.acquire(buffer)) {
        std::this_thread::yield();
        continue;
      }
      std::memset(clop.buffer(buffer).data(), static_cast<int>(number & 0xff), 256);
      clop.packet_index(buffer)[0] = {static_cast<std::uint32_t>(number), 0, 0};
      Completion completion{};
      completion.buffer_index = static_cast<std::uint16_t>(buffer);
      completion.tag = clop.hand_over();
      ASSERT_EQ(completion.tag, number);
      ASSERT_TRUE(queue.push(completion)) << "the queue has room for every buffer";
      ++number;
    }
  });
  std::uint64_t bad = 0;
  for (std::uint64_t number = 0; number < kHandOvers;) {
    const Completion* completion = queue.peek();
    if (completion == nullptr) {
      queue.wait(1'000'000'000, 50);
      continue;
    }
    bad += completion->tag != number || completion->buffer_index != number % 4;
    bad += clop.packet_index(completion->buffer_index)[0].offset != number;
    for (const std::byte b : clop.buffer(completion->buffer_index).first(256)) bad += b != static_cast<std::byte>(number);
    queue.pop();
    clop.release();
    ++number;
  }
  producer.join();
  EXPECT_EQ(bad, 0u);
  EXPECT_EQ(clop.in_use(), 0u);
}

}  // namespace
}  // namespace nanet::flow
