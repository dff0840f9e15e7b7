// SPDX-License-Identifier: Apache-2.0
// The cuts of the histogram finder.
#pragma once

#include <cstdint>

#include "nanet/config/setting.hpp"

namespace nanet::rich {

struct HistogramCuts {
  static constexpr config::Component component{"HistogramCuts", "Cuts of the finder histogram."};

  float center_range_mm = 140.0F;
  std::uint32_t rings_max = 4;
  float refit_start_mm = 40.0F;
  float refit_end_mm = 22.0F;
  std::uint32_t refit_passes = 4;
  std::uint32_t share_passes = 2;
  float window_mm = 15.0F;
  float remove_mm = 10.0F;
  std::uint32_t min_hits = 5;
  float significance_min = 2.0F;
  float radius_min_mm = 65.0F;
  float radius_max_mm = 215.0F;
  float rms_max_mm = 11.0F;

  template <class Visit>
  void visit(Visit&& v) {
    v("center_range_mm", center_range_mm,
      {.help = "Candidate centres extend to about here, no further than 200",
       .unit = "mm",
       .least = 0,
       .too_small = "rings of particles far off the axis are lost",
       .too_big = "time, and fakes"});
    v("rings_max", rings_max,
      {.help = "Rings to look for, at most 4", .least = 1, .most = 4, .too_small = "rings are lost", .too_big = "time, and fakes"});
    v("refit_start_mm", refit_start_mm,
      {.help = "Scale of the weights in the first fit from a peak",
       .unit = "mm",
       .least = 0,
       .too_small = "the circle keeps to the half of its hits that made the peak",
       .too_big = "other rings pull it away"});
    v("refit_end_mm", refit_end_mm,
      {.help = "Scale in the last fit, and when the rings share the hits",
       .unit = "mm",
       .least = 0,
       .too_small = "good hits count too little",
       .too_big = "noise pulls it away"});
    v("refit_passes", refit_passes,
      {.help = "Number of weighted fits from a peak, at most 16",
       .least = 1,
       .most = 16,
       .too_small = "the fit has not settled",
       .too_big = "time"});
    v("share_passes", share_passes,
      {.help = "Number of times that the rings share the hits again, at most 16. 0: crossing rings keep each other's hits; too "
               "big: time",
       .least = 0,
       .most = 16});
    v("window_mm", window_mm,
      {.help = "Hits this close to the circle belong to the ring. A hit scatters by 5.4 mm",
       .unit = "mm",
       .least = 0,
       .too_small = "good hits are lost",
       .too_big = "other rings' hits are included"});
    v("remove_mm", remove_mm,
      {.help = "Hits this close to a ring are removed before the search for the next peak",
       .unit = "mm",
       .least = 0,
       .too_small = "leftovers make a ring again",
       .too_big = "crossing rings lose hits"});
    v("min_hits", min_hits,
      {.help = "Fewest hits of a ring, without those closer to another; at least 4",
       .least = 4,
       .most = 128,
       .too_small = "leftovers make rings",
       .too_big = "faint rings are lost"});
    v("significance_min", significance_min,
      {.help = "Smallest significance (n - b) / sqrt(b + 1)",
       .least = 0,
       .too_small = "chance makes rings in crowded events",
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
