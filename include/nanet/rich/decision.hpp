// SPDX-License-Identifier: Apache-2.0
// From the rings of an event to the 16 bits of a primitive: which rings are good, of which kind, and which conditions hold.
//
// Terms
//   good       the ring passes every cut.
//   kind       electron, muon, pion or kaon when the radius lies in that particle's window (the nearest one's, where windows overlap), else other.
//              Without a momentum hypothesis only the electron's radius is known.
//   verdict    what may be said of an event: how many good rings, how many of each kind, how many hits.
//   condition  a question about the verdict with yes or no for an answer. There are so few different verdicts (kVerdictCount) that a condition
//              is compiled into the table of its answers: python/nanet/config/conditions.py does it.
//
// Primitive ID (docs/formats.md): bits 5..0 mapped hits, saturating at 63 · 7..6 number of good rings, saturating at 3 · 8 ring found · 9 an electron
// among them · 13..10 conditions 3..0 if there are any, else class of radius of the good ring with most hits = floor(radius_mm / 16), saturating at
// 15, 0 without ring · 14 always 1 · 15 calibration, 0 here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/rich/channels.hpp"
#include "nanet/rich/optics.hpp"
#include "nanet/rich/ring.hpp"

namespace nanet::rich {

// What a ring must be to be answered as one, and of which kind it is. The defaults come from the study in docs/design/rings.md.
struct RingCuts {
  // Hits with a PM. Too small: three random hits make a ring, since any three do; too big: faint rings are lost.
  std::uint32_t min_hits = 4;
  // The range of rings, the same for every finder, which looks somewhat further (search_range.hpp): a ring outside is fitted as what it is and
  // refused by name (Verdict::outside), and not answered as another one that is inside.
  // mm. Too small: clusters of noise make rings; too big: slow pions and muons are lost.
  float radius_min_mm = 70.0F;
  // mm. Too small: electron rings with few hits are lost; too big: hits nearly on a line make rings.
  float radius_max_mm = 210.0F;
  // mm, distance of the centre from the disk's middle. Too small: rings far off the axis are lost; too big: circles of noise pass.
  float center_max_mm = 200.0F;
  // mm, of one hit about the circle, corrected for the three fitted parameters: rms sqrt(hits / (hits - 3)). A PM alone gives 4.8 mm, with the
  // optics 5.4 mm. Too small: good rings are lost; too big: rings spoiled by noise pass with a wrong radius.
  float rms_max_mm = 10.0F;
  // mm. Radius of the ring of a particle at the speed of light. It moves with the gas density: 1e-6 in n - 1 is 1.5 mm.
  float electron_radius_mm = static_cast<float>(kElectronRadiusMm);
  // mm, half width. Too small: electrons are lost (the radius of a 12-hit ring has 1.5 to 1.8 mm); too big: fast muons (182.5 mm at 35 GeV/c) pass.
  float electron_window_mm = 6.0F;
  // mm, of the momentum hypothesis (set_momentum); 0: no such ring is looked for.
  float muon_radius_mm = 0.0F;
  float pion_radius_mm = 0.0F;
  float kaon_radius_mm = 0.0F;
  // mm, half width of the muon, pion and kaon windows. Too small: they are lost; too big: anything is taken for one.
  float kind_window_mm = 6.0F;
};

// Radii of muon, pion and kaon at this momentum in GeV/c; 0: no hypothesis.
inline void set_momentum(RingCuts& cuts, double momentum_gev) {
  cuts.muon_radius_mm = static_cast<float>(ring_radius_mm(Particle::muon, momentum_gev));
  cuts.pion_radius_mm = static_cast<float>(ring_radius_mm(Particle::pion, momentum_gev));
  cuts.kaon_radius_mm = static_cast<float>(ring_radius_mm(Particle::kaon, momentum_gev));
}

enum class RingKind : std::uint8_t { other = 0, electron = 1, muon = 2, pion = 3, kaon = 4 };

struct Verdict {
  std::uint8_t rings = 0;  // good ones, 0..4, of any kind
  std::uint8_t electrons = 0;
  std::uint8_t muons = 0;
  std::uint8_t pions = 0;
  std::uint8_t kaons = 0;
  std::uint8_t multiplicity = 0;  // hits with a PM, saturating at kMultiplicityMax
  std::uint8_t good_rings = 0;    // bit k: rings[k] of the event is good
  std::uint8_t outside = 0;       // rings that pass every cut but those of the range
  float radius_mm = 0;            // of the good ring with most hits; 0 without
};
inline constexpr std::uint8_t kMultiplicityMax = 63;

// Conditions are combined without branches here: what an event holds is random, so a processor mispredicts each branch and
// pays more for it than for the arithmetic.

// Whether it is a ring at all, wherever and however large it is.
NANET_HD inline bool is_clear_ring(const Ring& ring, const RingCuts& cuts) {
  const float hits = ring.hits;
  const bool enough = has_ring(ring.status) & (ring.hits >= cuts.min_hits) & (ring.hits >= 4);
  const bool round = ring.rms_mm * ring.rms_mm * hits <= cuts.rms_max_mm * cuts.rms_max_mm * (hits - 3.0F);
  return enough & round;
}

NANET_HD inline bool is_in_range(const Ring& ring, const RingCuts& cuts) {
  const float center2 = ring.x_mm * ring.x_mm + ring.y_mm * ring.y_mm;
  return (ring.radius_mm >= cuts.radius_min_mm) & (ring.radius_mm <= cuts.radius_max_mm) &
         (center2 <= cuts.center_max_mm * cuts.center_max_mm);
}

NANET_HD inline bool is_good_ring(const Ring& ring, const RingCuts& cuts) {
  const bool clear = is_clear_ring(ring, cuts);
  const bool in_range = is_in_range(ring, cuts);
  return clear & in_range;
}

// Of a ring of this radius, good or not.
NANET_HD inline RingKind ring_kind(float radius_mm, const RingCuts& cuts) {
  const bool hypothesis = (cuts.muon_radius_mm > 0.0F) | (cuts.pion_radius_mm > 0.0F) | (cuts.kaon_radius_mm > 0.0F);
  if (!hypothesis) {  // the same for every ring of a run, so it is predicted well; saves half the time of a judgement
    const float off_mm = radius_mm - cuts.electron_radius_mm;
    const bool electron = (cuts.electron_radius_mm > 0.0F) & (off_mm <= cuts.electron_window_mm) &
                          (off_mm >= -cuts.electron_window_mm);
    return electron ? RingKind::electron : RingKind::other;
  }
  const float expected_mm[4] = {cuts.electron_radius_mm, cuts.muon_radius_mm, cuts.pion_radius_mm, cuts.kaon_radius_mm};
  float nearest_mm = 1e30F;
  std::uint32_t kind = 0;
  for (std::uint32_t k = 0; k < 4; ++k) {
    const float difference_mm = radius_mm > expected_mm[k] ? radius_mm - expected_mm[k] : expected_mm[k] - radius_mm;
    const float window_mm = k == 0 ? cuts.electron_window_mm : cuts.kind_window_mm;
    const bool better = (expected_mm[k] > 0.0F) & (difference_mm <= window_mm) & (difference_mm < nearest_mm);
    nearest_mm = better ? difference_mm : nearest_mm;
    kind = better ? k + 1 : kind;
  }
  return static_cast<RingKind>(kind);
}

NANET_HD inline Verdict judge(const EventRings& event, const RingCuts& cuts) {
  Verdict verdict;
  std::uint32_t kinds = 0;  // four bits for the number of each kind
  for (std::uint32_t k = 0; k < kMaxRings; ++k) {
    if (k >= event.count) break;  // and not in the condition above: so a GPU unrolls the loop and keeps the rings in registers
    const Ring& ring = event.rings[k];
    const std::uint32_t clear = is_clear_ring(ring, cuts) ? 1u : 0u;
    const std::uint32_t good = is_in_range(ring, cuts) ? clear : 0u;
    kinds += good << 4 * static_cast<std::uint32_t>(ring_kind(ring.radius_mm, cuts));
    verdict.radius_mm = ((good != 0) & (verdict.rings == 0)) ? ring.radius_mm : verdict.radius_mm;
    verdict.rings = static_cast<std::uint8_t>(verdict.rings + good);
    verdict.good_rings = static_cast<std::uint8_t>(verdict.good_rings | good << k);
    verdict.outside = static_cast<std::uint8_t>(verdict.outside + (clear - good));
  }
  verdict.electrons = kinds >> 4 & 15;
  verdict.muons = kinds >> 8 & 15;
  verdict.pions = kinds >> 12 & 15;
  verdict.kaons = kinds >> 16 & 15;
  verdict.multiplicity = static_cast<std::uint8_t>(event.mapped_hits < kMultiplicityMax ? event.mapped_hits : kMultiplicityMax);
  return verdict;
}

// ---- conditions

// Ways in which up to four rings can be of five kinds, times multiplicities.
inline constexpr std::size_t kRingMixCount = 126;
inline constexpr std::size_t kMultiplicityCount = kMultiplicityMax + 1;
inline constexpr std::size_t kVerdictCount = kRingMixCount * kMultiplicityCount;
inline constexpr std::uint32_t kMaxConditions = 4;

// Number of a mix of rings: mixes are counted with rings from 0 to 4, in it electrons from 0 up, in it muons, pions and kaons.
NANET_HD constexpr std::size_t ring_mix_index(std::uint32_t rings, std::uint32_t electrons, std::uint32_t muons,
                                              std::uint32_t pions, std::uint32_t kaons) {
  // Solutions of "this many unknowns add up to at most n": the binomial coefficient (n + unknowns choose unknowns).
  const auto choose = [](std::uint32_t n, std::uint32_t k) {
    std::size_t value = 1;
    for (std::uint32_t i = 1; i <= k; ++i) value = value * (n - k + i) / i;
    return value;
  };
  std::size_t index = 0;
  for (std::uint32_t n = 0; n < rings; ++n) index += choose(n + 4, 4);
  std::uint32_t left = rings;
  const std::uint32_t parts[4] = {electrons, muons, pions, kaons};
  for (std::uint32_t k = 0; k < 4; ++k) {
    for (std::uint32_t n = 0; n < parts[k]; ++n) index += choose(left - n + 3 - k, 3 - k);
    left -= parts[k];
  }
  return index;
}

// The answers to all conditions for every verdict: bit c of answers[mix][multiplicity] is condition c's.
struct ConditionTable {
  std::uint32_t count = 0;  // 0..kMaxConditions
  std::array<std::uint8_t, kVerdictCount> answers{};
};

namespace detail {
constexpr auto make_ring_mixes() {
  std::array<std::uint8_t, 5 * 5 * 5 * 5 * 5> mixes{};
  for (std::uint32_t r = 0; r < 5; ++r) {
    for (std::uint32_t e = 0; e <= r; ++e) {
      for (std::uint32_t m = 0; e + m <= r; ++m) {
        for (std::uint32_t p = 0; e + m + p <= r; ++p) {
          for (std::uint32_t k = 0; e + m + p + k <= r; ++k) {
            mixes[(((r * 5 + e) * 5 + m) * 5 + p) * 5 + k] = static_cast<std::uint8_t>(ring_mix_index(r, e, m, p, k));
          }
        }
      }
    }
  }
  return mixes;
}
inline constexpr auto kRingMixes = make_ring_mixes();
}  // namespace detail

// Number of the verdict's mix of rings: from a table, but computed on a GPU, which has no copy of it.
NANET_HD inline std::size_t ring_mix_of(const Verdict& verdict) {
#ifdef __CUDA_ARCH__
  return ring_mix_index(verdict.rings, verdict.electrons, verdict.muons, verdict.pions, verdict.kaons);
#else
  return detail::kRingMixes[(((verdict.rings * 5u + verdict.electrons) * 5u + verdict.muons) * 5u + verdict.pions) * 5u + verdict.kaons];
#endif
}

NANET_HD inline std::uint32_t conditions_of(const Verdict& verdict, const ConditionTable& table) {
  return table.answers[ring_mix_of(verdict) * kMultiplicityCount + verdict.multiplicity];
}

// ---- the answer

inline constexpr std::uint16_t kPrimitiveRingFound = 1u << 8;
inline constexpr std::uint16_t kPrimitiveElectron = 1u << 9;

NANET_HD inline std::uint32_t radius_class(const Verdict& verdict) {
  const float radius_mm = verdict.radius_mm < 255.0F ? verdict.radius_mm : 255.0F;
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(radius_mm * (1.0F / 16.0F)));
}

// field: the conditions, or the radius class where there are none.
NANET_HD inline std::uint16_t primitive_id(const Verdict& verdict, std::uint32_t field) {
  const std::uint32_t rings = verdict.rings < 3u ? verdict.rings : 3u;
  const std::uint32_t found = verdict.rings != 0 ? 1u : 0u;
  const std::uint32_t electron = verdict.electrons != 0 ? 1u : 0u;
  return static_cast<std::uint16_t>(1u << 14 | verdict.multiplicity | rings << 6 | found << 8 | electron << 9 | field << 10);
}

NANET_HD inline std::uint16_t primitive_id(const Verdict& verdict, const ConditionTable& table) {
  return primitive_id(verdict, table.count == 0 ? radius_class(verdict) : conditions_of(verdict, table));
}

// Everything that makes an answer of an event, beside its finder.
struct Decision {
  RingCuts cuts;
  ConditionTable conditions;
  ChannelSet mask;  // hits of these channels are left out before rings are sought
};

inline std::uint16_t primitive_id(const EventRings& event, const Decision& decision) {
  return primitive_id(judge(event, decision.cuts), decision.conditions);
}

}  // namespace nanet::rich
