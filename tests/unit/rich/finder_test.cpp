// SPDX-License-Identifier: Apache-2.0
// What all finders do beyond their own search: more rings than an answer holds.
#include "nanet/rich/finder.hpp"

#include <set>

#include "classic_finders.hpp"
#include "rich/find_event.hpp"

namespace nanet::rich {
namespace {

EventRings found_in(const FinderConfig& config, const classic::Hits& hits) {
  const event::Event event = classic::as_event(hits);
  EventRings rings;
  find_rings(config, std::span(&event, 1), std::span(&rings, 1));
  EXPECT_TRUE(classic::same_bits(rings, find_rings_scalar(config, event)));
  return rings;
}

// Circles of 15 hits that do not lie on one another, without noise.
classic::Hits circles(std::size_t count) {
  constexpr std::array<classic::TrueRing, 6> kRings{
      {{-80, 0, 90}, {80, 10, 130}, {0, -70, 180}, {10, 90, 110}, {-20, 30, 150}, {60, -60, 85}}};
  std::set<std::uint16_t> channels;
  for (std::size_t r = 0; r < count; ++r) {
    for (int k = 0; k < 15; ++k) {
      const double phi = 0.4188790 * k + 0.13 * static_cast<double>(r);
      const auto channel = nearest_channel(kRings[r].x_mm + kRings[r].radius_mm * std::cos(phi),
                                           kRings[r].y_mm + kRings[r].radius_mm * std::sin(phi), 0);
      if (channel != kNoChannel) channels.insert(channel);
    }
  }
  return {channels.begin(), channels.end()};
}

TEST(Finder, MoreRingsThanAnAnswerHoldsAreSaid) {
  for (const FinderKind kind : {FinderKind::triplets, FinderKind::mixture}) {
    FinderConfig config;
    config.kind = kind;
    for (std::size_t rings = 0; rings <= 6; ++rings) {
      const EventRings found = found_in(config, circles(rings));
      EXPECT_EQ(found.count, std::min<std::size_t>(rings, kMaxRings)) << finder_name(kind) << " " << rings;
      EXPECT_EQ(found.more_rings, rings > kMaxRings ? 1 : 0) << finder_name(kind) << " " << rings;
    }
  }
}

TEST(Finder, NoFinderSaysMoreOfFewRings) {
  for (std::uint32_t k = 0; k < kFinderCount; ++k) {
    FinderConfig config;
    config.kind = static_cast<FinderKind>(k);
    for (std::size_t e = 0; e < 60; ++e) {
      const EventRings found = found_in(config, classic::any_events()[e]);
      if (found.count == kMaxRings) continue;
      EXPECT_EQ(found.more_rings, 0) << finder_name(config.kind) << " " << e;
    }
  }
}

TEST(Finder, FarHitsComeFirst) {
  EventRings found;
  found.count = 1;
  found.rings[0].radius_mm = 100;
  std::array<std::uint16_t, 5> hits{channel_at(11, 0, 0), channel_at(0, 1, 1), 0xffff, channel_at(12, 1, 0), channel_at(20, 1, 0)};
  EXPECT_EQ(far_hits_first(hits.data(), 5, kPmPoints.data(), found), 2u);
  EXPECT_EQ(hits[0], channel_at(0, 1, 1));
  EXPECT_EQ(hits[1], channel_at(20, 1, 0));
}

}  // namespace
}  // namespace nanet::rich
