// SPDX-License-Identifier: Apache-2.0
#include "rich/pomh.hpp"

#include "classic_finders.hpp"

namespace nanet::rich {
namespace {

const classic::Finder<PomhCuts> kPomh{
    [](event::Event event, const PmPoint* points, const PomhCuts& cuts) { return find_pomh(event, points, cuts); },
    [](std::span<const event::Event> events, std::span<EventRings> rings, const PomhCuts& cuts) { find_pomh(events, rings, cuts); }};

TEST(Pomh, SameBitsAsScalarOnEveryInstructionSet) { classic::expect_same_bits_on_all_targets(kPomh, classic::any_events()); }
TEST(Pomh, OrderOfHitsDoesNotMatter) { classic::expect_order_of_hits_does_not_matter(kPomh); }
TEST(Pomh, OddEventsAreHarmless) { classic::expect_odd_events_are_harmless(kPomh); }
TEST(Pomh, AnyCutsAreHarmless) { classic::expect_any_cuts_are_harmless(kPomh); }
TEST(Pomh, RingsMoveWithTheirHits) { classic::expect_rings_move_with_hits(kPomh, 0.98); }
TEST(Pomh, IdealRingsAreFound) { classic::expect_ideal_rings_are_found(kPomh); }
TEST(Pomh, TimeIsTheMeanOfTheHits) { classic::expect_time_of_hits(kPomh); }
TEST(Pomh, SingleRingsWithNoise) { classic::expect_quality(kPomh, 1, {0.98, 0.015}); }

}  // namespace
}  // namespace nanet::rich
