// SPDX-License-Identifier: Apache-2.0
// Hits by channel, the mask, and what it is for: five channels that always fire make rings until they are masked.
#include "na62/channel_monitor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "emulate/monte_carlo.hpp"
#include "emulate/ring_match.hpp"
#include "nanet/rich/finder.hpp"

namespace nanet::na62 {
namespace {

std::vector<emulate::McEvent> made_events(std::size_t count, std::vector<std::uint16_t> hot, std::vector<std::uint16_t> dead = {}) {
  emulate::MonteCarloConfig config;
  config.flat_radius = true;
  config.mean_hits = 12;
  config.noise_hits = 1.2;
  config.hits_max = emulate::kMaxEventHits;
  config.jura_share = 1.0;
  config.hot_channels = std::move(hot);
  config.dead_channels = std::move(dead);
  emulate::MonteCarlo source(config);
  std::vector<emulate::McEvent> events(count);
  for (emulate::McEvent& event : events) source.next(event);
  return events;
}

// Events in batches; take(events, first) sees each after the monitor.
template <class Take>
void admit_all(ChannelMonitor& monitor, std::span<const emulate::McEvent> events, std::size_t batch, Take&& take) {
  std::vector<event::Event> hits;
  for (std::size_t first = 0; first < events.size(); first += hits.size()) {
    hits.clear();
    for (const emulate::McEvent& event : events.subspan(first, std::min(batch, events.size() - first)))
      hits.push_back({event.hits.data(), event.hit_count});
    take(monitor.admit(hits, 1000 * (first + hits.size())), first);
  }
}

double fakes_an_event(ChannelMonitor& monitor, std::span<const emulate::McEvent> events) {
  rich::FinderConfig finder;
  finder.kind = rich::FinderKind::mixture;
  std::vector<rich::EventRings> rings(events.size());
  admit_all(monitor, events, 16, [&](std::span<const event::Event> seen, std::size_t first) {
    rich::find_rings(finder, seen, std::span(rings).subspan(first, seen.size()));
  });
  std::size_t fakes = 0;
  for (std::size_t e = 0; e < events.size(); ++e) fakes += emulate::match_rings(events[e].truth, rings[e]).fakes;
  return static_cast<double>(fakes) / static_cast<double>(events.size());
}

constexpr std::array<std::uint16_t, 5> kHot{164, 228, 542, 675, 738};  // on a circle of 130 mm, on the disk of the rings: the worst case

TEST(ChannelMonitor, CountsEveryHitOfEveryChannel) {
  const auto events = made_events(500, {});
  std::array<std::uint64_t, rich::kChannelCount> expected{};
  for (const auto& event : events) {
    for (std::uint32_t k = 0; k < event.hit_count; ++k) ++expected[event.hits[k] & rich::kChannelMask];
  }
  ChannelMonitor monitor;
  admit_all(monitor, events, 256, [&](std::span<const event::Event> seen, std::size_t first) {
    EXPECT_EQ(seen[0].hits, events[first].hits.data()) << "copied without need";
  });
  EXPECT_EQ(monitor.hits(), expected);
  monitor.take(expected);
  EXPECT_EQ(monitor.hits()[events[0].hits[0] & rich::kChannelMask], 2 * expected[events[0].hits[0] & rich::kChannelMask]);
  EXPECT_TRUE(monitor.found().empty());
}

TEST(ChannelMonitor, ConfiguredChannelsAreLeftOutAndCounted) {
  const auto events = made_events(500, {kHot.begin(), kHot.end()});
  rich::ChannelSet mask;
  for (const std::uint16_t channel : kHot) mask.add(channel);
  ChannelMonitor monitor(mask);
  std::uint64_t masked = 0;
  admit_all(monitor, events, 100, [&](std::span<const event::Event> seen, std::size_t first) {
    masked += monitor.masked_hits();
    for (std::size_t e = 0; e < seen.size(); ++e) {
      EXPECT_EQ(seen[e].count, events[first + e].hit_count - kHot.size());
      EXPECT_TRUE(std::none_of(seen[e].hits, seen[e].hits + seen[e].count, [&](std::uint16_t hit) { return mask.has(hit); }));
    }
  });
  EXPECT_EQ(masked, 500 * kHot.size());
  EXPECT_EQ(monitor.hits()[kHot[0]], 500u) << "masked hits are counted by channel all the same";
}

TEST(ChannelMonitor, HotChannelsAreMaskedWhenTheyAreFound) {
  const auto events = made_events(2000, {kHot.begin(), kHot.end()});
  ChannelMonitor monitor({}, HotChannels::mask);
  admit_all(monitor, events, 16, [](auto, std::size_t) {});
  ASSERT_EQ(monitor.found().size(), kHot.size());
  std::vector<std::uint16_t> found;
  for (const MaskedChannel& one : monitor.found()) {
    found.push_back(one.channel);
    EXPECT_TRUE(one.events == 32 || one.events == 96) << one.events;  // the ends of the first two periods
    EXPECT_EQ(one.at_ns, 1000 * one.events);
  }
  std::sort(found.begin(), found.end());
  EXPECT_TRUE(std::equal(found.begin(), found.end(), kHot.begin(), kHot.end()));
  ChannelMonitor idle;
  admit_all(idle, events, 16, [&](auto, std::size_t) { EXPECT_EQ(idle.masked_hits(), 0u); });
  EXPECT_TRUE(idle.found().empty());
}

// Long after the start: only the period counts, so what fired rarely before does not hide it.
TEST(ChannelMonitor, AChannelThatBecomesHotLateIsFoundWithinAPeriod) {
  const auto good = made_events(20'000, {});
  const auto bad = made_events(40'000, {kHot[0]});
  ChannelMonitor monitor({}, HotChannels::mask);
  admit_all(monitor, good, 256, [](auto, std::size_t) {});
  EXPECT_TRUE(monitor.found().empty());
  admit_all(monitor, bad, 256, [](auto, std::size_t) {});
  ASSERT_EQ(monitor.found().size(), 1u);
  EXPECT_EQ(monitor.found()[0].channel, kHot[0]);
}

TEST(ChannelMonitor, FiveHotChannelsMakeNoFakeRingsOnceMasked) {
  const auto events = made_events(20'000, {kHot.begin(), kHot.end()});
  ChannelMonitor blind;
  EXPECT_GT(fakes_an_event(blind, std::span(events).first(500)), 0.7);
  ChannelMonitor masking({}, HotChannels::mask);
  EXPECT_LE(fakes_an_event(masking, events), 0.01);  // 0.005 without hot channels, and some from before they are known
}

TEST(ChannelMonitor, DeadChannelsAreFoundInWhatWasCounted) {
  const auto events = made_events(30'000, {}, {240, 245, 760});
  ChannelMonitor monitor;
  admit_all(monitor, events, 256, [](auto, std::size_t) {});
  const rich::ChannelSet dead = rich::dead_channels(monitor.hits());
  for (const std::uint32_t channel : {240u, 245u, 760u}) EXPECT_TRUE(dead.has(channel)) << channel;
  EXPECT_EQ(dead.size(), 3u);
}

}  // namespace
}  // namespace nanet::na62
