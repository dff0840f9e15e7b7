// SPDX-License-Identifier: Apache-2.0
// The KM3NeT trigger's work on a GPU: what the functions of nanet/km3 say, with the same bits.
//
// Correlator: match3B of every hit with the hits in a window after it.
// make_gpu_judge: who judges seeds in a Trigger, so that its events are those of the CPU.
//
// Memory is taken when they are made. Errors: SetupError, problem (why) suggestion; also when a GPU fails at work.
// Thread rules: one thread per object.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "nanet/km3/judge.hpp"

namespace nanet::km3_gpu {

class Correlator {
 public:
  Correlator(std::uint32_t hits_max, const km3::Match3B& match, int device = 0);
  ~Correlator();
  Correlator(const Correlator&) = delete;
  Correlator& operator=(const Correlator&) = delete;

  // Loads hits in any order, hits_max at most (more are left out), and returns how many there are now.
  std::uint32_t load(std::span<const km3::Point> points);

  // Looks at each pair i < k <= i + window of the hits that were loaded. Returns the seconds that the GPU took.
  double correlate(std::uint32_t window);

  // Of the last correlate().
  std::uint64_t pair_count() const;
  void store_degrees(std::span<std::uint32_t> degrees) const;  // of each hit, with those before it and after it

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// seeds_max: as in the trigger's configuration.
std::unique_ptr<km3::SeedJudge> make_gpu_judge(std::uint32_t seeds_max, int device = 0);

}  // namespace nanet::km3_gpu
