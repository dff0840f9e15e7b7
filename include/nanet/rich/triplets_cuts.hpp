// SPDX-License-Identifier: Apache-2.0
// The cuts of the triplets finder.
#pragma once

#include <cstdint>

#include "nanet/config/setting.hpp"

namespace nanet::rich {

struct TripletsCuts {
  static constexpr config::Component component{"TripletsCuts", "Cuts of the finder triplets."};

  std::uint32_t rings_max = 4;
  std::uint32_t seeds_max = 4;
  float enough_share = 0.7F;
  float pair_distance_min_mm = 35.0F;
  float triplet_radius_min_mm = 72.0F;
  float triplet_radius_max_mm = 205.0F;
  float center_max_mm = 200.0F;
  float score_width_mm = 16.0F;
  float penalty_per_mm = 0.008F;
  float refit_width_mm = 20.0F;
  std::uint32_t refit_steps = 2;
  float explained_width_mm = 15.0F;
  float seed_weight_min = 0.5F;
  float gain_min = 3.6F;
  float gain_per_outsider = 0.15F;
  float gain_outsiders_max = 6.0F;
  float joint_width_mm = 34.0F;
  std::uint32_t joint_steps = 3;
  float share_width_mm = 22.0F;
  std::uint32_t exchange_passes = 1;
  float keep_mm = 14.0F;
  std::uint32_t hits_min = 4;
  float radius_min_mm = 75.0F;
  float radius_max_mm = 205.0F;
  float rms_max_mm = 10.0F;
  std::uint32_t octants_min = 3;
  std::uint32_t time_use = 0;
  float time_sigma_ns = 0.28F;

