// SPDX-License-Identifier: Apache-2.0
#include "nanet/rich/decision.hpp"

#include <gtest/gtest.h>

namespace nanet::rich {
namespace {

Ring ring_of(float radius_mm, float rms_mm, std::uint16_t hits) { return Ring{0, 0, radius_mm, rms_mm, 0, hits, RingStatus::ring}; }

TEST(Decision, LiteralIds) {
  const RingCuts cuts;
  EXPECT_EQ(primitive_id(Ring{}, cuts), 0x4000);                                    // nothing seen
  EXPECT_EQ(primitive_id(Ring{0, 0, 0, 0, 0, 7, RingStatus::no_ring}, cuts), 0x4007);  // seven hits, no ring
  EXPECT_EQ(primitive_id(ring_of(146.9F, 5, 12), cuts), 0x4000 | 9 << 10 | 1 << 8 | 1 << 6 | 12);
  EXPECT_EQ(primitive_id(ring_of(189.65F, 5, 13), cuts), 0x4000 | 11 << 10 | 1 << 9 | 1 << 8 | 1 << 6 | 13);
  EXPECT_EQ(primitive_id(ring_of(189.65F, 5, 13), cuts), 0x6f4d);
}

TEST(Decision, HitsSaturate) {
  const RingCuts cuts;
  EXPECT_EQ(primitive_id(ring_of(150, 5, 63), cuts) & 63, 63);
  EXPECT_EQ(primitive_id(ring_of(150, 5, 128), cuts) & 63, 63);
  EXPECT_EQ(primitive_id(Ring{0, 0, 0, 0, 0, 64, RingStatus::no_ring}, cuts), 0x403f);
}

TEST(Decision, RadiusClassSaturates) {
  RingCuts cuts;
  cuts.radius_max_mm = 1e9F;
  EXPECT_EQ(primitive_id(ring_of(239.9F, 5, 12), cuts) >> 10 & 15, 14);
  EXPECT_EQ(primitive_id(ring_of(240.0F, 5, 12), cuts) >> 10 & 15, 15);
  EXPECT_EQ(primitive_id(ring_of(1e8F, 5, 12), cuts) >> 10 & 15, 15);
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
  EXPECT_TRUE(is_electron_like(ring_of(183.7F, 5, 12), cuts));
  EXPECT_FALSE(is_electron_like(ring_of(183.6F, 5, 12), cuts));
  EXPECT_TRUE(is_electron_like(ring_of(195.6F, 5, 12), cuts));
  EXPECT_FALSE(is_electron_like(ring_of(195.7F, 5, 12), cuts));
  EXPECT_FALSE(is_electron_like(ring_of(189.65F, 50, 12), cuts));  // a bad fit is nothing
}

TEST(Decision, TopByteIsNeverZero) {
  for (float radius_mm = 0; radius_mm < 400; radius_mm += 3.7F) {
    for (std::uint16_t hits = 0; hits < 130; ++hits) {
      const std::uint16_t id = primitive_id(ring_of(radius_mm, 4, hits), RingCuts{});
      EXPECT_EQ(id & 0xc000, 0x4000);
    }
  }
}

}  // namespace
}  // namespace nanet::rich
