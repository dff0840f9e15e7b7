// SPDX-License-Identifier: Apache-2.0
// LO|FA|MO in a torus: who knows what after how many cycles when a host, a node or a cable stops, and no false alarm under load.
#include <gtest/gtest.h>

#include <set>

#include "model/torus/rdma_torus.hpp"

namespace nanet::torus {
namespace {

constexpr std::uint32_t kBeat = 500, kPeriod = 1200, kWire = 5;
constexpr std::uint64_t kSilenceCycles = 2 * 192;  // of apelink: two credit periods
constexpr std::uint64_t kToldCycles = kWire + 40;  // through a link whose sender is in mid-packet

RdmaTorus watched(const Shape& shape) {
  RdmaTorus torus(shape, kWire);
  for (std::uint32_t n = 0; n < torus.size(); ++n) torus.node(n).watch(kBeat, kPeriod);
  torus.run(5000);
  return torus;
}

bool is_well(const NeighbourState& one) { return one.has_link && !one.is_silent && !one.is_host_silent && one.says == 0; }

// All that nodes know of each other but what `expected` says is that they are well.
void expect_well_but(RdmaTorus& torus, const std::set<std::pair<std::uint32_t, std::size_t>>& others) {
  for (std::uint32_t n = 0; n < torus.size(); ++n) {
    for (std::size_t port = 0; port < kLinks; ++port) {
      if (torus.shape().has_link(port) && !others.contains({n, port})) {
        EXPECT_TRUE(is_well(torus.node(n).neighbour(port))) << n << " of its link " << port;
      }
    }
  }
}

std::set<std::pair<std::uint32_t, std::size_t>> views_of(const Shape& shape, std::uint32_t node) {
  std::set<std::pair<std::uint32_t, std::size_t>> views;
  for (std::size_t port = 0; port < kLinks; ++port) {
    if (shape.has_link(port)) views.emplace(shape.neighbour(node, port), port ^ 1);
  }
  return views;
}

TEST(Lofamo, AHostThatStopsIsKnownToItsNeighboursAndNoOneElse) {
  RdmaTorus torus = watched(Shape({3, 2, 1}));
  expect_well_but(torus, {});
  torus.node(4).set_host(false);
  const std::uint64_t begin = torus.cycle();
  torus.run(kPeriod + kToldCycles);
  EXPECT_EQ(torus.node(4).state(), 1);
  const auto views = views_of(torus.shape(), 4);
  EXPECT_EQ(views.size(), 4u);
  for (const auto& [node, port] : views) {
    const NeighbourState& seen = torus.node(node).neighbour(port);
    EXPECT_TRUE(seen.is_host_silent && !seen.is_silent);
    EXPECT_GE(seen.since_cycle, begin + kPeriod - kBeat);
    EXPECT_LE(seen.since_cycle, begin + kPeriod + kToldCycles);
  }
  expect_well_but(torus, views);
  torus.run(20'000);  // told again and again, it stays
  for (const auto& [node, port] : views) EXPECT_TRUE(torus.node(node).neighbour(port).is_host_silent);
  torus.node(4).set_host(true);
  torus.run(kBeat + kToldCycles);
  expect_well_but(torus, {});
}

TEST(Lofamo, WhatAHostSaysOfItselfIsToldWithItsNextBeat) {
  RdmaTorus torus = watched(Shape({2, 1, 1}));
  torus.node(0).say(0x55);
  torus.run(kBeat + kToldCycles);
  for (const auto& [node, port] : views_of(torus.shape(), 0)) EXPECT_EQ(torus.node(node).neighbour(port).says, 0x55);
  EXPECT_TRUE(is_well(torus.node(0).neighbour(0)));
}

TEST(Lofamo, ANodeThatStandsStillIsSilentForItsNeighboursAndItsHost) {
  RdmaTorus torus = watched(Shape({1, 3, 1}));
  torus.node(1).set_logic(false);
  const std::uint64_t begin = torus.cycle();
  torus.run(4 * kBeatCycles);
  const auto views = views_of(torus.shape(), 1);
  for (const auto& [node, port] : views) {
    EXPECT_TRUE(torus.node(node).neighbour(port).is_silent);
    EXPECT_LE(torus.node(node).neighbour(port).since_cycle, begin + kSilenceCycles + kToldCycles);
    EXPECT_FALSE(torus.node(node).is_logic_silent());
  }
  EXPECT_TRUE(torus.node(1).is_logic_silent());
  auto others = views;
  for (std::size_t port = 0; port < kLinks; ++port) others.emplace(1, port);
  expect_well_but(torus, others);
}

TEST(Lofamo, ACableThatIsCutIsSilentAtBothEndsAndBothNodesAreWellForOthers) {
  RdmaTorus torus = watched(Shape({4, 1, 1}));
  torus.set_cable(2, 0, false);
  torus.run(kSilenceCycles + kToldCycles);
  EXPECT_TRUE(torus.node(2).neighbour(0).is_silent);
  EXPECT_TRUE(torus.node(3).neighbour(1).is_silent);
  expect_well_but(torus, {{2, 0}, {3, 1}});
  torus.set_cable(2, 0, true);
  torus.run(kSilenceCycles);
  expect_well_but(torus, {});
}

// As docs/design/lofamo.md says that a driver does: woken by the interrupt, it looks at what has changed, and sees all that the node knows.
TEST(Lofamo, TheDriverIsWokenAndSeesWhatHasChanged) {
  RdmaTorus torus = watched(Shape({3, 1, 1}));
  const auto seen = [&](std::uint32_t n, std::size_t bit) { return torus.node(n).registers().changes().seen.at(bit); };
  const auto interrupts = [&](std::uint32_t n) { return torus.node(n).registers().changes().interrupts; };
  std::array<std::uint64_t, 3> before{interrupts(0), interrupts(1), interrupts(2)};
  std::array<std::uint64_t, 3> from_1{seen(0, 0), seen(2, 1), seen(1, kLinks)};
  EXPECT_GE(before[0], 1u);  // its links came up
  torus.run(20'000);
  for (std::uint32_t n = 0; n < 3; ++n) EXPECT_EQ(interrupts(n), before.at(n));  // while nothing changes no one is woken
  torus.node(1).set_host(false);
  torus.run(kPeriod + kToldCycles + 500);
  for (std::uint32_t n = 0; n < 3; ++n) EXPECT_EQ(interrupts(n), before.at(n) + 1);
  EXPECT_EQ(seen(0, 0), from_1[0] + 1);
  EXPECT_EQ(seen(2, 1), from_1[1] + 1);
  EXPECT_EQ(seen(1, kLinks), from_1[2] + 1);
  torus.node(2).say(5);
  torus.node(1).set_host(true);
  torus.set_cable(0, 1, false);
  torus.run(20'000);
  for (std::uint32_t n = 0; n < 3; ++n) {
    for (std::size_t port = 0; port < 2; ++port) {
      const NeighbourState& direct = torus.node(n).neighbour(port);
      const std::uint64_t read = torus.node(n).registers().changes().neighbours >> 10 * port & 0x3FF;
      EXPECT_EQ(read, 1u | (direct.is_silent ? 2u : 0u) | (direct.is_host_silent ? 4u : 0u) | std::uint32_t{direct.says} << 3)
          << n << ' ' << port;
    }
  }
}

TEST(Lofamo, NoFalseAlarmUnderLoadAndAnAlarmComesThroughIt) {
  RdmaTorus torus = watched(Shape({2, 2, 1}));
  std::vector<Region> targets;
  for (std::uint32_t n = 0; n < 4; ++n) targets.push_back(torus.share(n, 1u << 20, 1u << 20, false, true));
  for (std::uint32_t from = 0; from < 4; ++from) {
    for (std::uint32_t to = 0; to < 4; ++to) torus.put(from, 0, 60'000, targets[to], 65'536 * from);
  }
  for (int k = 0; k < 40; ++k) {
    torus.run(200);
    expect_well_but(torus, {});
  }
  torus.node(3).set_host(false);
  torus.run(kPeriod + kToldCycles);
  for (const auto& [node, port] : views_of(torus.shape(), 3)) EXPECT_TRUE(torus.node(node).neighbour(port).is_host_silent);
  EXPECT_TRUE(torus.settle());
  for (std::uint32_t n = 0; n < 4; ++n) {
    EXPECT_EQ(torus.take(n).size(), 4u);
    EXPECT_EQ(torus.node(n).counts().lost, 0u);
  }
}

}  // namespace
}  // namespace nanet::torus
