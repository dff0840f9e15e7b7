// SPDX-License-Identifier: Apache-2.0
// Which seeds make an event: those of which seeds_min are causally connected, each with each, within a window.
//
// Terms
//   anchor     the earliest seed of a group. Every seed is tried as one.
//   ahead      the seeds that come after the anchor by at most window_ns, and of them at most kAheadMax: bit k of a mask is seed anchor + 1 + k.
//   connected  match3B; with directions, also match1D with one direction for the whole group.
//   core       what is left of a group when seeds with too few connections in it are taken out, again and again (pruning by degree).
//   clique     seeds each of which is connected to each other.
//   triggered  a seed that is in a clique of seeds_min with its anchor, or in a core where cliques are not asked for.
//
// The same function for the CPU and a GPU; sums are of integers and comparisons of doubles, so that both say the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nanet/host_device.hpp"
#include "nanet/km3/l1.hpp"
#include "nanet/km3/match1d.hpp"
#include "nanet/km3/match3b.hpp"

namespace nanet::km3 {

inline constexpr std::uint32_t kAheadMax = 64;
inline constexpr std::uint32_t kSeedsMinMost = 16;
inline constexpr std::uint32_t kStepsMax = 4096;  // of the searches for cliques of one anchor

struct JudgeCuts {
  std::uint32_t seeds_min = 5;  // from 2 to kSeedsMinMost
  double window_ns = 2000.0;
  std::uint32_t cliques = 1;  // 0: a core is enough
  Match3B match3b;
  Match1D match1d;
};

inline constexpr std::uint32_t kCrowded = 1;  // more than kAheadMax seeds in the window: the later ones were not looked at with this anchor
inline constexpr std::uint32_t kGaveUp = 2;  // the search took kStepsMax steps; what was not decided counts as triggered

struct Judgement {
  std::uint64_t members = 0;    // triggered seeds ahead of the anchor
  std::uint32_t triggered = 0;  // 1: the anchor is
  std::uint32_t flags = 0;
};

namespace detail {

NANET_HD inline std::uint32_t bits_of(std::uint64_t mask) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__popcll(static_cast<long long>(mask)));
#else
  return static_cast<std::uint32_t>(__builtin_popcountll(mask));
#endif
}

NANET_HD inline std::uint32_t lowest_of(std::uint64_t mask) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__ffsll(static_cast<long long>(mask)) - 1);
#else
  return static_cast<std::uint32_t>(__builtin_ctzll(mask));
#endif
}

// Seeds of `group`, the anchor's neighbours, that have at least seeds_min - 1 connections in it, the anchor's counted.
NANET_HD inline std::uint64_t core_of(const std::uint64_t* connected, std::uint64_t group, std::uint32_t seeds_min) {
  for (std::uint64_t before = 0; before != group;) {
    before = group;
    for (std::uint64_t left = before; left != 0; left &= left - 1) {
      const std::uint32_t k = lowest_of(left);
      if (bits_of(connected[k] & group) + 2 < seeds_min) group &= ~(std::uint64_t{1} << k);
    }
  }
  return bits_of(group) + 1 >= seeds_min ? group : 0;
}

// A clique of `size` seeds among `group`. steps counts down over the calls of an anchor; at 0 the answer is yes.
NANET_HD inline bool has_clique(const std::uint64_t* connected, std::uint64_t group, std::uint32_t size, std::uint32_t& steps) {
  if (size == 0) return true;
  std::uint64_t left[kSeedsMinMost];
  left[0] = group;
  std::uint32_t depth = 0;
  while (true) {
    if (steps == 0) return true;
    --steps;
    if (bits_of(left[depth]) + depth < size) {  // too few are left
      if (depth == 0) return false;
      --depth;
      continue;
    }
    const std::uint32_t k = lowest_of(left[depth]);
    left[depth] &= left[depth] - 1;
    if (depth + 1 == size) return true;
    left[depth + 1] = left[depth] & connected[k];
    ++depth;
  }
}

// The triggered ones of `group`, all of them neighbours of the anchor.
NANET_HD inline std::uint64_t members_of(const std::uint64_t* connected, std::uint64_t group, const JudgeCuts& cuts,
                                         std::uint32_t& steps) {
  group = core_of(connected, group, cuts.seeds_min);
  if (cuts.cliques == 0 || group == 0) return group;
  std::uint64_t members = 0;
  for (std::uint64_t left = group; left != 0; left &= left - 1) {
    const std::uint32_t k = lowest_of(left);
    if (has_clique(connected, group & connected[k], cuts.seeds_min - 2, steps)) members |= std::uint64_t{1} << k;
  }
  return members;
}

