// SPDX-License-Identifier: Apache-2.0
#include "rich/histogram.hpp"

#include "classic_finders.hpp"

namespace nanet::rich {
namespace {

const classic::Finder<HistogramCuts> kHistogram{
    [](event::Event event, const PmPoint* points, const HistogramCuts& cuts) { return find_histogram(event, points, cuts); },
    [](std::span<const event::Event> events, std::span<EventRings> rings, const HistogramCuts& cuts) {
      find_histogram(events, rings, cuts);
    }};

TEST(Histogram, SameBitsAsScalarOnEveryInstructionSet) {
  classic::expect_same_bits_on_all_targets(kHistogram, classic::any_events());
}
TEST(Histogram, OrderOfHitsDoesNotMatter) { classic::expect_order_of_hits_does_not_matter(kHistogram); }
TEST(Histogram, OddEventsAreHarmless) { classic::expect_odd_events_are_harmless(kHistogram); }
TEST(Histogram, AnyCutsAreHarmless) { classic::expect_any_cuts_are_harmless(kHistogram); }
TEST(Histogram, RingsMoveWithTheirHits) { classic::expect_rings_move_with_hits(kHistogram, 0.97); }
TEST(Histogram, IdealRingsAreFound) { classic::expect_ideal_rings_are_found(kHistogram); }
TEST(Histogram, TimeIsTheMeanOfTheHits) { classic::expect_time_of_hits(kHistogram); }
TEST(Histogram, SingleRingsWithNoise) { classic::expect_quality(kHistogram, 1, {0.975, 0.02}); }
TEST(Histogram, TwoRingsWithNoise) { classic::expect_quality(kHistogram, 2, {0.89, 0.1}); }
TEST(Histogram, ThreeRingsWithNoise) { classic::expect_quality(kHistogram, 3, {0.62, 0.25}); }

TEST(Histogram, LooksForNoMoreRingsThanAsked) {
  classic::Finder<HistogramCuts> finder = kHistogram;
  for (std::uint32_t rings_max = 0; rings_max <= 4; ++rings_max) {
    finder.cuts.rings_max = rings_max;
    for (std::size_t e = 0; e < 300; ++e) EXPECT_LE(finder.fast(classic::any_events()[e]).count, rings_max);
  }
}

}  // namespace
}  // namespace nanet::rich
