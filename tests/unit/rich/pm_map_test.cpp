// SPDX-License-Identifier: Apache-2.0
#include "nanet/rich/pm_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace nanet::rich {
namespace {

std::vector<Pm> mapped_pms(int disk) {
  std::vector<Pm> pms;
  for (const Pm& pm : kPmMap) {
    if (pm.mapped && pm.disk == disk) pms.push_back(pm);
  }
  return pms;
}

TEST(PmMap, HasAllPms) {
  EXPECT_EQ(std::count_if(kPmMap.begin(), kPmMap.end(), [](const Pm& pm) { return pm.mapped; }), 1952);
  for (int channel = 0; channel < kChannelCount; ++channel) {
    EXPECT_EQ(kPmMap[static_cast<std::size_t>(channel)].mapped, channel % 512 < 488) << channel;
    if (channel % 512 < 488) {
      EXPECT_EQ(kPmMap[static_cast<std::size_t>(channel)].disk, channel / 1024) << channel;
    }
  }
}

TEST(PmMap, KnownPlaces) {
  const auto expect_at = [](std::size_t channel, double x_mm, double y_mm) {
    EXPECT_DOUBLE_EQ(kPmMap[channel].x_mm(), x_mm) << channel;
    EXPECT_NEAR(kPmMap[channel].y_mm(), y_mm, 1e-3) << channel;
  };
  expect_at(0, -261.0, 93.531);                                   // first strip, PM 0
  expect_at(2, -225.0, 93.531);                                   // PM 2: four units to the right
  expect_at(4, -234.0, 109.119);                                  // PM 4: three units right, one up
  expect_at(8, -216.0, 77.942);                                   // next supercell: five units right, one down
  expect_at(487, 9.0 * (-4 + 25 + 4), 15.588457 * (17 - 5 + 2));  // last supercell of the upper half
  expect_at(512, -270.0, 46.765);                                 // first of the lower half
  expect_at(1024, -261.0, 93.531);                                // the other disk has the same pattern
}

TEST(PmMap, Extents) {
  const std::vector<Pm> pms = mapped_pms(0);
  ASSERT_EQ(pms.size(), 976u);
  double largest_mm = 0;
  std::set<int> rows;
  for (const Pm& pm : pms) {
    EXPECT_LE(std::abs(pm.x_mm()), 297.0);
    EXPECT_LE(std::abs(pm.y_mm()), 296.2);
    largest_mm = std::max(largest_mm, std::hypot(pm.x_mm(), pm.y_mm()));
    rows.insert(pm.j);
    EXPECT_EQ((pm.i + pm.j) % 2 != 0, true);
  }
  const auto by_x = [](const Pm& a, const Pm& b) { return a.i < b.i; };
  const auto by_y = [](const Pm& a, const Pm& b) { return a.j < b.j; };
  EXPECT_DOUBLE_EQ(std::min_element(pms.begin(), pms.end(), by_x)->x_mm(), -297.0);
  EXPECT_DOUBLE_EQ(std::max_element(pms.begin(), pms.end(), by_x)->x_mm(), 297.0);
  EXPECT_NEAR(std::min_element(pms.begin(), pms.end(), by_y)->y_mm(), -296.2, 0.05);
  EXPECT_NEAR(std::max_element(pms.begin(), pms.end(), by_y)->y_mm(), 296.2, 0.05);
  EXPECT_NEAR(largest_mm, 313.5, 0.05);
  EXPECT_EQ(rows.size(), 39u);
}

TEST(PmMap, SupercellsOfEachHalf) {
  for (int half = 0; half < 2; ++half) {
    int supercells = 0;
    for (const detail::Strip& strip : detail::kStrips[static_cast<std::size_t>(half)]) supercells += strip.supercells;
    EXPECT_EQ(supercells, 61);
  }
}

TEST(PmMap, NoTwoPmsInOnePlaceAndPitchIs18Mm) {
  for (int disk = 0; disk < 2; ++disk) {
    const std::vector<Pm> pms = mapped_pms(disk);
    double nearest_of_all_mm = 1e9;
    for (std::size_t a = 0; a < pms.size(); ++a) {
      double nearest_mm = 1e9;
      for (std::size_t b = 0; b < pms.size(); ++b) {
        if (a == b) continue;
        nearest_mm = std::min(nearest_mm, std::hypot(pms[a].x_mm() - pms[b].x_mm(), pms[a].y_mm() - pms[b].y_mm()));
      }
      EXPECT_NEAR(nearest_mm, 18.0, 1e-9);  // every PM touches another: no holes in the middle of nowhere
      nearest_of_all_mm = std::min(nearest_of_all_mm, nearest_mm);
    }
    EXPECT_NEAR(nearest_of_all_mm, 18.0, 1e-9);
  }
}

TEST(PmMap, DisksShareTheirCoordinates) {
  for (std::size_t channel = 0; channel < 1024; ++channel) {
    EXPECT_EQ(kPmMap[channel].i, kPmMap[channel + 1024].i);
    EXPECT_EQ(kPmMap[channel].j, kPmMap[channel + 1024].j);
    EXPECT_EQ(kPmMap[channel].mapped, kPmMap[channel + 1024].mapped);
  }
}

TEST(PmMap, ChannelAtIsTheInverse) {
  int found = 0;
  for (int disk = 0; disk < 2; ++disk) {
    for (int i = -40; i <= 40; ++i) {
      for (int j = -25; j <= 25; ++j) {
        const std::uint16_t channel = channel_at(i, j, disk);
        if (channel == kNoChannel) continue;
        ++found;
        ASSERT_LT(channel, kChannelCount);
        const Pm& pm = kPmMap[channel];
        EXPECT_TRUE(pm.mapped && pm.i == i && pm.j == j && pm.disk == disk);
      }
    }
  }
  EXPECT_EQ(found, 1952);
}

TEST(PmMap, NearestChannelAgreesWithASearch) {
  std::mt19937_64 engine(7);
  std::uniform_real_distribution<double> place(-330.0, 330.0);
  int inside = 0;
  for (int k = 0; k < 20000; ++k) {
    const double x_mm = place(engine);
    const double y_mm = place(engine);
    const int disk = k % 2;
    double best_mm = 1e9;
    std::size_t best = 0;
    for (std::size_t channel = 0; channel < kPmMap.size(); ++channel) {
      if (!kPmMap[channel].mapped || kPmMap[channel].disk != disk) continue;
      const double d_mm = std::hypot(x_mm - kPmMap[channel].x_mm(), y_mm - kPmMap[channel].y_mm());
      if (d_mm < best_mm) best_mm = d_mm, best = channel;
    }
    const std::uint16_t channel = nearest_channel(x_mm, y_mm, disk);
    if (best_mm < 9.0) {  // inside the inscribed circle of a hexagon
      ++inside;
      EXPECT_EQ(channel, best);
    } else if (best_mm > 10.3924) {  // outside its circumscribed circle
      EXPECT_EQ(channel, kNoChannel);
    } else if (channel != kNoChannel) {
      EXPECT_EQ(channel, best);
    }
  }
  EXPECT_GT(inside, 8000);
}

TEST(PmMap, NearestChannelStandsAnything) {
  EXPECT_EQ(nearest_channel(1e30, 0.0, 0), kNoChannel);
  EXPECT_EQ(nearest_channel(0.0, -1e30, 0), kNoChannel);
  EXPECT_EQ(nearest_channel(std::nan(""), 0.0, 0), kNoChannel);
  EXPECT_EQ(nearest_channel(0.0, std::nan(""), 1), kNoChannel);
}

}  // namespace
}  // namespace nanet::rich
