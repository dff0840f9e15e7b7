// SPDX-License-Identifier: Apache-2.0
#include "nanet/rich/decision.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace nanet::rich {
namespace {

Ring ring_of(float radius_mm, float rms_mm, std::uint16_t hits) { return Ring{0, 0, radius_mm, rms_mm, 0, hits, RingStatus::ring}; }

EventRings event_of(std::uint16_t mapped_hits, std::initializer_list<Ring> rings) {
  EventRings event;
  event.mapped_hits = mapped_hits;
  for (const Ring& ring : rings) event.rings[event.count++] = ring;
  return event;
}

std::uint16_t id_of(const EventRings& event, const Decision& decision = {}) { return primitive_id(event, decision); }

TEST(Decision, LiteralIds) {
  EXPECT_EQ(id_of({}), 0x4000);               // nothing seen
  EXPECT_EQ(id_of(event_of(7, {})), 0x4007);  // seven hits, no ring
  EXPECT_EQ(id_of(event_of(12, {ring_of(146.9F, 5, 12)})), 0x4000 | 9 << 10 | 1 << 8 | 1 << 6 | 12);
  EXPECT_EQ(id_of(event_of(13, {ring_of(189.65F, 5, 13)})), 0x6f4d);
  // Two rings, the one with fewer hits an electron; 27 hits, 3 of them on no ring.
  EXPECT_EQ(id_of(event_of(27, {ring_of(150, 5, 14), ring_of(190, 5, 10)})), 0x4000 | 9 << 10 | 1 << 9 | 1 << 8 | 2 << 6 | 27);
  // A ring that fails a cut does not count, nor does its radius.
  EXPECT_EQ(id_of(event_of(27, {ring_of(250, 5, 14), ring_of(190, 5, 10)})), 0x4000 | 11 << 10 | 1 << 9 | 1 << 8 | 1 << 6 | 27);
}

TEST(Decision, FieldsSaturate) {
  EXPECT_EQ(id_of(event_of(63, {})) & 63, 63);
  EXPECT_EQ(id_of(event_of(128, {})) & 63, 63);
  const Ring ring = ring_of(150, 5, 12);
  EXPECT_EQ(id_of(event_of(48, {ring, ring, ring})) >> 6 & 3, 3);
  EXPECT_EQ(id_of(event_of(48, {ring, ring, ring, ring})) >> 6 & 3, 3);
  Decision decision;
  decision.cuts.radius_max_mm = 1e9F;
  EXPECT_EQ(id_of(event_of(12, {ring_of(239.9F, 5, 12)}), decision) >> 10 & 15, 14);
  EXPECT_EQ(id_of(event_of(12, {ring_of(240.0F, 5, 12)}), decision) >> 10 & 15, 15);
  EXPECT_EQ(id_of(event_of(12, {ring_of(1e8F, 5, 12)}), decision) >> 10 & 15, 15);
}

TEST(Decision, EachCutCuts) {
  const RingCuts cuts;
  EXPECT_TRUE(is_good_ring(ring_of(150, 5, 12), cuts));
  EXPECT_FALSE(is_good_ring(ring_of(150, 5, 3), cuts));
  EXPECT_FALSE(is_good_ring(ring_of(cuts.radius_min_mm - 0.01F, 5, 12), cuts));
  EXPECT_TRUE(is_good_ring(ring_of(cuts.radius_min_mm, 5, 12), cuts));
  EXPECT_TRUE(is_good_ring(ring_of(cuts.radius_max_mm, 5, 12), cuts));
  EXPECT_FALSE(is_good_ring(ring_of(cuts.radius_max_mm + 0.01F, 5, 12), cuts));
  // 12 hits, 9 degrees of freedom: the limit on the plain rms is rms_max sqrt(9 / 12).
  const float limit_mm = cuts.rms_max_mm * 0.8660254F;
  EXPECT_TRUE(is_good_ring(ring_of(150, limit_mm - 0.01F, 12), cuts));
  EXPECT_FALSE(is_good_ring(ring_of(150, limit_mm + 0.01F, 12), cuts));
}

TEST(Decision, RingsOutsideTheRangeAreCounted) {
  const RingCuts cuts;
  Ring far = ring_of(150, 5, 12);
  far.x_mm = 0.8F * cuts.center_max_mm;
  far.y_mm = 0.59F * cuts.center_max_mm;
  EXPECT_TRUE(is_good_ring(far, cuts));
  far.y_mm = 0.61F * cuts.center_max_mm;
  EXPECT_FALSE(is_good_ring(far, cuts));
  const Verdict verdict = judge(event_of(40, {ring_of(150, 5, 12), far, ring_of(60, 5, 12), ring_of(60, 50, 12)}), cuts);
  EXPECT_EQ(verdict.rings, 1);
  EXPECT_EQ(verdict.outside, 2);  // the last one is no ring anywhere
}

TEST(Decision, ThreeHitsAreNeverARing) {
  RingCuts cuts;
  cuts.min_hits = 0;
  EXPECT_FALSE(is_good_ring(ring_of(150, 0, 3), cuts));
}

TEST(Decision, TruncatedRingsCount) {
  Ring ring = ring_of(150, 5, 128);
  ring.status = RingStatus::ring_truncated;
  EXPECT_TRUE(is_good_ring(ring, RingCuts{}));
  ring.status = RingStatus::no_ring_truncated;
  EXPECT_FALSE(is_good_ring(ring, RingCuts{}));
}

TEST(Decision, ElectronWindow) {
  const RingCuts cuts;
  EXPECT_EQ(ring_kind(183.7F, cuts), RingKind::electron);
  EXPECT_EQ(ring_kind(183.6F, cuts), RingKind::other);
  EXPECT_EQ(ring_kind(195.6F, cuts), RingKind::electron);
  EXPECT_EQ(ring_kind(195.7F, cuts), RingKind::other);
  EXPECT_EQ(judge(event_of(12, {ring_of(189.65F, 50, 12)}), cuts).electrons, 0);  // a bad fit is nothing
  EXPECT_EQ(ring_kind(3.0F, cuts), RingKind::other);                              // a radius of 0 stands for no such particle
}

// At 20 GeV/c: muon 167.0, pion 147.8; at 60: kaon 127.9 (docs/design/rings.md).
TEST(Decision, KindsOfAMomentumHypothesis) {
  RingCuts cuts;
  set_momentum(cuts, 20);
  EXPECT_EQ(ring_kind(167, cuts), RingKind::muon);
  EXPECT_EQ(ring_kind(172.9F, cuts), RingKind::muon);
  EXPECT_EQ(ring_kind(175, cuts), RingKind::other);
  EXPECT_EQ(ring_kind(147, cuts), RingKind::pion);
  EXPECT_EQ(ring_kind(189, cuts), RingKind::electron);
  EXPECT_EQ(ring_kind(128, cuts), RingKind::other);
  set_momentum(cuts, 60);
  EXPECT_EQ(ring_kind(128, cuts), RingKind::kaon);
  set_momentum(cuts, 30);  // muon 179.9: its window and the electron's overlap, the nearer one has it
  EXPECT_EQ(ring_kind(184.5F, cuts), RingKind::muon);
  EXPECT_EQ(ring_kind(185.0F, cuts), RingKind::electron);
  const Verdict verdict = judge(event_of(40, {ring_of(180, 5, 12), ring_of(172, 5, 11), ring_of(190, 5, 9), ring_of(100, 5, 8)}),
                                cuts);
  EXPECT_EQ(verdict.rings, 4);
  EXPECT_EQ(verdict.muons, 1);
  EXPECT_EQ(verdict.pions, 1);
  EXPECT_EQ(verdict.electrons, 1);
  EXPECT_EQ(verdict.kaons, 0);
  EXPECT_EQ(verdict.multiplicity, 40);
  EXPECT_EQ(verdict.radius_mm, 180.0F);
  set_momentum(cuts, 0);
  EXPECT_EQ(ring_kind(180, cuts), RingKind::other);
}

TEST(Decision, RingMixesAreNumberedWithoutGap) {
  std::set<std::size_t> seen;
  std::size_t last = 0;
  for (std::uint32_t r = 0; r < 5; ++r) {
    for (std::uint32_t e = 0; e <= r; ++e) {
      for (std::uint32_t m = 0; e + m <= r; ++m) {
        for (std::uint32_t p = 0; e + m + p <= r; ++p) {
          for (std::uint32_t k = 0; e + m + p + k <= r; ++k) {
            last = ring_mix_index(r, e, m, p, k);
            EXPECT_EQ(last, seen.size());  // in the order of these loops
            seen.insert(last);
          }
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), kRingMixCount);
}

TEST(Decision, ConditionsTakeThePlaceOfTheRadius) {
  Decision decision;
  decision.conditions.count = 2;
  const std::size_t two_with_electron = ring_mix_index(2, 1, 0, 0, 0);
  for (std::size_t n = 20; n < 40; ++n) decision.conditions.answers[two_with_electron * kMultiplicityCount + n] = 0b10;
  const auto field = [&](std::uint16_t hits, std::initializer_list<Ring> rings) {
    return id_of(event_of(hits, rings), decision) >> 10 & 15;
  };
  const Ring electron = ring_of(190, 5, 12);
  const Ring other = ring_of(150, 5, 11);
  EXPECT_EQ(field(25, {electron, other}), 2);
  EXPECT_EQ(field(39, {electron, other}), 2);
  EXPECT_EQ(field(40, {electron, other}), 0);
  EXPECT_EQ(field(25, {electron, electron}), 0);
  EXPECT_EQ(field(25, {other}), 0);
}

TEST(Decision, TopByteIsNeverZero) {
  for (float radius_mm = 0; radius_mm < 400; radius_mm += 3.7F) {
    for (std::uint16_t hits = 0; hits < 130; ++hits) {
      EXPECT_EQ(id_of(event_of(hits, {ring_of(radius_mm, 4, hits)})) & 0xc000, 0x4000);
    }
  }
}

}  // namespace
}  // namespace nanet::rich
