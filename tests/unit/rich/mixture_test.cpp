// SPDX-License-Identifier: Apache-2.0
#include "rich/mixture.hpp"

#include "classic_finders.hpp"

namespace nanet::rich {
namespace {

const classic::Finder<MixtureCuts> kMixture{
    [](event::Event event, const PmPoint* points, const MixtureCuts& cuts) { return find_mixture(event, points, cuts); },
    [](std::span<const event::Event> events, std::span<EventRings> rings, const MixtureCuts& cuts) {
      find_mixture(events, rings, cuts);
    }};

// The scalar function is slow on events of many rings, so the large sample has a short search; a smaller one the default.
TEST(Mixture, SameBitsAsScalarOnEveryInstructionSet) {
  classic::Finder<MixtureCuts> brief = kMixture;
  brief.cuts.starts = 1;
  brief.cuts.em_steps = 2;
  brief.cuts.move_rounds = 0;
  brief.cuts.deep_rings = 5;
  classic::expect_same_bits_on_all_targets(brief, classic::any_events());
  const std::vector<classic::Hits> some(classic::any_events().begin(), classic::any_events().begin() + 100);
  classic::expect_same_bits_on_all_targets(kMixture, some);
  classic::Finder<MixtureCuts> timed = brief;
  timed.cuts.time_use = 1;
  timed.cuts.disk_use = 0;
  timed.cuts.time_sigma_ns = 2.0F;  // the sample's times are any
  const std::vector<classic::Hits> more(classic::any_events().begin() + 100, classic::any_events().begin() + 1100);
  classic::expect_same_bits_on_all_targets(timed, more);
}

TEST(Mixture, OrderOfHitsDoesNotMatter) { classic::expect_order_of_hits_does_not_matter(kMixture); }
TEST(Mixture, OddEventsAreHarmless) { classic::expect_odd_events_are_harmless(kMixture); }
TEST(Mixture, AnyCutsAreHarmless) { classic::expect_any_cuts_are_harmless(kMixture); }
TEST(Mixture, IdealRingsAreFound) { classic::expect_ideal_rings_are_found(kMixture); }
TEST(Mixture, SingleRingsWithNoise) { classic::expect_quality(kMixture, 1, {0.994, 0.008}); }
TEST(Mixture, TwoRingsWithNoise) { classic::expect_quality(kMixture, 2, {0.98, 0.02}); }

// The prior knows the disk's middle, so a moved ring is not quite the ring moved: it is without the prior.
TEST(Mixture, RingsMoveWithTheirHits) {
  classic::Finder<MixtureCuts> finder = kMixture;
  finder.cuts.center_sigma_mm = 1.0e4F;
  classic::expect_rings_move_with_hits(finder, 0.98);
}

// Six PMs at 8 pitches around the PM at i = 1, j = 0. The density of a ring falls with its radius and the prior pulls to the middle, so
// the fit is not exact, but nearly.
TEST(Mixture, RegularHexagon) {
  classic::Hits hits;
  int codes = 0;
  for (const auto& [di, dj] : std::array<std::array<int, 2>, 6>{{{16, 0}, {-16, 0}, {8, 8}, {8, -8}, {-8, 8}, {-8, -8}}}) {
    const int code = static_cast<int>(hits.size()) - 5;
    codes += code;
    hits.push_back(static_cast<std::uint16_t>(channel_at(1 + di, dj, 0) | (code & 31) << 11));
  }
  const EventRings found = kMixture.fast(hits);
  ASSERT_EQ(found.count, 1);
  EXPECT_EQ(found.rings[0].hits, 6);
  EXPECT_NEAR(found.rings[0].x_mm, 9.0F, 0.2F);
  EXPECT_NEAR(found.rings[0].y_mm, 0.0F, 0.01F);
  EXPECT_NEAR(found.rings[0].radius_mm, 144.0F, 0.5F);
  EXPECT_LT(found.rings[0].rms_mm, 0.5F);
  EXPECT_NEAR(found.rings[0].time_ns, static_cast<float>(codes) / 6.0F * kHitTimeUnitNs, 1e-5F);
}

// exp and log are our own; the arc cosine is a polynomial.
TEST(Mixture, FunctionsAgreeWithTheLibrary) {
  for (float p = 0.0F; p <= 80.0F; p += 0.0131F) {
    const double exact = std::exp(-static_cast<double>(p));
    EXPECT_NEAR(exp_minus(p) / exact, 1.0, 2e-5) << p;
  }
  for (float x = 1.0e-4F; x < 1.0e6F; x *= 1.0123F) EXPECT_NEAR(log_of(x), std::log(static_cast<double>(x)), 2e-6) << x;
  std::mt19937_64 engine(31);
  std::uniform_real_distribution<float> place(-200.0F, 200.0F);
  std::uniform_real_distribution<float> size(50.0F, 250.0F);
  for (int k = 0; k < 100; ++k) {
    const float x = place(engine);
    const float y = place(engine);
    const float r = size(engine);
    int inside = 0;
    for (int step = 0; step < 20000; ++step) {
      const double phi = 6.283185307179586 * (step + 0.5) / 20000;
      inside += std::hypot(x + r * std::cos(phi), y + r * std::sin(phi)) <= double{kDiskRadiusMm} ? 1 : 0;
    }
    EXPECT_NEAR(share_on_disk(x, y, r), inside / 20000.0, 2e-3);
  }
}

// Twelve hits at one time and as many at any time, which would make a ring of their own: with the time they are none. Whether the trigger's time, from
// which hits are counted, is the event's or 2 ns off makes no difference.
TEST(Mixture, TimeTellsNoiseFromRingsAlsoWhenTheTriggerIsOff) {
  classic::Finder<MixtureCuts> timed = kMixture;
  timed.cuts.time_use = 1;
  std::mt19937_64 engine(34);
  for (const int code : {0, 10, -12}) {
    classic::Source source(32);
    int plain_rings = 0;
    int timed_rings = 0;
    int on_time = 0;  // events whose largest ring is the one at the event's time
    for (int e = 0; e < 200; ++e) {
      classic::Hits hits = source.next(1, 0).hits;
      for (std::uint16_t& hit : hits) hit = static_cast<std::uint16_t>((hit & 0x7ff) | (code & 31) << 11);
      for (const std::uint16_t hit : source.next(1, 0).hits)
        hits.push_back(static_cast<std::uint16_t>((hit & 0x7ff) | (engine() & 31) << 11));
      plain_rings += kMixture.fast(hits).count;
      const EventRings found = timed.fast(hits);
      timed_rings += found.count;
      on_time += found.count > 0 && std::abs(found.rings[0].time_ns - static_cast<float>(code) * kHitTimeUnitNs) < 0.3F ? 1 : 0;
    }
    EXPECT_GE(plain_rings, 380) << code;
    EXPECT_GE(on_time, 194) << code;
    EXPECT_LE(timed_rings, 310) << code;
  }
}

// Worked by hand: codes 9, 10 and 12 lie in the window about 10 (9 would do, but is further from the trigger's time by nothing; of equals the nearest wins).
TEST(Mixture, TheEventsTimeIsThatOfMostHits) {
  MixtureCuts cuts;
  cuts.time_use = 1;
  const MixtureSetup setup = prepare_mixture(cuts);
  EXPECT_EQ(setup.time_reach, 3);
  const auto time_ns = [&](std::initializer_list<int> codes) {
    std::vector<std::uint16_t> keys;
    for (const int code : codes)
      keys.push_back(static_cast<std::uint16_t>(40 * keys.size() << 5 | static_cast<unsigned>(code & 31)));
    return event_time_ns(setup, keys.data(), static_cast<std::uint32_t>(keys.size()));
  };
  EXPECT_FLOAT_EQ(time_ns({}), 0.0F);
  EXPECT_FLOAT_EQ(time_ns({0}), 0.0F);
  EXPECT_FLOAT_EQ(time_ns({-16, 9, 10, 12, 2}), 31.0F / 3.0F * kHitTimeUnitNs);
  EXPECT_FLOAT_EQ(time_ns({-16, -15, 15}), -15.5F * kHitTimeUnitNs);
  EXPECT_FLOAT_EQ(time_ns({-10, 10}),
                  -10.0F * kHitTimeUnitNs);  // the window about -7 is nearer than the one about 7 by the rule of order
}

// Two rings with one centre nearly: one on each disk. Hits of both disks together are one band of hits; the disk tells them apart.
TEST(Mixture, DiskTellsRingsApart) {
  classic::Finder<MixtureCuts> without = kMixture;
  without.cuts.disk_use = 0;
  std::mt19937_64 engine(33);
  std::uniform_real_distribution<double> angle(0.0, 6.283185307179586);
  int with_both = 0;
  int without_both = 0;
  for (int e = 0; e < 200; ++e) {
    std::set<std::uint16_t> channels;
    for (int k = 0; k < 30; ++k) {
      const double phi = angle(engine);
      const double radius_mm = k % 2 == 0 ? 140 : 152;
      channels.insert(nearest_channel(radius_mm * std::cos(phi), radius_mm * std::sin(phi), k % 2));
    }
    const classic::Hits hits(channels.begin(), channels.end());
    with_both += kMixture.fast(hits).count == 2 ? 1 : 0;
    without_both += without.fast(hits).count == 2 ? 1 : 0;
  }
  EXPECT_GT(with_both, 190);
  EXPECT_LT(without_both, with_both);
}

TEST(Mixture, CutsHaveNames) {
  MixtureCuts cuts;
  std::set<std::string> names;
  cuts.visit([&](const char* name, auto&, const config::Setting&) { names.insert(name); });
  EXPECT_EQ(names.size() * 4, sizeof cuts);
}

}  // namespace
}  // namespace nanet::rich
