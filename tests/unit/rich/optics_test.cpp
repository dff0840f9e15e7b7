// SPDX-License-Identifier: Apache-2.0
#include "nanet/rich/optics.hpp"

#include <gtest/gtest.h>

#include <array>

namespace nanet::rich {
namespace {

struct Row {
  double momentum_gev;
  std::array<double, 3> radius_mm;  // electron, muon, pion
};

TEST(Optics, KnownRadii) {
  for (const Row& row : std::array<Row, 5>{{{15, {189.6, 146.9, 104.3}},
                                            {20, {189.6, 167.0, 147.8}},
                                            {25, {189.6, 175.5, 164.1}},
                                            {30, {189.6, 179.9, 172.3}},
                                            {35, {189.6, 182.5, 177.1}}}}) {
    EXPECT_NEAR(ring_radius_mm(Particle::electron, row.momentum_gev), row.radius_mm[0], 0.1);
    EXPECT_NEAR(ring_radius_mm(Particle::muon, row.momentum_gev), row.radius_mm[1], 0.1);
    EXPECT_NEAR(ring_radius_mm(Particle::pion, row.momentum_gev), row.radius_mm[2], 0.1);
    EXPECT_EQ(ring_radius_mm(Particle::kaon, row.momentum_gev), 0.0);
  }
  EXPECT_NEAR(ring_radius_mm(Particle::kaon, 50), 87.9, 0.1);
  EXPECT_NEAR(ring_radius_mm(Particle::kaon, 60), 127.9, 0.1);
  EXPECT_NEAR(ring_radius_mm(Particle::kaon, 75), 153.0, 0.1);
}

TEST(Optics, ThresholdsAndLimit) {
  EXPECT_NEAR(ring_radius_mm(Particle::electron, 1e6), kElectronRadiusMm, 0.005);
  EXPECT_EQ(ring_radius_mm(Particle::muon, 9.4), 0.0);
  EXPECT_GT(ring_radius_mm(Particle::muon, 9.6), 0.0);
  EXPECT_EQ(ring_radius_mm(Particle::pion, 12.4), 0.0);
  EXPECT_GT(ring_radius_mm(Particle::pion, 12.6), 0.0);
  EXPECT_EQ(ring_radius_mm(Particle::kaon, 44.2), 0.0);
  EXPECT_GT(ring_radius_mm(Particle::kaon, 44.4), 0.0);
  EXPECT_EQ(ring_radius_mm(Particle::none, 20), 0.0);
  EXPECT_EQ(ring_radius_mm(Particle::electron, 0), 0.0);
}

}  // namespace
}  // namespace nanet::rich
