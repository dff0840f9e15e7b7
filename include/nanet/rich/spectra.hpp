// SPDX-License-Identifier: Apache-2.0
// What a user wants to see of the rings of a run: spectra, and some events whole. Filled by a CPU or a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nanet/rich/ring.hpp"
#include "nanet/wire/mtp.hpp"

namespace nanet::rich {

inline constexpr std::size_t kSpectrumRadiusBins = 400;       // of 1 mm, from 0; a larger radius is not binned
inline constexpr std::size_t kSpectrumMultiplicityBins = 64;  // the last one takes all above
inline constexpr std::size_t kSamples = 256;

struct Spectra {
  std::uint64_t radius_mm[kSpectrumRadiusBins + 1] = {};  // of good rings; the last bin takes what is not binned
  std::uint64_t multiplicity[kSpectrumMultiplicityBins] = {};
  std::uint64_t ring_count[kMaxRings + 1] = {};  // of events, by number of good rings
};

// One event whole.
struct EventSample {
  wire::Primitive answer;
  std::uint16_t hit_count = 0;  // of the event; only the first kMaxHits are kept
  std::uint16_t hits[kMaxHits] = {};
  EventRings rings;
  std::uint8_t good_rings = 0;  // bit k: rings.rings[k] passed the cuts
};

}  // namespace nanet::rich
