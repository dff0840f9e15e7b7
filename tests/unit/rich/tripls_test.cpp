// SPDX-License-Identifier: Apache-2.0
#include "rich/tripls.hpp"

#include "classic_finders.hpp"

namespace nanet::rich {
namespace {

const classic::Finder<TriplsCuts> kTripls{
    [](event::Event event, const PmPoint* points, const TriplsCuts& cuts) { return find_tripls(event, points, cuts); },
    [](std::span<const event::Event> events, std::span<EventRings> rings, const TriplsCuts& cuts) {
      find_tripls(events, rings, cuts);
    }};

TEST(Tripls, SameBitsAsScalarOnEveryInstructionSet) { classic::expect_same_bits_on_all_targets(kTripls, classic::any_events()); }
TEST(Tripls, OrderOfHitsDoesNotMatter) { classic::expect_order_of_hits_does_not_matter(kTripls); }
TEST(Tripls, OddEventsAreHarmless) { classic::expect_odd_events_are_harmless(kTripls); }
TEST(Tripls, AnyCutsAreHarmless) { classic::expect_any_cuts_are_harmless(kTripls); }
TEST(Tripls, RingsMoveWithTheirHits) { classic::expect_rings_move_with_hits(kTripls, 0.98); }
TEST(Tripls, IdealRingsAreFound) { classic::expect_ideal_rings_are_found(kTripls); }
TEST(Tripls, TimeIsTheMeanOfTheHits) { classic::expect_time_of_hits(kTripls); }
TEST(Tripls, SingleRingsWithNoise) { classic::expect_quality(kTripls, 1, {0.98, 0.015}); }

}  // namespace
}  // namespace nanet::rich
