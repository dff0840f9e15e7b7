// SPDX-License-Identifier: Apache-2.0
// Cherenkov light by Fermat's principle, which the emulator does not use: of all places where the track could have emitted, the light that comes first.
#include "km3_emulate/tracks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tower_parts.hpp"

namespace nanet::km3_emulate {
namespace {

double first_light_ns(const Track& track, const km3::Vector& place_m) {
  const auto arrival = [&](double way_m) {
    const double x = track.point_m.x + way_m * track.direction.x - place_m.x;
    const double y = track.point_m.y + way_m * track.direction.y - place_m.y;
    const double z = track.point_m.z + way_m * track.direction.z - place_m.z;
    return track.time_ns + (way_m + 1.38 * std::sqrt(x * x + y * y + z * z)) / 0.299792458;
  };
  double low = -2000;
  double high = 2000;
  for (int step = 0; step < 200; ++step) {  // the arrival has one least
    const double a = low + (high - low) / 3;
    const double b = high - (high - low) / 3;
    (arrival(a) < arrival(b) ? high : low) = arrival(a) < arrival(b) ? b : a;
  }
  return arrival(0.5 * (low + high));
}

TEST(Tracks, LightComesWhenTheFirstPossibleLightDoes) {
  TowerConfig config;
  config.muons = {.rate_hz = 200, .cos_zenith_min = -1, .time_sigma_ns = 0, .scattered_share = 0};
  UnitMaker maker(config, standard_tower());
  std::size_t compared = 0;
  for (const Track& track : maker.tracks(1)) {
    for (const LightHit& hit : track.hits) {
      const km3::Vector& place = maker.detector().pms()[maker.first_pm(hit.floor) + hit.pm].position_m;
      ASSERT_NEAR(hit.time_ns, first_light_ns(track, place), 1e-3);
      ++compared;
    }
  }
  EXPECT_GT(compared, 100u);
}

TEST(Tracks, LightFallsWithTheDistanceAndFacingSeesMore) {
  TowerConfig config;
  config.muons = {.rate_hz = 5000, .radius_m = 100};
  UnitMaker maker(config, standard_tower());
  double near = 0;
  double near_hit = 0;
  double far = 0;
  double far_hit = 0;
  for (std::uint64_t slice = 0; slice < 2; ++slice) {
    for (const Track& track : maker.tracks(slice)) {
      const double length = std::hypot(track.direction.x, track.direction.y, track.direction.z);
      ASSERT_NEAR(length, 1.0, 1e-12);
      ASSERT_LE(track.direction.z, 0);  // from above
      const km3::Vector& place = maker.detector().pms()[maker.first_pm(7)].position_m;
      const double x = place.x - track.point_m.x;
      const double y = place.y - track.point_m.y;
      const double z = place.z - track.point_m.z;
      const double along = x * track.direction.x + y * track.direction.y + z * track.direction.z;
      const double across = std::sqrt(std::max(0.0, x * x + y * y + z * z - along * along));
      const bool seen = std::ranges::any_of(track.hits, [](const LightHit& hit) { return hit.floor == 7 && hit.pm == 0; });
      if (across < 20) {
        ++near;
        near_hit += seen ? 1 : 0;
      } else if (across > 60) {
        ++far;
        far_hit += seen ? 1 : 0;
      }
    }
  }
  ASSERT_GT(near, 20);
  ASSERT_GT(far, 100);
  EXPECT_GT(near_hit / near, 0.5);
  EXPECT_LT(far_hit / far, 0.3);
}

// All light of the tracks is in the units, also what falls into a neighbouring slice.
TEST(Tracks, EveryHitOfATrackIsSent) {
  TowerConfig config;
  config.slice_ms = 1;
  config.noise.singles_hz = 0;
  config.noise.coincidences_hz = {};
  config.muons.rate_hz = 10'000;
  UnitMaker maker(config, standard_tower());
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> made;
  for (std::uint64_t slice = 0; slice < 30; ++slice) {
    const auto begin_ns = static_cast<std::int64_t>(slice) * 1'000'000;
    for (std::uint32_t floor = 0; floor < 14; ++floor) {
      for (const RawHit& hit : read_hits(unit_of(maker, slice, floor, Kind::hits), false)) sent.push_back(begin_ns + hit.time_ns);
    }
    for (const Track& track : maker.tracks(slice)) {
      for (const LightHit& hit : track.hits) made.push_back(begin_ns + static_cast<std::int64_t>(std::floor(hit.time_ns)));
    }
  }
  std::ranges::sort(sent);
  std::ranges::sort(made);
  const auto inside = [](std::int64_t time_ns) {
    return time_ns >= 5000 && time_ns < 29'990'000;
  };  // their neighbours are not looked at
  std::erase_if(sent, [&](std::int64_t time_ns) { return !inside(time_ns); });
  std::erase_if(made, [&](std::int64_t time_ns) { return !inside(time_ns); });
  EXPECT_GT(sent.size(), 1000u);
  EXPECT_EQ(sent, made);
}

}  // namespace
}  // namespace nanet::km3_emulate