  template <class Visit>
  void visit(Visit&& v) {
    v("rings_max", rings_max,
      {.help = "Rings to look for, at most 4. 1: a second ring's hits are noise to the first", .least = 1, .most = 4});
    v("seeds_max", seeds_max,
      {.help = "Hits from which circles are drawn in each search",
       .least = 0,
       .too_small = "a search may start from noise or poor hits only",
       .too_big = "slow, no gain beyond 8"});
    v("enough_share", enough_share,
      {.help = "A search ends when a seed's best circle scores this fraction of the hits' total weight",
       .least = 0,
       .too_small = "a poor circle is taken",
       .too_big = "slower"});
    v("pair_distance_min_mm", pair_distance_min_mm,
      {.help = "Smallest distance between any two hits of a triplet",
       .unit = "mm",
       .least = 0,
       .too_small = "poor circles, more time",
       .too_big = "small rings with few hits are lost"});
    v("triplet_radius_min_mm", triplet_radius_min_mm,
      {.help = "Not used any more: it follows from cuts.radius_min_mm", .unit = "mm", .least = 0, .nullable = true, .unset = true});
    v("triplet_radius_max_mm", triplet_radius_max_mm,
      {.help = "Not used any more: it follows from cuts.radius_max_mm", .unit = "mm", .least = 0, .nullable = true, .unset = true});
    v("center_max_mm", center_max_mm,
      {.help = "Old name of cuts.center_max_mm, which holds for every finder", .unit = "mm", .least = 0, .nullable = true, .unset = true});
    v("score_width_mm", score_width_mm,
      {.help = "A hit farther from a circle adds nothing to its score",
       .unit = "mm",
       .least = 0,
       .too_small = "a circle must be exact to be found",
       .too_big = "other rings' hits count"});
    v("penalty_per_mm", penalty_per_mm,
      {.help = "Score, in hits, that each mm of radius costs",
       .unit = "mm",
       .least = 0,
       .too_small = "big chance circles through many hits win",
       .too_big = "big rings lose to small ones"});
    v("refit_width_mm", refit_width_mm,
      {.help = "Biweight width of the refit in a search",
       .unit = "mm",
       .least = 0,
       .too_small = "stays at the triplet",
       .too_big = "pulled by neighbours"});
    v("refit_steps", refit_steps,
      {.help = "Number of steps of the refit in a search",
       .least = 0,
       .too_small = "stays at the triplet",
       .too_big = "pulled by neighbours"});
    v("explained_width_mm", explained_width_mm,
      {.help = "A hit closer than this to a ring already found is partly explained by it and counts less for the next ring",
       .unit = "mm",
       .least = 0,
       .too_small = "the same ring is found twice",
       .too_big = "nearby rings are lost"});
    v("seed_weight_min", seed_weight_min,
      {.help = "Weight that a hit must have left to be used in a triplet",
       .least = 0,
       .too_small = "more time",
       .too_big = "rings that share hits are lost"});
    v("gain_min", gain_min,
      {.help = "Smallest score of a ring, in hits that no other ring explains",
       .least = 0,
       .too_small = "fakes",
       .too_big = "rings with few hits are lost"});
    v("gain_per_outsider", gain_per_outsider,
      {.help = "Added to gain_min for each hit (at most gain_outsiders_max) that neither this ring nor another explains: many "
               "stray hits make rings by chance",
       .least = 0,
       .too_small = "fakes in noise",
       .too_big = "rings with few hits are lost in noise"});
    v("gain_outsiders_max", gain_outsiders_max,
      {.help = "Added to gain_min for each hit (at most gain_outsiders_max) that neither this ring nor another explains: many "
               "stray hits make rings by chance",
       .least = 0,
       .too_small = "fakes in noise",
       .too_big = "rings with few hits are lost in noise"});
    v("joint_width_mm", joint_width_mm,
      {.help = "Biweight width of the joint fit",
       .unit = "mm",
       .least = 0,
       .too_small = "discards true hits, so the radius is worse",
       .too_big = "noise pulls"});
    v("joint_steps", joint_steps,
      {.help = "Number of steps of the joint fit",
       .least = 0,
       .too_small = "discards true hits, so the radius is worse",
       .too_big = "noise pulls"});
    v("share_width_mm", share_width_mm,
      {.help = "Hits closer than this to several rings are shared between them in the joint fit. Too small or too big: radii of "
               "crossing rings are biased",
       .unit = "mm",
       .least = 0});
    v("exchange_passes", exchange_passes,
      {.help = "Number of times that each ring is searched for again alongside the others. 0: faster, worse for several rings",
       .least = 0});
    v("keep_mm", keep_mm,
      {.help = "Hits this close to the circle belong to the ring",
       .unit = "mm",
       .least = 0,
       .too_small = "true hits are left out",
       .too_big = "noise is included"});
    v("hits_min", hits_min,
      {.help = "Fewest hits of a ring; at least 4", .least = 4, .most = 128, .too_small = "fakes", .too_big = "lost rings"});
    v("radius_min_mm", radius_min_mm,
      {.help = "Old name of cuts.radius_min_mm, which holds for every finder", .unit = "mm", .least = 0, .nullable = true, .unset = true});
    v("radius_max_mm", radius_max_mm,
      {.help = "Old name of cuts.radius_max_mm, which holds for every finder", .unit = "mm", .least = 0, .nullable = true, .unset = true});
    v("rms_max_mm", rms_max_mm,
      {.help = "Largest rms of a ring: sqrt(hits / (hits - 3)) times that of the distances",
       .unit = "mm",
       .least = 0,
       .too_small = "lost rings",
       .too_big = "fakes"});
    v("octants_min", octants_min,
      {.help = "Fewest octants, seen from the ring's centre, that have a hit",
       .least = 0,
       .too_small = "fakes",
       .too_big = "lost rings"});
    v("time_use", time_use,
      {.help = "0: hit times do not matter. 1: hits of a ring must agree in time: separates rings of other times and discards "
               "noise",
       .least = 0,
       .most = 1});
    v("time_sigma_ns", time_sigma_ns,
      {.help = "Resolution of a hit's time",
       .unit = "ns",
       .least = 0,
       .too_small = "hits are lost",
       .too_big = "other rings' hits are included"});
  }
};

}  // namespace nanet::rich
