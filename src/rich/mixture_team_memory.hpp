// SPDX-License-Identifier: Apache-2.0
// What a warp keeps of an event while it runs the mixture finder (mixture_team.hpp), and what a Warp is.
//
// A Warp stands for 32 lanes that call the same functions in the same order:
//   lane()                       0..31
//   sync()                       what a lane wrote to shared memory before, every lane sees after
//   ballot(bool)                 bit k: what lane k said
//   from_lane(value, lane)       the value of another lane, lane modulo 32; from_other(value, mask): of lane() ^ mask
//   max(integer)                 the largest of all lanes
//   set_bits(word, bits)         in shared memory, by several lanes at once
//   bit_count(word), first_bit(word), reversed(word)   of a word; first_bit: not of 0
//   Memory<T>                    a handle of a T in shared memory: *handle
#pragma once

#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/mixture_model.hpp"
#include "rich/mixture_search.hpp"

namespace nanet::rich {

inline constexpr std::uint32_t kWarpLanes = 32;
inline constexpr std::uint32_t kMaskHits = 30;       // of a mask's word; hits from 2 kMaskHits on are in no mask
inline constexpr std::uint32_t kMaskGroup = 5;       // hits whose room is looked up together
inline constexpr std::uint32_t kMixtureOffers = 64;  // more would leave room for fewer teams on an SM
inline constexpr std::uint32_t kMixtureDrops = 2 * kMixtureStarts;
inline constexpr std::uint32_t kMixturePairs = 231;        // bases of triplets in an event, at most
inline constexpr std::uint32_t kMixtureTripletWords = 80;  // for 2529 triplets in an event, at most
inline constexpr std::uint32_t kMixtureRow = 20;           // of partial sums: 16, and 4 more so that rows begin in different banks
static_assert(kMixtureLanes == kWarpLanes / 2);

struct alignas(16) MixtureQuad {
  float x, y, z, w;
};

// A start that may be worth a look: three hits and those that it counts.
struct alignas(16) MixtureCandidate {
  std::uint32_t triplet, near_low, near_high, spare;
};

// The pool: each lane keeps the starts of its number, one of each chunk of 32. Where two disks have starts, those of disk 1 begin a new chunk.
struct MixtureOwn {
  static constexpr std::uint32_t kChunks = kMixturePool / kWarpLanes + 1;
  std::uint32_t triplet[kChunks];                       // bits 20..0: numbers of three hits; 31..21: price
  std::uint32_t near_low[kChunks], near_high[kChunks];  // hits that the circle counts
  std::uint32_t core_low[kChunks], core_high[kChunks];  // hits that it counts more than half
};

// While the pool is made.
struct MixturePairs {
  MixtureQuad queue[2 * kWarpLanes];   // x, y, radius, triplet
  std::uint32_t pairs[kMixturePairs];  // those with triplets: bits 15..0: number of its first triplet, 23..16 and 31..24: its hits
  std::uint32_t first_of[kMixtureTripletWords];  // bit k of word w: triplet 32 w + k is the first of its pair
};

// While starts are scored.
struct MixtureScores {
  MixtureCandidate queue[2 * kWarpLanes];
};

// While models are fitted, two side by side.
struct MixtureFits {
  MixtureQuad rings[2][kMaxRings];  // x, y, radius, density on the circle for hits on disk 0
  float on_disk1[2][kMaxRings];     // density for hits on disk 1
  alignas(16) float sums[2][kMaxRings][kMixtureSums];
  alignas(16) float rows[2][kMixtureSums][kMixtureRow];
};

struct MixtureTeamMemory {
  MixtureQuad hits[kMaxHits];          // x, y, x^2 + y^2, room as it counts for the starts that are scored
  MixtureQuad offers[kMixtureOffers];  // starts in order of the pool: x, y, radius, score
  MixtureQuad drops[kMixtureDrops];    // circles near which no start is offered
  float weight[kMaxHits];              // density of the hit's time on a ring over that of the noise; 1 where time is not used
  float room[kMaxHits];
  union {
    MixturePairs pairs;
    MixtureScores scores;
    MixtureFits fits;
    std::uint16_t loose_keys[kMaxHits];
  };
  std::uint16_t keys[kMaxHits];  // hits in order
  MixtureModel models[kMixtureSlots];
  MixtureSetup setup;
  EventRings found;
  std::uint32_t hit_count, on_disk0;  // hits; those on disk 1 follow
  std::uint32_t chunks[2];            // of the pool, up to the end of each disk's
  std::uint32_t offer_count, drop_count;
  std::uint32_t scored;   // 0: offers are still to be made
  std::uint32_t cut_off;  // 1: there are starts between `floor` and the offers
  float floor;            // of scores
};

}  // namespace nanet::rich
