// SPDX-License-Identifier: Apache-2.0
#include "nanet/rich/channels.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "classic_finders.hpp"

namespace nanet::rich {
namespace {

using AllHits = std::array<std::uint64_t, kChannelCount>;

// Of `events` events with a ring and noise, on both disks.
AllHits hits_of(std::size_t events, double noise_hits = 1.2) {
  AllHits hits{};
  classic::Source source(41);
  for (std::size_t e = 0; e < events; ++e) {
    for (const std::uint16_t hit : source.next(1, noise_hits).hits) ++hits[hit & kChannelMask];
  }
  return hits;
}

std::vector<std::uint32_t> numbers(const ChannelSet& channels) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t c = 0; c < kChannelCount; ++c) {
    if (channels.has(c)) found.push_back(c);
  }
  return found;
}

TEST(Channels, ASetHasWhatWasAdded) {
  ChannelSet set;
  EXPECT_TRUE(set.empty());
  for (const std::uint32_t c : {0u, 31u, 32u, 2047u}) set.add(c);
  EXPECT_EQ(numbers(set), (std::vector<std::uint32_t>{0, 31, 32, 2047}));
  EXPECT_EQ(set.size(), 4u);
  EXPECT_TRUE(set.has(0xf800 | 31));  // a hit word with a time
}

TEST(Channels, MaskedHitsAreLeftOutInPlaceAndElsewhere) {
  ChannelSet mask;
  mask.add(7);
  mask.add(1500);
  std::vector<std::uint16_t> hits{7, 8, 0x8000 | 1500, 9, 0x1000 | 7, 10};
  std::array<std::uint16_t, kMaxHits> room{};
  const event::Event seen = without_masked({hits.data(), 6}, mask, room.data());
  ASSERT_EQ(seen.count, 3u);
  EXPECT_EQ(std::vector(seen.hits, seen.hits + 3), (std::vector<std::uint16_t>{8, 9, 10}));
  EXPECT_EQ(without_masked({hits.data(), 6}, mask, hits.data()).count, 3u);
  EXPECT_EQ(hits[0], 8);
  EXPECT_EQ(hits[2], 10);
}

// An event keeps its size, of which finders look at the first kMaxHits: masked hits take no room there.
TEST(Channels, MaskedHitsTakeNoRoomInAFullEvent) {
  ChannelSet mask;
  mask.add(0);
  std::vector<std::uint16_t> hits(200, 0);
  for (std::size_t k = 0; k < 140; ++k) hits[k + 60] = static_cast<std::uint16_t>(512 + k);
  std::array<std::uint16_t, kMaxHits> room{};
  const event::Event seen = without_masked({hits.data(), 200}, mask, room.data());
  EXPECT_EQ(seen.count, 140u);
  EXPECT_EQ(room[0], 512);
  EXPECT_EQ(room[kMaxHits - 1], 512 + kMaxHits - 1);
}

TEST(Channels, AHealthyDetectorHasNoneThatIsHotOrDead) {
  for (const std::size_t events : {0u, 32u, 1000u, 200'000u}) {
    const AllHits hits = hits_of(events);
    EXPECT_TRUE(hot_channels(hits).empty()) << events;
    EXPECT_TRUE(dead_channels(hits).empty()) << events;
    const AllHits dark = hits_of(events, 0);  // hardly any light at the edge, and some tenfold differences
    EXPECT_TRUE(hot_channels(dark).empty()) << events;
    EXPECT_TRUE(dead_channels(dark).empty()) << events;
  }
}

// All from one disk: the other one is not dead, since nothing is known of it.
TEST(Channels, ADiskWithoutHitsIsNotDead) {
  AllHits hits = hits_of(100'000);
  std::fill(hits.begin() + kChannelCount / 2, hits.end(), 0u);
  EXPECT_TRUE(dead_channels(hits).empty());
  EXPECT_TRUE(hot_channels(hits).empty());
}

TEST(Channels, ChannelsThatAlwaysFireAreHotAfter32Events) {
  AllHits hits{};
  for (std::size_t c = 0; c < hits.size(); c += 3) hits[c] = 1;  // of 32 events, most PMs have seen nothing
  const std::vector<std::uint32_t> hot{3, 250, 251, 700, 1999};
  for (const std::uint32_t c : hot) hits[c] = 32;
  EXPECT_EQ(numbers(hot_channels(hits)), hot);
}

// Ten times as often as it should: many events are needed to know that it is not chance.
TEST(Channels, ANoisyChannelIsHotOnceItIsCertain) {
  const AllHits few = hits_of(300);
  AllHits hits = few;
  hits[260] = 10 * few[262] + 1;
  EXPECT_TRUE(hot_channels(hits).empty());
  const AllHits many = hits_of(100'000);
  hits = many;
  hits[260] = 10 * many[262];
  EXPECT_EQ(numbers(hot_channels(hits)), std::vector<std::uint32_t>{260});
  hits[260] = 3 * many[262];  // not hot: below the factor
  EXPECT_TRUE(hot_channels(hits).empty());
}

// A supercell is read out together: its PMs are each other's neighbours, and still found, dead or hot.
TEST(Channels, AWholeSupercellIsFound) {
  AllHits hits = hits_of(100'000);
  const std::vector<std::uint32_t> cell{240, 241, 242, 243, 244, 245, 246, 247};
  for (const std::uint32_t c : cell) hits[c] = 0;
  EXPECT_EQ(numbers(dead_channels(hits)), cell);
  for (const std::uint32_t c : cell) hits[c] = 100'000;
  EXPECT_EQ(numbers(hot_channels(hits)), cell);
}

TEST(Channels, ChannelsWithoutPmAreNotJudged) {
  AllHits hits = hits_of(10'000);
  hits[500] = 10'000;
  EXPECT_TRUE(hot_channels(hits).empty());
  EXPECT_FALSE(dead_channels(hits).has(501));
}

TEST(Channels, FewHitsSayNothingOfDeadOnes) {
  AllHits hits = hits_of(2000);
  hits[240] = 0;  // some twelve were expected
  EXPECT_TRUE(dead_channels(hits).empty());
}

}  // namespace
}  // namespace nanet::rich
