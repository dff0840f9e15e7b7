// SPDX-License-Identifier: Apache-2.0
// The cuts of the tripls finder.
#pragma once

#include <cstdint>

#include "nanet/config/setting.hpp"

namespace nanet::rich {

struct TriplsCuts {
  static constexpr config::Component component{"TriplsCuts", "Cuts of the finder tripls."};

  std::uint32_t step_pairs = 12;
  float pair_distance_min_mm = 40.0F;
  float center_range_mm = 150.0F;
  float like_center_mm = 16.0F;
  float like_radius_mm = 12.0F;
  float refit_start_mm = 35.0F;
  float refit_end_mm = 20.0F;
  std::uint32_t refit_passes = 3;
  float window_mm = 16.0F;
  std::uint32_t min_hits = 4;
  float radius_min_mm = 65.0F;
  float radius_max_mm = 215.0F;
  float rms_max_mm = 9.0F;

  template <class Visit>
  void visit(Visit&& v) {
    v("step_pairs", step_pairs,
      {.help = "Pairs of steps (p, q), 1 to 12: triplets per hit",
       .least = 1,
       .most = 12,
       .too_small = "few clean triplets among noise",
       .too_big = "time"});
    v("pair_distance_min_mm", pair_distance_min_mm,
      {.help = "Hits of a triplet are at least this far apart",
       .unit = "mm",
       .least = 0,
       .too_small = "imprecise circles",
       .too_big = "few triplets of small rings"});
    v("center_range_mm", center_range_mm,
      {.help = "At most 1000. A triplet's centre is at most this far out in x and in y",
       .unit = "mm",
       .least = 0,
       .most = 1000,
       .too_small = "rings far off the axis are lost",
       .too_big = "circles of noise"});
    v("like_center_mm", like_center_mm,
      {.help = "Circles whose centres differ by at most this much in x and in y count as alike",
       .unit = "mm",
       .least = 0,
       .too_small = "circles of one ring are not recognised as alike",
       .too_big = "chance"});
    v("like_radius_mm", like_radius_mm, {.help = "The same for the radius", .unit = "mm", .least = 0});
    v("refit_start_mm", refit_start_mm,
      {.help = "Scale of the weights in the first fit",
       .unit = "mm",
       .least = 0,
       .too_small = "the circle keeps to part of its hits",
       .too_big = "noise and other rings pull it away"});
    v("refit_end_mm", refit_end_mm,
      {.help = "Scale in the last fit",
       .unit = "mm",
       .least = 0,
       .too_small = "good hits count too little and the radius scatters",
       .too_big = "noise pulls it away"});
    v("refit_passes", refit_passes,
      {.help = "Number of weighted fits, at most 16", .least = 1, .most = 16, .too_small = "the fit has not settled", .too_big = "time"});
    v("window_mm", window_mm,
      {.help = "Hits this close to the circle belong to the ring. A hit scatters by 5.4 mm",
       .unit = "mm",
       .least = 0,
       .too_small = "good hits are lost",
       .too_big = "noise is included"});
    v("min_hits", min_hits,
      {.help = "Fewest hits of a ring; at least 4",
       .least = 4,
       .most = 128,
       .too_small = "any noise makes rings",
       .too_big = "faint rings are lost"});
    v("radius_min_mm", radius_min_mm,
      {.help = "Old name of cuts.radius_min_mm, which holds for every finder", .unit = "mm", .least = 0, .nullable = true, .unset = true});
    v("radius_max_mm", radius_max_mm,
      {.help = "Old name of cuts.radius_max_mm, which holds for every finder", .unit = "mm", .least = 0, .nullable = true, .unset = true});
    v("rms_max_mm", rms_max_mm,
      {.help = "Largest rms, corrected for the three fitted parameters",
       .unit = "mm",
       .least = 0,
       .too_small = "good rings are lost",
       .too_big = "noise makes rings"});
  }
};

}  // namespace nanet::rich
