// SPDX-License-Identifier: Apache-2.0
// The mixture finder as a GPU's warp runs it, on a warp that is emulated: the same bits as find_mixture, whatever the order of the lanes.
#include "rich/mixture_team.hpp"

#include <cstring>
#include <random>
#include <span>

#include "classic_finders.hpp"
#include "emulated_warp.hpp"
#include "rich/mixture.hpp"

namespace nanet::rich {
namespace {

EventRings found_by_warp(const classic::Hits& hits, const MixtureCuts& cuts, bool backwards) {
  static MixtureTeamMemory memory;
  std::memset(static_cast<void*>(&memory), 0xa5, sizeof memory);  // as the event before left it, or worse
  const event::Event event = classic::as_event(hits);
  const MixtureSetup setup = prepare_mixture(cuts);
  EmulatedWarp::run([&] { find_mixture_together<EmulatedWarp>(event, kPmPoints.data(), setup, {&memory}); }, backwards);
  return memory.found;
}

void expect_same_bits(std::span<const classic::Hits> events, const MixtureCuts& cuts) {
  bool backwards = false;
  for (const classic::Hits& hits : events) {
    const EventRings expected = find_mixture(classic::as_event(hits), kPmPoints.data(), cuts);
    ASSERT_TRUE(classic::same_bits(found_by_warp(hits, cuts, backwards), expected)) << "event " << &hits - events.data();
    backwards = !backwards;
  }
}

// Of 0 to 4 rings, on both disks, odd ones among them.
TEST(MixtureTeam, SameBitsAsOneThread) { expect_same_bits(std::span(classic::any_events()).first(60), {}); }

// More first rings and starts than fit into the list of offers.
TEST(MixtureTeam, SameBitsWithWideSearch) {
  MixtureCuts cuts;
  cuts.starts = 8;
  cuts.start_gap = 20;
  cuts.first_gap = 100;
  cuts.move_rounds = 1;
  cuts.deep_rings = 5;
  expect_same_bits(std::span(classic::any_events()).subspan(60, 20), cuts);
}

TEST(MixtureTeam, SameBitsWithTimeAndWithoutDisks) {
  MixtureCuts cuts;
  cuts.time_use = 1;
  cuts.disk_use = 0;
  cuts.time_sigma_ns = 2.0F;
  cuts.deep_rings = 5;
  expect_same_bits(std::span(classic::any_events()).subspan(80, 40), cuts);
}

// Rings whose hits come together, up to 3 ns off the trigger's time.
TEST(MixtureTeam, SameBitsWithTheEventsTime) {
  MixtureCuts cuts;
  cuts.time_use = 1;
  cuts.deep_rings = 5;
  std::vector<classic::Hits> events(classic::any_events().begin() + 120, classic::any_events().begin() + 160);
  for (std::size_t e = 0; e < events.size(); ++e) {
    for (std::size_t k = 0; k < events[e].size(); ++k) {
      const unsigned code = static_cast<unsigned>(e % 32 + k % 3);
      if (k % 5 != 0) events[e][k] = static_cast<std::uint16_t>((events[e][k] & 0x7ff) | (code & 31) << 11);
    }
  }
  expect_same_bits(events, cuts);
}

// Very many hits: more than the masks of a start have bits, and more than a lane can have one of.
TEST(MixtureTeam, SameBitsWithManyHits) {
  MixtureCuts cuts;
  cuts.starts = 2;
  cuts.em_steps = 2;
  cuts.move_rounds = 0;
  std::mt19937_64 engine(41);
  std::vector<classic::Hits> events;
  for (int e = 0; e < 12; ++e) {
    classic::Hits hits;
    for (int k = 40 + 8 * e; k > 0; --k) hits.push_back(static_cast<std::uint16_t>(engine()));
    events.push_back(hits);
  }
  expect_same_bits(events, cuts);
}

// Starts of exactly the same score: the first one counts.
TEST(MixtureTeam, SameBitsWithEqualStarts) {
  MixtureCuts cuts;
  cuts.deep_rings = 5;
  std::mt19937_64 engine(42);
  std::vector<classic::Hits> events;
  for (int e = 0; e < 6; ++e) {
    std::array<std::uint16_t, 6> channels{};
    for (std::uint16_t& channel : channels) channel = static_cast<std::uint16_t>(engine() % 2048);
    classic::Hits hits;
    for (int k = 30; k > 0; --k) hits.push_back(channels[engine() % channels.size()]);
    events.push_back(hits);
  }
  expect_same_bits(events, cuts);
}

}  // namespace
}  // namespace nanet::rich
