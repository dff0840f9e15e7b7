// SPDX-License-Identifier: Apache-2.0
// The cuts of the mixture finder (mixture.hpp). Values that make no sense are taken as the nearest that do.
#pragma once

#include <cstdint>

#include "nanet/config/setting.hpp"

namespace nanet::rich {

struct MixtureCuts {
  static constexpr config::Component component{"MixtureCuts", "Cuts of the finder mixture."};

  float ring_yield = 12.5F;
  float yield_width = 0.2F;
  float noise_hits = 1.2F;
  float noise_width = 0.7F;
  float ring_penalty = 4.5F;
  float sigma_mm = 5.48F;
  float center_sigma_mm = 50.0F;
  float radius_min_mm = 70.0F;
  float radius_max_mm = 200.0F;
  float pair_distance_min_mm = 60.0F;
  float start_distance_min_mm = 20.0F;
  float start_gap = 4.0F;
  float first_gap = 12.0F;
  std::uint32_t starts = 4;
  std::uint32_t em_steps = 6;
  std::uint32_t move_rounds = 4;
  std::uint32_t deep_rings = 3;
  std::uint32_t hits_min = 4;
  std::uint32_t disk_use = 1;
  std::uint32_t time_use = 0;
  float time_sigma_ns = 0.28F;

  template <class Visit>
  void visit(Visit&& v) {
    v("ring_yield", ring_yield,
      {.help = "Expected hits of a ring that lies wholly on the disk",
       .least = 0,
       .too_small = "noise makes rings",
       .too_big = "faint rings are lost"});
    v("yield_width", yield_width,
      {.help = "Relative uncertainty of the expected hits",
       .least = 0,
       .too_small = "faint and bright rings are distorted",
       .too_big = "few hits make a ring"});
    v("noise_hits", noise_hits,
      {.help = "Noise hits expected on a disk", .least = 0, .too_small = "noise makes rings", .too_big = "faint rings are lost"});
    v("noise_width", noise_width,
      {.help = "Relative uncertainty of the noise hits",
       .least = 0,
       .too_small = "an event with much noise makes rings",
       .too_big = "a faint ring may be taken as noise"});
    v("ring_penalty", ring_penalty,
      {.help = "Log likelihood that a ring must gain",
       .least = 0,
       .too_small = "fakes and clones",
       .too_big = "faint and overlapping rings are lost"});
    v("sigma_mm", sigma_mm,
      {.help = "Sigma, rms of a hit's distance from its ring",
       .unit = "mm",
       .least = 0,
       .too_small = "hits are lost to the noise",
       .too_big = "noise is included, rings blur"});
    v("center_sigma_mm", center_sigma_mm,
      {.help = "Expected spread of the centres about the disk's middle in x and y",
       .unit = "mm",
       .least = 0,
       .too_small = "rings far out are lost",
       .too_big = "slightly less is known"});
    v("radius_min_mm", radius_min_mm,
      {.help = "Old name of cuts.radius_min_mm, which holds for every finder", .unit = "mm", .least = 0, .nullable = true, .unset = true});
    v("radius_max_mm", radius_max_mm,
      {.help = "Old name of cuts.radius_max_mm, which holds for every finder", .unit = "mm", .least = 0, .nullable = true, .unset = true});
    v("pair_distance_min_mm", pair_distance_min_mm,
      {.help = "Smallest distance between the hits of a start triplet",
       .unit = "mm",
       .least = 0,
       .too_small = "poor starts",
       .too_big = "small rings have none"});
    v("start_distance_min_mm", start_distance_min_mm,
      {.help = "Starts whose |dx| + |dy| + |dR| is less count as one",
       .unit = "mm",
       .least = 0,
       .too_small = "the same start again",
       .too_big = "nearby rings are missed"});
    v("start_gap", start_gap,
      {.help = "Log likelihood that EM may add to a start's score", .least = 0, .too_small = "rings are missed", .too_big = "slow"});
    v("first_gap", first_gap,
      {.help = "Log likelihood by which a first ring may start below the best",
       .least = 0,
       .too_small = "rings are missed",
       .too_big = "slow"});
    v("starts", starts,
      {.help = "Starts for each ring, 1 to 8", .least = 1, .most = 8, .too_small = "rings are missed", .too_big = "slow"});
    v("em_steps", em_steps,
      {.help = "Most EM steps of a start, 1 to 20", .least = 1, .most = 20, .too_small = "poor fits", .too_big = "slow"});
    v("move_rounds", move_rounds,
      {.help = "Number of times that each ring is removed and searched for again, 0 to 8",
       .least = 0,
       .most = 8,
       .too_small = "rings are missed",
       .too_big = "slow"});
    v("deep_rings", deep_rings,
      {.help = "From this many rings on, all but one are removed and searched for again, 3 to 5; 5: never",
       .least = 3,
       .most = 5,
       .too_small = "slow (an event of three rings takes five times as long)",
       .too_big = "rings that hold each other in a wrong place stay there"});
    v("hits_min", hits_min,
      {.help = "Fewest hits of a ring; at least 4", .least = 4, .most = 128, .too_small = "fakes", .too_big = "faint rings are lost"});
    v("disk_use", disk_use,
      {.help = "1: a ring's light is most likely on one disk, so the disk of its hits tells rings apart; 0: the disk is ignored",
       .least = 0,
       .most = 1});
    v("time_use", time_use,
      {.help = "1: rings are at the event's time and the noise is at any time, so pile-up is not found; 0: time is ignored",
       .least = 0,
       .most = 1});
    v("time_sigma_ns", time_sigma_ns,
      {.help = "Resolution of a hit's time",
       .unit = "ns",
       .least = 0,
       .too_small = "hits are lost to the noise",
       .too_big = "time tells less"});
  }
};

}  // namespace nanet::rich
