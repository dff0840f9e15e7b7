// SPDX-License-Identifier: Apache-2.0
#include "rich/domh.hpp"

#include "classic_finders.hpp"
#include "rich/pomh.hpp"

namespace nanet::rich {
namespace {

const classic::Finder<DomhCuts> kDomh{
    [](event::Event event, const PmPoint* points, const DomhCuts& cuts) { return find_domh(event, points, cuts); },
    [](std::span<const event::Event> events, std::span<EventRings> rings, const DomhCuts& cuts) { find_domh(events, rings, cuts); }};

TEST(Domh, SameBitsAsScalarOnEveryInstructionSet) { classic::expect_same_bits_on_all_targets(kDomh, classic::any_events()); }
TEST(Domh, OrderOfHitsDoesNotMatter) { classic::expect_order_of_hits_does_not_matter(kDomh); }
TEST(Domh, OddEventsAreHarmless) { classic::expect_odd_events_are_harmless(kDomh); }
TEST(Domh, AnyCutsAreHarmless) { classic::expect_any_cuts_are_harmless(kDomh); }
TEST(Domh, RingsMoveWithTheirHits) { classic::expect_rings_move_with_hits(kDomh, 0.98); }
TEST(Domh, IdealRingsAreFound) { classic::expect_ideal_rings_are_found(kDomh); }
TEST(Domh, TimeIsTheMeanOfTheHits) { classic::expect_time_of_hits(kDomh); }
TEST(Domh, SingleRingsWithNoise) { classic::expect_quality(kDomh, 1, {0.98, 0.015}); }

TEST(Domh, SameRingAsPomh) {
  for (std::size_t e = 0; e < 5000; ++e) {
    const event::Event event = classic::as_event(classic::any_events()[e]);
    EventRings pomh;
    find_pomh({&event, 1}, {&pomh, 1}, PomhCuts{});
    EXPECT_TRUE(classic::same_bits(pomh, kDomh.fast(classic::any_events()[e])));
  }
}

}  // namespace
}  // namespace nanet::rich
