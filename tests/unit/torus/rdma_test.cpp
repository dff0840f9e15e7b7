// SPDX-License-Identifier: Apache-2.0
// Remote memory access between the nodes of a torus: every byte of every memory and every completion is compared with what was asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>

#include "model/torus/rdma_torus.hpp"
#include "model/torus/traffic.hpp"

namespace nanet::torus {
namespace {

constexpr std::uint32_t kSourceBytes = 0x1'0000, kSlotBytes = 0x5000, kPutType = 0x01, kGetType = 0x03, kEventType = 0x11;
// Of packets, by the order of rdma_pkg.sv.
constexpr std::size_t kLanded = 0, kEvent = 1, kGet = 2, kKey = 7, kRights = 8, kBounds = 9;

// A torus, what its memories must hold, and regions of each node: one to read, and one to write.
struct Case {
  explicit Case(const Shape& shape, std::uint32_t wire_cycles = 5, unsigned threads = 1) : torus(shape, wire_cycles, {}, threads) {
    for (std::uint32_t n = 0; n < torus.size(); ++n) {
      for (std::uint32_t at = 0; at < kHostBytes; at += 8) {
        const std::uint64_t some = random.next();
        std::memcpy(&torus.memory(n)[at], &some, sizeof(some));
      }
      images.emplace_back(torus.memory(n).begin(), torus.memory(n).end());
      sources.push_back(torus.share(n, 0, kSourceBytes, true, false));
      targets.push_back(torus.share(n, kSourceBytes, kHostBytes - kSourceBytes, false, true));
    }
  }

  void expect_copy(std::uint32_t from, std::uint32_t at, std::uint32_t to, std::uint32_t offset, std::uint32_t bytes) {
    std::memcpy(&images[to][kSourceBytes + offset], &images[from][at], bytes);
  }
  void settle() {
    ASSERT_TRUE(torus.settle());
    for (std::uint32_t n = 0; n < torus.size(); ++n) {
      EXPECT_TRUE(std::ranges::equal(torus.memory(n), images[n])) << "memory of node " << n;
      EXPECT_EQ(torus.node(n).counts().lost, 0u);
      EXPECT_EQ(torus.node(n).counts().missed, 0u);
    }
  }
  std::uint64_t counted(std::size_t what) {
    std::uint64_t all = 0;
    for (std::uint32_t n = 0; n < torus.size(); ++n) all += torus.node(n).counts().packets[what];
    return all;
  }

