// SPDX-License-Identifier: Apache-2.0
// RingFinder: every finder gives the bits that it gives on the CPU, whatever the hits are.
#include "nanet/gpu/ring_finder.hpp"

#include <cstring>
#include <random>
#include <vector>

#include "check.hpp"
#include "emulate/monte_carlo.hpp"
#include "nanet/gpu/build.hpp"
#include "nanet/rich/finder.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::gpu {
namespace {

using Hits = std::vector<std::uint16_t>;

// Events of the RICH with none to four rings, noise, and rings that share light.
std::vector<Hits> physics_events(std::size_t count) {
  emulate::MonteCarloConfig config;
  config.seed = 4;
  config.flat_radius = true;
  config.mean_hits = 12;
  config.noise_hits = 1.2;
  config.hits_max = 128;
  config.ring_count_shares = {0.1, 0.4, 0.3, 0.15, 0.05};
  emulate::MonteCarlo monte_carlo(config);
  std::vector<Hits> events;
  while (events.size() < count) {
    const emulate::McEvent event = monte_carlo.next();
    events.emplace_back(event.hits.begin(), event.hits.begin() + event.hit_count);
  }
  return events;
}

// Any 16 bits are a hit: channels without a PM, the same channel often, more hits than are looked at, and none at all.
std::vector<Hits> odd_events(std::size_t count) {
  std::mt19937 random(4);
  std::vector<Hits> events{{}, {5}, {5, 5, 5}, {5, 5, 5, 5}, {7, 8, 9}, Hits(300, 11), Hits(128, 0xffff)};
  while (events.size() < count) {
    Hits hits(random() % (events.size() % 8 == 0 ? 300 : 30));
    const bool one_board = events.size() % 2 == 0;  // else all 2048 channels, most of them of another disk
    for (std::uint16_t& hit : hits) hit = static_cast<std::uint16_t>(one_board ? (random() & 0xf800) | (random() % 488) : random());
    events.push_back(std::move(hits));
  }
  return events;
}

void expect_same_bits(const std::vector<Hits>& events, const rich::FinderConfig& config) {
  std::vector<event::Event> views;
  for (const Hits& hits : events) views.push_back({hits.data(), static_cast<std::uint32_t>(hits.size())});
  std::vector<rich::EventRings> expected(events.size());
  rich::find_rings(config, views, expected);
  for (rich::EventRings& rings : expected) rings.more_rings = 0;  // which the finder's kernel alone does not look for
  RingFinder device(views);
  device.find(config);
  const std::vector<rich::EventRings> found = device.rings();
  ASSERT_EQ(found.size(), expected.size());
  std::size_t rings = 0;
  for (std::size_t e = 0; e < found.size(); ++e) {
    EXPECT_EQ(std::memcmp(&found[e], &expected[e], sizeof found[e]), 0)
        << rich::finder_name(config.kind) << ", event " << e << " of " << events[e].size() << " hits: " << found[e].count
        << " rings, on the CPU " << expected[e].count << "; first radius " << found[e].rings[0].radius_mm << " and "
        << expected[e].rings[0].radius_mm << " mm";
    rings += found[e].count;
  }
  EXPECT_GT(rings, events.size() / 4) << "too few rings to compare";
}

void expect_same_bits_of_all_finders(const std::vector<Hits>& events) {
  for (std::uint32_t k = 0; k < rich::kFinderCount; ++k) expect_same_bits(events, {.kind = static_cast<rich::FinderKind>(k)});
}

TEST(RingFinder, gives_the_bits_of_the_cpu) {
  expect_same_bits_of_all_finders(physics_events(check::under_sanitizer() ? 12 : 600));
}

TEST(RingFinder, gives_the_bits_of_the_cpu_for_any_hits) {
  expect_same_bits_of_all_finders(odd_events(check::under_sanitizer() ? 16 : 400));
}

TEST(RingFinder, one_finder_after_another_leaves_nothing_behind) {
  const std::vector<Hits> events = physics_events(33);
  std::vector<event::Event> views;
  for (const Hits& hits : events) views.push_back({hits.data(), static_cast<std::uint32_t>(hits.size())});
  RingFinder device(views);
  device.find({.kind = rich::FinderKind::almagest});
  const std::vector<rich::EventRings> first = device.rings();
  device.find({.kind = rich::FinderKind::math});
  device.find({.kind = rich::FinderKind::almagest});
  const std::vector<rich::EventRings> again = device.rings();
  ASSERT_EQ(first.size(), again.size());
  for (std::size_t e = 0; e < first.size(); ++e) EXPECT_EQ(std::memcmp(&first[e], &again[e], sizeof first[e]), 0) << "event " << e;
}

TEST(RingFinder, no_events_are_no_rings) {
  RingFinder device({});
  EXPECT_EQ(device.find({}), 0.0);
  EXPECT_TRUE(device.rings().empty());
}

TEST(Build, says_what_it_was_compiled_for) {
  EXPECT_GE(build().cuda_version, 13000);
  EXPECT_GT(std::strlen(build().architectures), 0u);
}

}  // namespace
}  // namespace nanet::gpu
