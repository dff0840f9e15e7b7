// SPDX-License-Identifier: Apache-2.0
// The cuts of the mixture finder (mixture.hpp). Values that make no sense are taken as the nearest that do.
#pragma once

#include <cstdint>

namespace nanet::rich {

struct MixtureCuts {
  // Expected hits of a ring that lies wholly on the disk. Too small: noise makes rings; too big: faint rings are lost.
  float ring_yield = 12.5F;
  // Relative uncertainty of the expected hits. Too small: faint and bright rings are distorted; too big: few hits make a ring.
  float yield_width = 0.2F;
  // Noise hits expected on a disk. Too small: noise makes rings; too big: faint rings are lost.
  float noise_hits = 1.2F;
  // Relative uncertainty of the noise hits. Too small: an event with much noise makes rings; too big: a faint ring may be taken as noise.
  float noise_width = 0.7F;
  // Log likelihood that a ring must gain. Too small: fakes and clones; too big: faint and overlapping rings are lost.
  float ring_penalty = 4.5F;
  // mm, rms of a hit's distance from its ring. Too small: hits are lost to the noise; too big: noise is included, rings blur.
  float sigma_mm = 5.48F;
  // mm, expected spread of the centres about the disk's middle in x and y. Too small: rings far out are lost; too big: slightly less is known.
  float center_sigma_mm = 50.0F;
  // mm. Rings outside these limits are not found; too wide: more fakes.
  float radius_min_mm = 70.0F;
  float radius_max_mm = 200.0F;
  // mm, smallest distance between the hits of a start triplet. Too small: poor starts; too big: small rings have none.
  float pair_distance_min_mm = 60.0F;
  // mm; starts whose |dx| + |dy| + |dR| is less count as one. Too small: the same start again; too big: nearby rings are missed.
  float start_distance_min_mm = 20.0F;
  // Log likelihood that EM may add to a start's score. Too small: rings are missed; too big: slow.
  float start_gap = 4.0F;
  // Log likelihood by which a first ring may start below the best. Too small: rings are missed; too big: slow.
  float first_gap = 12.0F;
  // Starts for each ring, 1 to 8. Too small: rings are missed; too big: slow.
  std::uint32_t starts = 4;
  // Most EM steps of a start, 1 to 20. Too small: poor fits; too big: slow.
  std::uint32_t em_steps = 6;
  // Number of times that each ring is removed and searched for again, 0 to 8. Too small: rings are missed; too big: slow.
  std::uint32_t move_rounds = 4;
  // From this many rings on, all but one are removed and searched for again, 3 to 5; 5: never. Too small: slow (an event of three rings takes five times as
  // long); too big: rings that hold each other in a wrong place stay there.
  std::uint32_t deep_rings = 3;
  // Fewest hits of a ring; at least 4. Too small: fakes; too big: faint rings are lost.
  std::uint32_t hits_min = 4;
  // 1: a ring's light is most likely on one disk, so the disk of its hits tells rings apart; 0: the disk is ignored.
  std::uint32_t disk_use = 1;
  // 1: rings are at the event's time and the noise is at any time, so pile-up is not found; 0: time is ignored.
  std::uint32_t time_use = 0;
  // ns, resolution of a hit's time. Too small: hits are lost to the noise; too big: time tells less.
  float time_sigma_ns = 0.28F;

  template <class Visit>
  void visit(Visit&& v) {
    v("ring_yield", ring_yield);
    v("yield_width", yield_width);
    v("noise_hits", noise_hits);
    v("noise_width", noise_width);
    v("ring_penalty", ring_penalty);
    v("sigma_mm", sigma_mm);
    v("center_sigma_mm", center_sigma_mm);
    v("radius_min_mm", radius_min_mm);
    v("radius_max_mm", radius_max_mm);
    v("pair_distance_min_mm", pair_distance_min_mm);
    v("start_distance_min_mm", start_distance_min_mm);
    v("start_gap", start_gap);
    v("first_gap", first_gap);
    v("starts", starts);
    v("em_steps", em_steps);
    v("move_rounds", move_rounds);
    v("deep_rings", deep_rings);
    v("hits_min", hits_min);
    v("disk_use", disk_use);
    v("time_use", time_use);
    v("time_sigma_ns", time_sigma_ns);
  }
};

}  // namespace nanet::rich
