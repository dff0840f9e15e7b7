// SPDX-License-Identifier: Apache-2.0
// What hydrophones hear, as samples of 24 bits: noise, and pulses of beacons that come when sound has had the time to come.
//
// A pulse sent at time T by a beacon at distance d begins at T + d / speed: a sine whose frequency rises evenly, under a cosine window, with its height
// divided by d in m. It is sampled at its true time, not at the next sample.
//
// Thread rules: nothing changes after it was made; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "km3_emulate/config.hpp"
#include "nanet/km3/detector.hpp"

namespace nanet::km3_emulate {

inline constexpr std::uint32_t kSamplesASecond = 192'000;

class SoundMaker {
 public:
  explicit SoundMaker(const TowerConfig& config);

  // The samples of a slice whose beginning is begin_ns of GPS time; the first is that of the slice's beginning. which: different noise.
  void unit(std::uint64_t begin_ns, std::uint64_t which, const km3::Vector& place_m, std::vector<std::byte>& bytes) const;

 private:
  void add_pulses(std::uint64_t begin_ns, const BeaconConfig& beacon, const km3::Vector& place_m,
                  std::vector<std::int32_t>& samples) const;

  SoundConfig config_;
  std::uint64_t seed_;
  std::uint32_t samples_;            // of a slice
  std::vector<std::int32_t> noise_;  // played from any place on
};

}  // namespace nanet::km3_emulate