  Random random{11};
  RdmaTorus torus;
  std::vector<std::vector<std::uint8_t>> images;
  std::vector<Region> sources, targets;
};

using Told = std::pair<std::uint64_t, std::uint64_t>;  // packet type and, of a GET, tag, else process; value and bytes

Told told(const Completion& one) {
  const bool is_get = one.reserved0 == kGetType;
  return {std::uint64_t{one.reserved0} << 32 | (is_get ? one.tag : one.reserved1 >> 32 & 0xFFFF),
          (one.reserved1 >> 48) << 32 | one.bytes};
}

void all_to_all(const Shape& shape) {
  SCOPED_TRACE(shape.text());
  constexpr std::array<std::uint32_t, 7> kSizes{1, 16, 17, 300, 4080, 4081, 9000};
  Case c(shape);
  std::vector<std::vector<Told>> wanted(c.torus.size());
  std::size_t turn = 0;
  for (std::uint32_t a = 0; a < c.torus.size(); ++a) {
    for (std::uint32_t b = 0; b < c.torus.size(); ++b) {
      const std::uint32_t bytes = kSizes[turn++ % kSizes.size()], at = static_cast<std::uint32_t>(c.random.next() % 0x8000);
      const std::uint32_t put_to = 2 * a * kSlotBytes + at % 97, got_to = (2 * b + 1) * kSlotBytes + at % 89;
      c.torus.put(a, at, bytes, c.targets[b], put_to, static_cast<std::uint16_t>(turn));
      c.expect_copy(a, at, b, put_to, bytes);
      wanted[b].emplace_back(std::uint64_t{kPutType} << 32 | turn, bytes);
      c.torus.get(c.targets[a], got_to, bytes, c.sources[b], at, turn);
      c.expect_copy(b, at, a, got_to, bytes);
      wanted[a].emplace_back(std::uint64_t{kGetType} << 32 | turn, bytes);
      c.torus.event(a, b, static_cast<std::uint16_t>(at), static_cast<std::uint16_t>(turn));
      wanted[b].emplace_back(std::uint64_t{kEventType} << 32 | turn, std::uint64_t{at} << 32);
    }
  }
  c.settle();
  const std::uint64_t pairs = c.torus.size() * c.torus.size();
  EXPECT_EQ(c.counted(kEvent), pairs);
  EXPECT_EQ(c.counted(kGet), pairs);
  for (std::uint32_t n = 0; n < c.torus.size(); ++n) {
    std::vector<Told> found;
    for (const Completion& one : c.torus.take(n)) {
      EXPECT_EQ(one.kind, CompletionKind::message);
      found.push_back(told(one));
    }
    std::ranges::sort(found);
    std::ranges::sort(wanted[n]);
    EXPECT_EQ(found, wanted[n]) << "completions of node " << n;
  }
  c.torus.read_registers();
  for (std::uint32_t n = 0; n < c.torus.size(); ++n) {
    const auto& packets = c.torus.node(n).counts().packets;
    EXPECT_TRUE(std::ranges::equal(packets, std::span(c.torus.node(n).registers().counters()).first(packets.size()))) << "node " << n;
  }
}

TEST(RdmaTorus, EachToEachInEveryShape) {
  all_to_all(Shape({2, 1, 1}));
  all_to_all(Shape({1, 3, 1}));
  all_to_all(Shape({1, 1, 4}));
  all_to_all(Shape({2, 2, 1}));
  all_to_all(Shape({2, 2, 2}));
}

// Each node sends to each; what it counted, its completions with their times, and all memories.
struct Outcome {
  explicit Outcome(unsigned threads) : c(Shape({2, 2, 2}), 7, threads) {
    for (std::uint32_t a = 0; a < c.torus.size(); ++a) {
      for (std::uint32_t b = 0; b < c.torus.size(); ++b) {
        c.torus.put(a, 16 * a, 3000, c.targets[b], a * kSlotBytes, static_cast<std::uint16_t>(a));
        c.torus.get(c.targets[a], (8 + b) * kSlotBytes, 500, c.sources[b], 0, b);
      }
    }
    EXPECT_TRUE(c.torus.settle());
    for (std::uint32_t n = 0; n < c.torus.size(); ++n) {
      const auto& packets = c.torus.node(n).counts().packets;
      counts.insert(counts.end(), packets.begin(), packets.end());
      for (const Completion& one : c.torus.take(n)) completions.push_back({one.reserved1, one.tag, one.last_packet_ns, one.bytes});
      memories.emplace_back(c.torus.memory(n).begin(), c.torus.memory(n).end());
    }
  }

