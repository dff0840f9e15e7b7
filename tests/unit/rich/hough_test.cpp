// SPDX-License-Identifier: Apache-2.0
#include "rich/hough.hpp"

#include "classic_finders.hpp"

namespace nanet::rich {
namespace {

const classic::Finder<HoughCuts> kHough{
    [](event::Event event, const PmPoint* points, const HoughCuts& cuts) { return find_hough(event, points, cuts); },
    [](std::span<const event::Event> events, std::span<EventRings> rings, const HoughCuts& cuts) { find_hough(events, rings, cuts); }};

TEST(Hough, SameBitsAsScalarOnEveryInstructionSet) { classic::expect_same_bits_on_all_targets(kHough, classic::any_events()); }
TEST(Hough, OrderOfHitsDoesNotMatter) { classic::expect_order_of_hits_does_not_matter(kHough); }
TEST(Hough, OddEventsAreHarmless) { classic::expect_odd_events_are_harmless(kHough); }
TEST(Hough, AnyCutsAreHarmless) { classic::expect_any_cuts_are_harmless(kHough); }
TEST(Hough, RingsMoveWithTheirHits) { classic::expect_rings_move_with_hits(kHough, 0.98); }
TEST(Hough, IdealRingsAreFound) { classic::expect_ideal_rings_are_found(kHough); }
TEST(Hough, TimeIsTheMeanOfTheHits) { classic::expect_time_of_hits(kHough); }
TEST(Hough, SingleRingsWithNoise) { classic::expect_quality(kHough, 1, {0.985, 0.01}); }

}  // namespace
}  // namespace nanet::rich
