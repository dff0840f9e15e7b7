// SPDX-License-Identifier: Apache-2.0
#include "rich/almagest.hpp"

#include <set>

#include "classic_finders.hpp"

namespace nanet::rich {
namespace {

const classic::Finder<AlmagestCuts> kAlmagest{
    [](event::Event event, const PmPoint* points, const AlmagestCuts& cuts) { return find_almagest(event, points, cuts); },
    [](std::span<const event::Event> events, std::span<EventRings> rings, const AlmagestCuts& cuts) {
      find_almagest(events, rings, cuts);
    }};

struct Place {
  float x_mm, y_mm;
};

float test_value_mm2(Place a, Place b, Place c, Place d) {
  const auto distance_mm = [](Place p, Place q) { return std::hypot(p.x_mm - q.x_mm, p.y_mm - q.y_mm); };
  return ptolemy_mm2(distance_mm(a, b), distance_mm(a, c), distance_mm(b, c), distance_mm(a, d), distance_mm(b, d),
                     distance_mm(c, d));
}

// A rectangle of 40 by 30 mm has diagonals of 50 mm: 30 30 + 40 40 = 50 50.
TEST(Almagest, PtolemyOnLiteralPoints) {
  const Place a{0, 0};
  const Place b{40, 0};
  const Place c{40, 30};
  EXPECT_FLOAT_EQ(ptolemy_mm2(40, 50, 30, 30, 50, 40), 0.0F);
  EXPECT_FLOAT_EQ(test_value_mm2(a, b, c, {0, 30}), 0.0F);
  EXPECT_FLOAT_EQ(test_value_mm2(a, c, b, {0, 30}), 0.0F);  // any order on the circle
  EXPECT_FLOAT_EQ(test_value_mm2(c, a, b, {0, 30}), 0.0F);
  EXPECT_FLOAT_EQ(test_value_mm2(a, b, c, a), 0.0F);                         // a point of the three
  EXPECT_FLOAT_EQ(test_value_mm2(a, b, c, {20, 15}), 500.0F);                // the centre: 25 30 + 40 25 - 50 25
  EXPECT_NEAR(test_value_mm2(a, b, c, {0, -30}), 515.5589F, 1e-3F);          // 30 30 + 50 50 - 40 sqrt(5200)
  EXPECT_FLOAT_EQ(test_value_mm2({0, 0}, {10, 0}, {30, 0}, {70, 0}), 0.0F);  // a line
  // On the circle of radius 150 mm about (12, -7) mm, and 5 mm outside.
  const auto at = [](double phi, double radius_mm) {
    return Place{static_cast<float>(12 + radius_mm * std::cos(phi)), static_cast<float>(-7 + radius_mm * std::sin(phi))};
  };
  EXPECT_NEAR(test_value_mm2(at(0.3, 150), at(1.9, 150), at(4.1, 150), at(5.4, 150)), 0.0F, 0.02F);
  EXPECT_GT(test_value_mm2(at(0.3, 150), at(1.9, 150), at(4.1, 150), at(5.4, 155)), 10.0F);
}

TEST(Almagest, NoTwoPmsAreEquallyFarOut) {
  for (std::uint32_t direction = 0; direction < almagest::kDirections; ++direction) {
    std::set<std::int32_t> seen;
    for (std::size_t channel = 0; channel < kPmPointRows; ++channel) {
      const PmPoint& pm = kPmPoints[channel];
      if (pm.mapped == 0) continue;
      const almagest::Point point = almagest::point_of(almagest::place_of(pm.i, pm.j));
      EXPECT_EQ(point.i, pm.i);
      EXPECT_EQ(point.j, pm.j);
      EXPECT_TRUE(seen.insert(almagest::along(direction, pm.i, pm.j)).second) << channel;
    }
  }
}

// A circle of radius 100 mm about (45, 9 sqrt(3)) mm; score_width_mm is 20. What a hit p mm outside scores is 1 - (p / 20)^2.
TEST(Almagest, ScoreFallsWithTheSquareOfTheDistance) {
  const almagest::Limits limits = almagest::limits_of({});
  const almagest::Circle circle{5.0F, 1.0F, 100.0F / 9.0F};
  const almagest::ScoreFactors factors = almagest::score_factors_of(circle, 1.0F / circle.radius, limits);
  for (int i = -33; i <= 33; ++i) {
    for (int j = -19; j <= 19; ++j) {
      const double x_mm = 9.0 * (i - 5);
      const double y_mm = 15.588457268119894 * (j - 1);
      const double p = (x_mm * x_mm + y_mm * y_mm - 100.0 * 100.0) / 200.0 / 20.0;
      const double expected = p * p < 1.0 ? 1.0 - p * p : 0.0;
      EXPECT_NEAR(score_of(factors, almagest::point_at(i, j)) / 254.0, expected, 0.03) << i << " " << j;
    }
  }
}

// Published: four hits must pass; by default A, B and C are enough.
TEST(Almagest, PtolemyCutDropsRingsWithoutAFourthHit) {
  auto finder = kAlmagest;
  finder.cuts.ptolemy_hits_min = 4;
  std::vector<classic::Hits> events;
  classic::Source source(31);
  for (int k = 0; k < 500; ++k) events.push_back(source.next(1, 1.2).hits);
  std::uint32_t rings = 0;
  std::uint32_t with_cut = 0;
  for (const classic::Hits& hits : events) {
    rings += kAlmagest.fast(hits).count;
    const EventRings found = finder.fast(hits);
    EXPECT_TRUE(classic::same_bits(found, finder.one(hits)));
    with_cut += found.count;
  }
  EXPECT_LE(with_cut, rings);
  EXPECT_GE(with_cut, 450U);
  finder.cuts.ptolemy_max_mm2 = 0.0F;
  finder.cuts.ptolemy_hits_min = 100;
  for (const classic::Hits& hits : events) EXPECT_EQ(finder.fast(hits).count, 0);
}

TEST(Almagest, TimeWindowKeepsTheDensestTimes) {
  // Two rings of twelve PMs, the first at codes 5 and 6, the second, which has a hit less, at -9.
  std::vector<std::uint16_t> hits;
  const auto add_ring = [&](double x_mm, double radius_mm, int photons, int code) {
    for (int k = 0; k < photons; ++k) {
      const double phi = 6.283185307179586 * k / photons;
      const std::uint16_t channel = nearest_channel(x_mm + radius_mm * std::cos(phi), radius_mm * std::sin(phi), 0);
      hits.push_back(static_cast<std::uint16_t>(channel | (static_cast<unsigned>(code + k % 2 * (code > 0 ? 1 : 0)) & 31u) << 11));
    }
  };
  add_ring(-80, 120, 13, 5);
  add_ring(70, 150, 12, -9);
  EXPECT_EQ(kAlmagest.fast(hits).count, 2);
  auto finder = kAlmagest;
  finder.cuts.time_window_ns = 1.0F;
  const EventRings found = finder.fast(hits);
  EXPECT_TRUE(classic::same_bits(found, finder.one(hits)));
  ASSERT_EQ(found.count, 1);
  EXPECT_NEAR(found.rings[0].x_mm, -80.0F, 6.0F);
  EXPECT_NEAR(found.rings[0].radius_mm, 120.0F, 5.0F);
  EXPECT_EQ(found.mapped_hits, 25);
}

TEST(Almagest, SameBitsAsScalarOnEveryInstructionSet) {
  classic::expect_same_bits_on_all_targets(kAlmagest, classic::any_events());
}
TEST(Almagest, OrderOfHitsDoesNotMatter) { classic::expect_order_of_hits_does_not_matter(kAlmagest); }
TEST(Almagest, OddEventsAreHarmless) { classic::expect_odd_events_are_harmless(kAlmagest); }
TEST(Almagest, AnyCutsAreHarmless) { classic::expect_any_cuts_are_harmless(kAlmagest); }
TEST(Almagest, RingsMoveWithTheirHits) { classic::expect_rings_move_with_hits(kAlmagest, 0.97); }
TEST(Almagest, IdealRingsAreFound) { classic::expect_ideal_rings_are_found(kAlmagest); }
TEST(Almagest, TimeIsTheMeanOfTheHits) { classic::expect_time_of_hits(kAlmagest); }
TEST(Almagest, SingleRingsWithNoise) { classic::expect_quality(kAlmagest, 1, {0.97, 0.03}); }
TEST(Almagest, TwoRings) { classic::expect_quality(kAlmagest, 2, {0.83, 0.15}); }

}  // namespace
}  // namespace nanet::rich