  Case c;
  std::vector<std::uint64_t> counts;
  std::vector<std::array<std::uint64_t, 4>> completions;
  std::vector<std::vector<std::uint8_t>> memories;
};

TEST(RdmaTorus, ThreadsChangeNothing) {
  const Outcome one(1);
  EXPECT_EQ(one.completions.size(), 128u);
  for (const unsigned threads : {2u, 3u, 8u}) {
    const Outcome more(threads);
    EXPECT_EQ(more.c.torus.threads(), threads);
    EXPECT_EQ(more.c.torus.cycle(), one.c.torus.cycle());
    EXPECT_EQ(more.counts, one.counts);
    EXPECT_EQ(more.completions, one.completions);
    EXPECT_TRUE(more.memories == one.memories);
  }
}

TEST(Team, ThrowsWhatANodeThrowsAndGoesOn) {
  Team team(9, 3);
  EXPECT_EQ(team.size(), 3u);
  std::array<std::uint64_t, 3> cycles{};
  const auto count = [&](std::size_t node, std::uint64_t from, std::uint64_t to) { cycles[node] += to - from; };
  const auto fail = [&](std::size_t node, std::uint64_t from, std::uint64_t to) {
    if (node == 2 && from >= 10) throw std::logic_error("node 2");
    count(node, from, to);
  };
  EXPECT_THROW(team.run(0, 22, 5, fail), std::logic_error);
  EXPECT_EQ(cycles, (std::array<std::uint64_t, 3>{22, 22, 10}));
  team.run(22, 30, 5, count);
  EXPECT_EQ(cycles, (std::array<std::uint64_t, 3>{30, 30, 18}));
}

TEST(RdmaTorus, NothingOutsideARegionIsWritten) {
  Case c(Shape({2, 1, 1}));
  Region guessed = c.targets[1];
  guessed.nonce ^= 1;
  c.torus.put(0, 0, 64, guessed, 0);
  c.torus.put(0, 0, 64, c.sources[1], 0);
  c.torus.put(0, 0, 64, c.targets[1], kHostBytes - kSourceBytes - 63);
  c.settle();
  EXPECT_EQ(c.counted(kKey), 1u);
  EXPECT_EQ(c.counted(kRights), 1u);
  EXPECT_EQ(c.counted(kBounds), 1u);
  c.torus.withdraw(c.targets[1]);
  EXPECT_THROW(c.torus.withdraw(c.targets[1]), std::invalid_argument);
  c.torus.run(8);
  c.torus.put(0, 0, 64, c.targets[1], 0);
  c.settle();
  EXPECT_EQ(c.counted(kKey), 2u);
  EXPECT_EQ(c.counted(kLanded), 0u);
  for (const Completion& one : c.torus.take(1)) EXPECT_EQ(one.kind, CompletionKind::error);
}

// The books of all registers are those of nanet.torus.registers; here is what a host does not see.
TEST(RdmaTorus, ANodeThatStandsStillIsNotWaitedForByWhoReadsRegisters) {
  RdmaTorus torus(Shape({2, 1, 1}));
  torus.read_registers();
  const std::uint64_t once = torus.cycle();
  EXPECT_LT(once, 4000u);
  torus.node(1).set_logic(false);
  torus.read_registers();
  EXPECT_LT(torus.cycle(), 2 * once + 4000);
}

TEST(RdmaTorus, ReadsUpToTheLastByteOfARegion) {
  Case c(Shape({1, 2, 1}));
  constexpr std::uint32_t kEnd = kHostBytes - kSourceBytes;
  c.torus.put(0, kSourceBytes - 64, 64, c.targets[1], kEnd - 64);
  c.expect_copy(0, kSourceBytes - 64, 1, kEnd - 64, 64);
  c.torus.get(c.targets[1], 0, 64, c.sources[0], kSourceBytes - 64, 5);
  c.expect_copy(0, kSourceBytes - 64, 1, 0, 64);
  c.torus.get(c.targets[1], 64, 64, c.sources[0], kSourceBytes - 63, 6);  // a byte too far
  c.settle();
  EXPECT_EQ(c.torus.node(0).counts().refused, 1u);
}

TEST(RdmaTorus, RefusesWhatCannotBe) {
  EXPECT_THROW(RdmaTorus(Shape({5, 1, 1})), std::invalid_argument);
  EXPECT_THROW(RdmaTorus(Shape({2, 1, 1}), 1), std::invalid_argument);
  RdmaTorus torus(Shape({2, 1, 1}));
  EXPECT_THROW(torus.share(0, 8, 64, true, true), std::invalid_argument);
  EXPECT_THROW(torus.share(0, kHostBytes - 16, 17, true, true), std::invalid_argument);
  const Region region = torus.share(1, 0, 64, true, true);
  EXPECT_THROW(torus.share(2, 0, 64, true, true), std::invalid_argument);
  EXPECT_THROW(torus.withdraw({.node = 1, .index = 1}), std::invalid_argument);
  EXPECT_THROW(torus.put(0, 0, 0, region, 0), std::invalid_argument);
  EXPECT_THROW(torus.put(0, 0, kMessageBytesMax + 1, region, 0), std::invalid_argument);
  EXPECT_THROW(torus.put(0, kHostBytes - 15, 16, region, 0), std::invalid_argument);
  EXPECT_THROW(torus.put(0, 0, 16, region, kOffsetsMax), std::invalid_argument);
  EXPECT_THROW(torus.put(2, 0, 16, region, 0), std::invalid_argument);
  EXPECT_THROW(torus.put(0, 0, 16, {.node = 2}, 0), std::invalid_argument);
  EXPECT_THROW(torus.get(region, kOffsetsMax, 16, region, 0, 0), std::invalid_argument);
  EXPECT_THROW(torus.event(0, 2, 0), std::invalid_argument);
  for (std::size_t k = 0; k < kKeys; ++k) torus.share(0, 0, 16, true, true);
  EXPECT_THROW(torus.share(0, 0, 16, true, true), std::invalid_argument);
}

}  // namespace
}  // namespace nanet::torus