// Those of `group` that are connected to the anchor.
template <class Connected>
NANET_HD inline std::uint64_t neighbours_of(std::uint64_t group, const Connected& is_connected) {
  std::uint64_t neighbours = 0;
  for (std::uint64_t left = group; left != 0; left &= left - 1) {
    const std::uint32_t k = lowest_of(left);
    if (is_connected(k)) neighbours |= std::uint64_t{1} << k;
  }
  return neighbours;
}

// Fills in connected[] of the seeds of `group`. Pairs that are not in `allowed`, where that is given, are not asked.
template <class Connected>
NANET_HD inline void connect(std::uint64_t* connected, std::uint64_t group, const std::uint64_t* allowed,
                             const Connected& is_connected) {
  for (std::uint64_t left = group; left != 0; left &= left - 1) connected[lowest_of(left)] = 0;
  for (std::uint64_t left = group; left != 0; left &= left - 1) {
    const std::uint32_t k = lowest_of(left);
    std::uint64_t later = left & (left - 1);
    if (allowed != nullptr) later &= allowed[k];
    for (; later != 0; later &= later - 1) {
      const std::uint32_t m = lowest_of(later);
      if (!is_connected(k, m)) continue;
      connected[k] |= std::uint64_t{1} << m;
      connected[m] |= std::uint64_t{1} << k;
    }
  }
}

// The seeds ahead of the anchor.
NANET_HD inline std::uint64_t ahead_of(const Seed* seeds, std::uint32_t count, std::uint32_t anchor, double window_ns,
                                       std::uint32_t& flags) {
  std::uint32_t ahead = 0;
  while (anchor + 1 + ahead < count && seeds[anchor + 1 + ahead].point.time_ns - seeds[anchor].point.time_ns <= window_ns) {
    if (ahead == kAheadMax) {
      flags |= kCrowded;
      break;
    }
    ++ahead;
  }
  return ahead == 0 ? 0 : ~std::uint64_t{0} >> (64 - ahead);
}

}  // namespace detail

// Of the seed `anchor` of `count` seeds in the order of their times. With direction_count 0 directions are not asked for.
NANET_HD inline Judgement judge(const Seed* seeds, std::uint32_t count, std::uint32_t anchor, const JudgeCuts& cuts,
                                const Direction* directions, std::uint32_t direction_count) {
  Judgement judgement;
  const Seed* const ahead = seeds + anchor + 1;
  const Point here = seeds[anchor].point;
  const std::uint64_t all = detail::ahead_of(seeds, count, anchor, cuts.window_ns, judgement.flags);
  const std::uint64_t neighbours = detail::neighbours_of(all, [&](std::uint32_t k) { return cuts.match3b(here, ahead[k].point); });
  if (detail::bits_of(neighbours) + 1 < cuts.seeds_min) return judgement;  // nearly always

  std::uint64_t connected[kAheadMax];
  detail::connect(connected, neighbours, nullptr,
                  [&](std::uint32_t k, std::uint32_t m) { return cuts.match3b(ahead[k].point, ahead[m].point); });
  std::uint32_t steps = kStepsMax;
  const std::uint64_t possible = detail::members_of(connected, neighbours, cuts, steps);
  std::uint64_t members = direction_count == 0 ? possible : 0;
  for (std::uint32_t d = 0; d < direction_count && members != possible; ++d) {
    const Direction along = directions[d];
    const std::uint64_t group = detail::neighbours_of(possible,
                                                      [&](std::uint32_t k) { return cuts.match1d(here, ahead[k].point, along); });
    if (detail::bits_of(group) + 1 < cuts.seeds_min) continue;
    std::uint64_t connected_along[kAheadMax];
    detail::connect(connected_along, group, connected,
                    [&](std::uint32_t k, std::uint32_t m) { return cuts.match1d(ahead[k].point, ahead[m].point, along); });
    members |= detail::members_of(connected_along, group, cuts, steps);
  }
  if (steps == 0) judgement.flags |= kGaveUp;
  judgement.members = members;
  judgement.triggered = members != 0 ? 1u : 0u;
  return judgement;
}

// Who judges the seeds of a slice: the CPU, or a GPU in its place (km3_gpu).
class SeedJudge {
 public:
  virtual ~SeedJudge() = default;
  // judgements has as many places as there are seeds. Called once a slice.
  virtual void judge_all(std::span<const Seed> seeds, const JudgeCuts& cuts, std::span<const Direction> directions,
                         std::span<Judgement> judgements) = 0;
};

class CpuJudge final : public SeedJudge {
 public:
  void judge_all(std::span<const Seed> seeds, const JudgeCuts& cuts, std::span<const Direction> directions,
                 std::span<Judgement> judgements) override {
    const auto count = static_cast<std::uint32_t>(seeds.size());
    const auto direction_count = static_cast<std::uint32_t>(directions.size());
    for (std::uint32_t i = 0; i < count; ++i)
      judgements[i] = judge(seeds.data(), count, i, cuts, directions.data(), direction_count);
  }
};

}  // namespace nanet::km3
