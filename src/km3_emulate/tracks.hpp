// SPDX-License-Identifier: Apache-2.0
// Muons near a tower and the Cherenkov light that its photomultipliers see of them, with the truth.
//
// Light of a track leaves it under the Cherenkov angle, cos = 1/n, and travels at c/n: so it reaches a place at
//   t = t0 + (L + D tan)/c,   L = (place - point) . direction,   D = distance of the place from the line
// where the track is at `point` at t0. Group velocity and scattering by the way are not in it; `scattered_share` stands for the latter.
// The mean number of photo-electrons is light_pe_m / D exp(-D / (sin absorption_m)) (1 + cos a) / 2, a: angle between the PM's axis and where
// the light comes from.
//
// Thread rules: nothing changes after it was made; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "km3_emulate/config.hpp"
#include "nanet/km3/detector.hpp"

namespace nanet::km3_emulate {

// Times in ns since the slice began, before the PM's own offset is taken off.
struct LightHit {
  double time_ns;
  std::uint32_t floor;  // from 0
  std::uint8_t pm;
  std::uint8_t charge;  // 1/10 photo-electron
  bool scattered;
};

struct Track {
  km3::Vector point_m;    // where it is at time_ns
  km3::Vector direction;  // of flight, length 1
  double time_ns = 0;     // since the slice began
  std::vector<LightHit> hits;
};

double cherenkov_tangent();

// When light of a track at a place.
double cherenkov_time_ns(const Track& track, const km3::Vector& place_m);

// The charge of so many photo-electrons as a hit says it; 0.3 at least, the threshold.
class Random;
std::uint8_t charge_of(double pe);

class TrackMaker {
 public:
  // first_pm[f]: index in detector.pms() of PM 0 of floor f of the tower.
  TrackMaker(const TowerConfig& config, const km3::Detector& detector, std::vector<std::uint32_t> first_pms);

  // The tracks that are at their nearest to the tower's middle during a slice, always the same. Their light may be seen up to some us later or
  // earlier, in a neighbouring slice: then a hit's time is beyond the slice.
  std::vector<Track> tracks(std::uint64_t slice) const;

 private:
  void light(Track& track, Random& random) const;

  const TowerConfig& config_;
  const km3::Detector& detector_;
  std::vector<std::uint32_t> first_pms_;
  km3::Vector middle_m_;
};

}  // namespace nanet::km3_emulate
