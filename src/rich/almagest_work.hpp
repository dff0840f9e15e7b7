// SPDX-License-Identifier: Apache-2.0
// What the vectorised Almagest finder works on: tables, and an event's hits and triplets as columns. The same for every instruction set.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "hit_set.hpp"
#include "nanet/rich/pm_map.hpp"
#include "rich/almagest.hpp"

namespace nanet::rich::almagest {

inline constexpr std::size_t kBlock = 16;  // events that go through the steps together: their columns stay in the first-level cache
inline constexpr std::size_t kPadding = 16;         // columns are readable this far after the last hit
inline constexpr std::uint32_t kScoreMost = 65025;  // as in score_of
inline constexpr std::size_t kUnroll = 4;           // hits a turn of a loop over starts

constexpr std::array<std::uint16_t, kPmPointRows> make_places() {
  std::array<std::uint16_t, kPmPointRows> places{};  // 0: no PM
  for (std::size_t channel = 0; channel < kPmPointRows; ++channel) {
    const Pm& pm = kPmMap[channel];
    if (pm.mapped) places[channel] = static_cast<std::uint16_t>(place_of(pm.i, pm.j));
  }
  return places;
}
alignas(64) inline constexpr std::array<std::uint16_t, kPmPointRows> kPlaces = make_places();

// A hit in one word: place, and from bit 16 on its time.
inline std::int32_t time_code_of(std::uint32_t word) { return static_cast<std::int32_t>((word >> 16) ^ 16u) - 16; }

// Factors of along() for each start, and of the coordinate at right angles that is larger on the side of B.
struct alignas(64) StartFactors {
  std::int16_t out_i[kStarts], out_j[kStarts], across_i[kStarts], across_j[kStarts], flip[kStarts];
};
constexpr StartFactors make_start_factors() {
  StartFactors factors{};
  for (std::uint32_t start = 0; start < kStarts; ++start) {
    const std::uint32_t direction = start & 7u;
    const std::int32_t side = start < kDirections ? 1 : -1;
    factors.flip[start] = static_cast<std::int16_t>(side);
    factors.out_i[start] = static_cast<std::int16_t>(along(direction, 1, 0));
    factors.out_j[start] = static_cast<std::int16_t>(along(direction, 0, 1));
    factors.across_i[start] = static_cast<std::int16_t>(side * along(direction ^ 2u, 1, 0));
    factors.across_j[start] = static_cast<std::int16_t>(side * along(direction ^ 2u, 0, 1));
  }
  return factors;
}
inline constexpr StartFactors kStartFactors = make_start_factors();

// One triplet a start: what the scalar find_triplet returns, as columns. Place 0: there is none, and score is -1.
struct alignas(64) Triplets {
  std::int16_t place_a[kStarts], place_b[kStarts], place_c[kStarts], score[kStarts];
  std::uint16_t cotangent[kStarts];
  std::int16_t scale[kStarts], scale_i[kStarts], scale_j[kStarts], offset[kStarts];  // ScoreFactors
  alignas(64) float circle_i[kStarts];
  float circle_j[kStarts], radius[kStarts];
};

inline Triplet triplet_of(const Triplets& t, std::size_t start) {
  return {t.score[start],
          {t.circle_i[start], t.circle_j[start], t.radius[start]},
          point_of(t.place_a[start]),
          point_of(t.place_b[start]),
          point_of(t.place_c[start])};
}

// An event in work: the hits not yet in a ring, as columns. Most hold a number of 16 bits twice, so that one load fills a vector's lanes with it.
struct Work {
  alignas(64) std::uint32_t words[kMaxHits + kPadding];  // once; the other columns follow from it
  alignas(64) std::uint32_t place[kMaxHits + kPadding];
  alignas(64) std::uint32_t i[kMaxHits + kPadding];
  alignas(64) std::uint32_t j[kMaxHits + kPadding];
  alignas(64) std::uint32_t z[kMaxHits + kPadding];
  alignas(64) std::uint32_t score_i[kMaxHits + kPadding];  // as score_of multiplies them
  alignas(64) std::uint32_t score_j[kMaxHits + kPadding];
  alignas(64) std::uint32_t score_z[kMaxHits + kPadding];
  alignas(64) std::uint32_t score_most[kMaxHits + kPadding];  // kScoreMost for a hit, 0 for what fills up
  alignas(64) std::int16_t column_i[kMaxHits + kPadding];
  alignas(64) std::int16_t column_j[kMaxHits + kPadding];
  alignas(64) std::int16_t column_z[kMaxHits + kPadding];
  Triplets triplets;                                               // of the ring in work
  alignas(64) std::int16_t for_c[(kMaxHits + kUnroll) * kStarts];  // of each hit and start: how far out it is, or kNone if it cannot be C
  std::uint32_t count;
  HitSet chosen;  // hits of the ring in work
  EventRings* rings;
};

inline HitSet all_hits(const Work& work) { return ~HitSet{0} >> (kMaxHits - work.count); }

inline void cut_time(Work& work, const Limits& limits) {
  std::uint8_t counts[32] = {};
  for (std::uint32_t k = 0; k < work.count; ++k) ++counts[time_code_of(work.words[k]) + 16];
  const std::int32_t start = densest_window(counts, limits.window_codes);
  std::uint32_t left = 0;
  for (std::uint32_t k = 0; k < work.count; ++k) {
    const std::int32_t code = time_code_of(work.words[k]);
    if (code < start || code >= start + limits.window_codes) continue;
    work.words[left++] = work.words[k];
  }
  work.count = left;
}

// The words of an event's hits; their order does not matter.
inline void read_hits(const event::Event& event, Work& work) {
  std::uint32_t count = 0;
  const std::uint32_t looked_at = std::min(event.count, kMaxHits);
  for (std::uint32_t k = 0; k < looked_at; ++k) {
    const std::uint32_t hit = event.hits[k];
    const std::uint32_t place = kPlaces[hit & 1023u];
    work.words[count] = (hit & 0xf800u) << 5 | place;
    count += place != 0 ? 1 : 0;
  }
  work.count = count;
  work.rings->mapped_hits = static_cast<std::uint16_t>(count);
}

}  // namespace nanet::rich::almagest
