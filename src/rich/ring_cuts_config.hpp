// SPDX-License-Identifier: Apache-2.0
// What can be configured of the cuts on rings: RingCuts, whose defaults count, and the momentum that the radii of the other kinds follow from.
//
// Thread rules: pure functions.
#pragma once

#include <optional>

#include "nanet/config/setting.hpp"
#include "nanet/rich/decision.hpp"

namespace nanet::rich {

struct RingCutsConfig : RingCuts {
  static constexpr config::Component component{
      "Cuts", "When a fit counts as a ring, and of which kind a ring is: electron, muon, pion, kaon or other."};

  double momentum_gev = 0;  // 0: no hypothesis

  template <class Visit>
  void visit(Visit&& v) {
    visit_ring(v);
    visit_kinds(v);
  }

  // The range of radii is not empty.
  std::optional<config::Problem> check() const;

  // With the radii that the momentum gives.
  RingCuts cuts() const {
    RingCuts whole = *this;
    if (momentum_gev > 0) set_momentum(whole, momentum_gev);
    return whole;
  }

 private:
  template <class Visit>
  void visit_ring(Visit& v) {
    v("min_hits", min_hits,
      {.help = "Fewest mapped hits",
       .unit = "hits",
       .least = 4,
       .most = 128,
       .too_small = "rings through noise: any three hits lie on a circle",
       .too_big = "rings with few photons are not found"});
    v("radius_min_mm", radius_min_mm,
      {.help = "Smallest radius; every finder looks 30 mm further, so that a ring outside is refused and not taken for another",
       .unit = "mm",
       .least = 0,
       .most = 1000,
       .too_small = "clusters of noise pass as rings",
       .too_big = "particles near their threshold are not found"});
    v("radius_max_mm", radius_max_mm,
      {.help = "Largest radius; no particle's ring is larger than an electron's",
       .unit = "mm",
       .most = 1000,
       .above = 0,
       .too_small = "electron rings are cut",
       .too_big = "nearly straight lines of noise pass as rings"});
    v("center_max_mm", center_max_mm,
      {.help = "Largest distance of a ring's centre from the disk's middle",
       .unit = "mm",
       .most = 1000,
       .above = 0,
       .too_small = "rings of particles far off the axis are refused",
       .too_big = "circles of noise pass as rings"});
    v("rms_max_mm", rms_max_mm,
      {.help = "Largest rms distance of a hit from the ring, corrected for the three fitted parameters",
       .unit = "mm",
       .most = 1000,
       .above = 0,
       .too_small = "good rings are refused: one hit is known to about 5 mm",
       .too_big = "bad fits pass as rings"});
  }

  template <class Visit>
  void visit_kinds(Visit& v) {
    v("electron_radius_mm", electron_radius_mm, {.help = "Radius of an electron's ring", .unit = "mm", .most = 1000, .above = 0});
    v("electron_window_mm", electron_window_mm,
      {.help = "A ring is electron-like when its radius is at most this far from electron_radius_mm",
       .unit = "mm",
       .least = 0,
       .most = 1000,
       .too_small = "electrons are missed: the radius is known to about 1.8 mm with 12 hits",
       .too_big = "fast muons and pions pass as electrons"});
    v("momentum_gev", momentum_gev,
      {.help = "Momentum hypothesis that gives the radii of muons, pions and kaons; null: none, only electrons are identified",
       .unit = "GeV/c",
       .most = 400,
       .above = 0,
       .nullable = true});
    v("kind_window_mm", kind_window_mm,
      {.help = "A ring is a muon's, pion's or kaon's when its radius is at most this far from the one expected",
       .unit = "mm",
       .least = 0,
       .most = 1000,
       .too_small = "they are missed: the radius is known to about 1.8 mm with 12 hits",
       .too_big = "rings of other momenta pass for them"});
  }
};

}  // namespace nanet::rich
