// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/tx_ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>

#include "nanet/setup_error.hpp"

namespace nanet::flow {
namespace {

constexpr std::uint64_t kHourNs = 3'600'000'000'000;

TxRingConfig config_of(std::uint32_t capacity, std::uint32_t slot_bytes) {
  return {.capacity = capacity, .slot_bytes = slot_bytes, .name = "test ring", .locked = false};
}

TEST(TxRing, NothingIsSeenBeforeTheDoorbell) {
  TxRing ring(config_of(4, 100));
  std::array<const TxDescriptor*, 8> out{};
  EXPECT_EQ(ring.poll(out), 0u);
  for (std::uint32_t k = 0; k < 3; ++k) {
    const std::span<std::byte> slot = ring.slot();
    ASSERT_EQ(slot.size(), 100u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slot.data()) % 64, 0u);
    EXPECT_EQ(ring.slot().data(), slot.data()) << "the same slot until it is posted";
    std::memset(slot.data(), static_cast<int>(k + 1), 100);
    ring.post(10 + k, 7 + k, 1000 + k);
  }
  EXPECT_EQ(ring.poll(out), 0u);
  EXPECT_FALSE(ring.wait(0, 0));
  ring.ring_doorbell();
  EXPECT_TRUE(ring.wait(0, 0));
  EXPECT_EQ(ring.in_use(), 3u);
  ASSERT_EQ(ring.poll(out), 3u);
  for (std::uint32_t k = 0; k < 3; ++k) {
    EXPECT_EQ(out[k]->bytes, 10 + k);
    EXPECT_EQ(out[k]->destination, 7 + k);
    EXPECT_EQ(out[k]->tag, 1000 + k);
    EXPECT_EQ(out[k]->sequence, k + 1);
    EXPECT_EQ(out[k], ring.memory().data() + k);
    const auto* payload = reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(out[k]->address));
    EXPECT_EQ(payload[0], static_cast<std::byte>(k + 1));
    EXPECT_EQ(payload[99], static_cast<std::byte>(k + 1));
  }
  EXPECT_EQ(ring.poll(out), 0u) << "each descriptor is polled once";
  ring.complete(3);
  EXPECT_EQ(ring.in_use(), 0u);
}

TEST(TxRing, FullRingGivesNoSlotAndRecovers) {
  TxRing ring(config_of(2, 64));
  std::array<const TxDescriptor*, 1> out{};
  for (int k = 0; k < 2; ++k) {
    ASSERT_FALSE(ring.slot().empty());
    ring.post(1, 0, static_cast<std::uint64_t>(k));
  }
  EXPECT_TRUE(ring.slot().empty());
  ring.ring_doorbell();
  ASSERT_EQ(ring.poll(out), 1u);
  EXPECT_EQ(out[0]->tag, 0u);
  EXPECT_TRUE(ring.slot().empty()) << "polled is not completed";
  ring.complete(1);
  EXPECT_FALSE(ring.slot().empty());
  ring.post(1, 0, 2);
  EXPECT_TRUE(ring.slot().empty());
  ring.ring_doorbell();
  ASSERT_EQ(ring.poll(out), 1u);
  EXPECT_EQ(out[0]->tag, 1u);
  ASSERT_EQ(ring.poll(out), 1u);
  EXPECT_EQ(out[0]->tag, 2u);
  EXPECT_EQ(out[0]->sequence, 3u);
}

TEST(TxRing, WaitTimesOut) {
  TxRing ring(config_of(2, 64));
  EXPECT_FALSE(ring.wait(1'000'000, 5));
  ring.ring_doorbell();  // nothing posted
  EXPECT_FALSE(ring.wait(0, 5));
}

TEST(TxRing, RefusesBadConfigurations) {
  for (const std::uint32_t capacity : {0u, 1u, 6u, 1u << 21}) EXPECT_THROW(TxRing{config_of(capacity, 64)}, SetupError);
  for (const std::uint32_t bytes : {0u, 65537u}) EXPECT_THROW(TxRing{config_of(2, bytes)}, SetupError);
}

TEST(TxRing, TwoThreadsStress) {
  constexpr std::uint64_t kCount = 200'000;
  TxRing ring(config_of(32, 48));
  std::thread producer([&] {
    for (std::uint64_t tag = 0; tag < kCount;) {
      const std::span<std::byte> slot = ring.slot();
      if (slot.empty()) {
        ring.ring_doorbell();
        std::this_thread::yield();
        continue;
      }
      std::memcpy(slot.data(), &tag, sizeof tag);
      std::memcpy(slot.data() + 40, &tag, sizeof tag);
      ring.post(48, static_cast<std::uint32_t>(tag % 5), tag);
      if (++tag % 7 == 0) ring.ring_doorbell();
    }
    ring.ring_doorbell();
  });
  std::uint64_t bad = 0, next = 0;
  std::array<const TxDescriptor*, 10> out{};
  while (next < kCount) {
    const std::uint32_t count = ring.poll(out);
    if (count == 0) {
      ring.wait(kHourNs, 20);
      continue;
    }
    for (std::uint32_t k = 0; k < count; ++k, ++next) {
      std::uint64_t first = 0, last = 0;
      const auto* payload = reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(out[k]->address));
      std::memcpy(&first, payload, sizeof first);
      std::memcpy(&last, payload + 40, sizeof last);
      bad += first != next || last != next || out[k]->tag != next || out[k]->destination != next % 5;
    }
    ring.complete(count);
  }
  producer.join();
  EXPECT_EQ(bad, 0u);
}

}  // namespace
}  // namespace nanet::flow
