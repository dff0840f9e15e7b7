// SPDX-License-Identifier: Apache-2.0
// Which seeds are triggered, against all groups of seeds tried one by one.
#include "nanet/km3/judge.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

namespace nanet::km3 {
namespace {

using Seeds = std::vector<Seed>;
using Connected = std::function<bool(std::size_t, std::size_t)>;

// Adds all seeds of cliques of `size` that begin with `group`.
void try_all(const Seeds& seeds, const JudgeCuts& cuts, const Connected& connected, std::vector<std::size_t>& group,
             std::set<std::size_t>& triggered) {
  if (group.size() == cuts.seeds_min) {
    triggered.insert(group.begin(), group.end());
    return;
  }
  for (std::size_t next = group.empty() ? 0 : group.back() + 1; next < seeds.size(); ++next) {
    bool fits = true;
    for (const std::size_t k : group) fits = fits && connected(k, next);
    if (!group.empty() && seeds[next].point.time_ns - seeds[group.front()].point.time_ns > cuts.window_ns) break;
    if (!fits) continue;
    group.push_back(next);
    try_all(seeds, cuts, connected, group, triggered);
    group.pop_back();
  }
}

std::set<std::size_t> reference(const Seeds& seeds, const JudgeCuts& cuts, const std::vector<Direction>& directions) {
  std::set<std::size_t> triggered;
  std::vector<std::size_t> group;
  const Connected plain = [&](std::size_t a, std::size_t b) { return cuts.match3b(seeds[a].point, seeds[b].point); };
  if (directions.empty()) try_all(seeds, cuts, plain, group, triggered);
  for (const Direction& along : directions) {
    const Connected both = [&](std::size_t a, std::size_t b) {
      return plain(a, b) && cuts.match1d(seeds[a].point, seeds[b].point, along);
    };
    try_all(seeds, cuts, both, group, triggered);
  }
  return triggered;
}

std::set<std::size_t> judged(const Seeds& seeds, const JudgeCuts& cuts, const std::vector<Direction>& directions,
                             std::uint32_t& flags) {
  std::vector<Judgement> judgements(seeds.size());
  CpuJudge().judge_all(seeds, cuts, directions, judgements);
  std::set<std::size_t> triggered;
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    flags |= judgements[i].flags;
    if (judgements[i].triggered == 0) continue;
    triggered.insert(i);
    for (std::size_t k = 0; k < 64; ++k) {
      if ((judgements[i].members >> k & 1) != 0) triggered.insert(i + 1 + k);
    }
  }
  return triggered;
}

Seeds random_seeds(std::mt19937_64& random, std::size_t count, double length_ns) {
  std::uniform_real_distribution<double> place(0.0, 1.0);
  Seeds seeds;
  for (std::size_t i = 0; i < count; ++i) {
    seeds.push_back({{60 * place(random), 60 * place(random), 260 * place(random), length_ns * place(random)}, 0, kSimple});
  }
  std::sort(seeds.begin(), seeds.end(), [](const Seed& a, const Seed& b) { return a.point.time_ns < b.point.time_ns; });
  return seeds;
}

TEST(Judge, FindsAllCliques) {
  std::mt19937_64 random(7);
  std::size_t triggered = 0;
  std::size_t seeds_in_all = 0;
  for (int k = 0; k < 300; ++k) {
    const Seeds seeds = random_seeds(random, 24, 1500.0 + 20.0 * k);
    JudgeCuts cuts;
    cuts.seeds_min = static_cast<std::uint32_t>(2 + k % 6);
    cuts.window_ns = k % 2 == 0 ? 700 : 2000;
    std::uint32_t flags = 0;
    const auto found = judged(seeds, cuts, {}, flags);
    ASSERT_EQ(found, reference(seeds, cuts, {})) << "set " << k;
    EXPECT_EQ(flags, 0u);
    triggered += found.size();
    seeds_in_all += seeds.size();
  }
  EXPECT_GT(triggered, seeds_in_all / 10);
  EXPECT_LT(triggered, seeds_in_all * 9 / 10);
}

TEST(Judge, FindsAllCliquesOfADirection) {
  std::mt19937_64 random(8);
  const auto directions = direction_grid(45);
  std::size_t triggered = 0;
  for (int k = 0; k < 100; ++k) {
    const Seeds seeds = random_seeds(random, 24, 900.0);
    JudgeCuts cuts;
    cuts.seeds_min = static_cast<std::uint32_t>(3 + k % 3);
    cuts.match1d = Match1D(90, 20);
    std::uint32_t flags = 0;
    const auto found = judged(seeds, cuts, directions, flags);
    ASSERT_EQ(found, reference(seeds, cuts, directions)) << "set " << k;
    triggered += found.size();
  }
  EXPECT_GT(triggered, 100u);
  EXPECT_LT(triggered, 2'300u);
}

TEST(Judge, ACoreHasAtLeastTheCliques) {
  std::mt19937_64 random(9);
  std::size_t more = 0;
  for (int k = 0; k < 200; ++k) {
    const Seeds seeds = random_seeds(random, 24, 2000.0);
    JudgeCuts cuts;
    cuts.seeds_min = 4;
    std::uint32_t flags = 0;
    const auto cliques = judged(seeds, cuts, {}, flags);
    cuts.cliques = 0;
    const auto cores = judged(seeds, cuts, {}, flags);
    EXPECT_TRUE(std::includes(cores.begin(), cores.end(), cliques.begin(), cliques.end()));
    more += cores.size() - cliques.size();
  }
  EXPECT_GT(more, 0u);
}

TEST(Judge, CrowdsAreNamed) {
  Seeds seeds(80);
  for (std::size_t i = 0; i < seeds.size(); ++i) seeds[i].point = {0, 0, 3.0 * static_cast<double>(i), static_cast<double>(i)};
  JudgeCuts cuts;
  std::uint32_t flags = 0;
  EXPECT_EQ(judged(seeds, cuts, {}, flags).size(), 80u) << "each is connected to each: none may be lost";
  EXPECT_EQ(flags & kCrowded, kCrowded);
}

// Seeds of which any two are connected but for pairs of partners: no clique of more than half of them, and long to search for one.
TEST(Judge, GivesUpSearchesAndTakesTheEvent) {
  std::uint64_t connected[kAheadMax];
  for (std::uint32_t k = 0; k < 30; ++k) connected[k] = ((std::uint64_t{1} << 30) - 1) & ~(std::uint64_t{7} << k / 3 * 3);
  JudgeCuts cuts;
  cuts.seeds_min = 13;  // with the anchor there are cliques of 11
  std::uint32_t steps = kStepsMax;
  EXPECT_NE(detail::members_of(connected, (std::uint64_t{1} << 30) - 1, cuts, steps), 0u);
  EXPECT_EQ(steps, 0u);
  cuts.seeds_min = 11;
  steps = kStepsMax;
  EXPECT_EQ(detail::members_of(connected, (std::uint64_t{1} << 30) - 1, cuts, steps), (std::uint64_t{1} << 30) - 1);
  EXPECT_NE(steps, 0u);
}

}  // namespace
}  // namespace nanet::km3
