// SPDX-License-Identifier: Apache-2.0
// The cuts of the Almagest finder (almagest.hpp in src).
#pragma once

#include <cstdint>

#include "nanet/config/setting.hpp"

namespace nanet::rich {

struct AlmagestCuts {
  static constexpr config::Component component{"AlmagestCuts", "Cuts of the finder almagest."};

  float time_window_ns = 10.0F;
  float pair_distance_min_mm = 90.0F;
  float far_pair_distance_min_mm = 130.0F;
  float circumradius_max_mm = 200.0F;
  float score_width_mm = 20.0F;
  float score_min = 4.0F;
  float score_enough = 0.6F;
  float ptolemy_max_mm2 = 40.0F;
  std::uint32_t ptolemy_hits_min = 3;
  float take_in_mm = 29.0F;
  float keep_mm = 14.0F;
  float radius_min_mm = 50.0F;
  float radius_max_mm = 230.0F;
  float rms_max_mm = 10.0F;
  std::uint32_t hits_min = 5;

  template <class Visit>
  void visit(Visit&& v) {
    v("time_window_ns", time_window_ns,
      {.help = "Full width of the window in which most hits lie; a hit word spans 6.0 ns",
       .unit = "ns",
       .least = 0,
       .too_small = "hits are lost (0.28 ns a hit)",
       .too_big = "pile-up stays"});
    v("pair_distance_min_mm", pair_distance_min_mm,
      {.help = "Smallest distance of B from A",
       .unit = "mm",
       .least = 0,
       .too_small = "the circle is poorly determined",
       .too_big = "small rings are lost (a ring is 2 R wide)"});
    v("far_pair_distance_min_mm", far_pair_distance_min_mm,
      {.help = "Smallest distance of C from A. Ours (published: as for B)",
       .unit = "mm",
       .least = 0,
       .too_small = "circles of big rings are poorly determined",
       .too_big = "small rings are lost"});
    v("circumradius_max_mm", circumradius_max_mm,
      {.help = "Largest radius of a triplet's circle",
       .unit = "mm",
       .least = 0,
       .too_small = "electron rings (190 mm) are lost",
       .too_big = "flat triplets of noise pass"});
    v("score_width_mm", score_width_mm,
      {.help = "Distance from a triplet's circle at which a hit counts for nothing (on it: 1)",
       .unit = "mm",
       .least = 0,
       .too_small = "good triplets lose",
       .too_big = "bad ones win"});
    v("score_min", score_min,
      {.help = "Smallest score of the best triplet, in hits, its own three included",
       .least = 0,
       .too_small = "noise passes",
       .too_big = "rings with few hits are lost"});
    v("score_enough", score_enough,
      {.help = "Fraction of the hits left: if a triplet of the first eight starts scores this much, the other eight are not tried. "
               "Ours",
       .least = 0,
       .too_small = "worse triplets win; above 1: never, which costs time"});
    v("ptolemy_max_mm2", ptolemy_max_mm2,
      {.help = "Tolerance of Ptolemy's test", .unit = "mm^2", .least = 0, .too_small = "few hits pass", .too_big = "noise passes"});
    v("ptolemy_hits_min", ptolemy_hits_min,
      {.help = "Hits that must pass Ptolemy's test, A, B and C included, which always do: up to 3, the test is skipped (published: "
               "4)",
       .least = 0,
       .too_small = "no effect, later cuts remain",
       .too_big = "half of the rings are lost"});
    v("take_in_mm", take_in_mm,
      {.help = "Distance from the triplet's circle within which hits are included",
       .unit = "mm",
       .least = 0,
       .too_small = "hits of poorly determined circles are lost",
       .too_big = "noise and other rings' hits pull it away"});
    v("keep_mm", keep_mm,
      {.help = "Distance from the first fit's circle within which hits are kept. Ours",
       .unit = "mm",
       .least = 0,
       .too_small = "the ring's own hits are lost (5.4 mm a hit)",
       .too_big = "as take_in_mm"});
    v("radius_min_mm", radius_min_mm,
      {.help = "Old name of cuts.radius_min_mm, which holds for every finder", .unit = "mm", .least = 0, .nullable = true, .unset = true});
    v("radius_max_mm", radius_max_mm,
      {.help = "Old name of cuts.radius_max_mm, which holds for every finder", .unit = "mm", .least = 0, .nullable = true, .unset = true});
    v("rms_max_mm", rms_max_mm,
      {.help = "Largest rms of the distances, corrected for the three fitted parameters: rms sqrt(N / (N - 3))",
       .unit = "mm",
       .least = 0,
       .too_small = "good rings are lost",
       .too_big = "fakes"});
    v("hits_min", hits_min,
      {.help = "Fewest hits of a ring, at least 4",
       .least = 4,
       .most = 128,
       .too_small = "noise makes rings",
       .too_big = "faint rings are lost"});
  }
};

}  // namespace nanet::rich
