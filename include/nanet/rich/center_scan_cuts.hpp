// SPDX-License-Identifier: Apache-2.0
// The cuts of pomh and domh, the finders that scan candidate centres.
#pragma once

#include <cstdint>

#include "nanet/config/setting.hpp"

namespace nanet::rich {

// Cuts of the finders that take one ring from the peak.
struct CenterScanCuts {
  static constexpr config::Component component{"CenterScanCuts", "Cuts of the finders pomh and domh."};

  float center_range_mm = 140.0F;
  float refit_start_mm = 60.0F;
  float refit_end_mm = 20.0F;
  std::uint32_t refit_passes = 4;
  float window_mm = 16.0F;
  std::uint32_t min_hits = 4;
  float radius_min_mm = 65.0F;
  float radius_max_mm = 215.0F;
  float rms_max_mm = 9.0F;

  template <class Visit>
  void visit(Visit&& v) {
    v("center_range_mm", center_range_mm,
      {.help = "Candidate centres extend to about here, no further than 200",
       .unit = "mm",
       .least = 0,
       .too_small = "rings of particles far off the axis are lost",
       .too_big = "time, and fakes"});
    v("refit_start_mm", refit_start_mm,
      {.help = "Scale of the weights in the first fit from the peak",
       .unit = "mm",
       .least = 0,
       .too_small = "the circle keeps to the half of its hits that made the peak",
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

struct PomhCuts : CenterScanCuts {};
struct DomhCuts : CenterScanCuts {};

}  // namespace nanet::rich
