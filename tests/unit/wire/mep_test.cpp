// SPDX-License-Identifier: Apache-2.0
#include "wire/mep.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "exact_copy.hpp"
#include "vector_file.hpp"

namespace nanet::wire {
namespace {

using Numbers = std::vector<std::vector<std::uint64_t>>;

std::vector<MepEvent> events_of(const MepView& view) {
  std::vector<MepEvent> events;
  for_each_event(view, [&](const MepEvent& event) { events.push_back(event); });
  return events;
}

std::vector<MepHit> hits_of(const MepEvent& event, unsigned board) {
  TdcView view;
  if (TdcView::parse(event.data, view) != ParseError::none) return {};
  std::vector<MepHit> hits(kTdcWordsMax);
  hits.resize(tdc_hits(view, event.timestamp, board, hits));
  return hits;
}

// As the vector file has them, where negative numbers are written as such.
std::vector<std::pair<std::size_t, MepHit>> hits_of(const test::Vector& vector) {
  std::vector<std::pair<std::size_t, MepHit>> hits;
  if (!vector.values.contains("hit")) return hits;
  for (const std::string& line : vector.values.at("hit")) {
    std::istringstream words(line);
    std::size_t event = 0;
    MepHit hit{};
    words >> event >> hit.channel >> hit.time_ticks >> hit.width_ticks;
    hits.emplace_back(event, hit);
  }
  return hits;
}

void expect_built(const test::Vector& vector, const MepView& view) {
  MepBuilder builder;
  builder.begin(view.header());
  const auto events = events_of(view);
  for (const MepEvent& event : events) {
    TdcView tdc;
    ASSERT_EQ(TdcView::parse(event.data, tdc), ParseError::none);
    ASSERT_TRUE(builder.add_event(event.timestamp, hits_of(event, view.header().source_sub_id), tdc.trigger_type()));
  }
  const auto last = events.back().last_of_burst ? MepBuilder::Burst::ends : MepBuilder::Burst::goes_on;
  EXPECT_TRUE(std::ranges::equal(builder.finish(last), vector.payload));
}

TEST(Mep, VectorsParseAndBuild) {
  for (const auto& vector : test::read_vectors("wire_mep.txt")) {
    SCOPED_TRACE(vector.name);
    const test::ExactCopy copy(vector.payload);
    MepView view;
    ASSERT_EQ(MepView::parse(copy.span(), view), vector.expect());
    if (vector.expect() != ParseError::none) continue;
    EXPECT_EQ(mep_bytes(copy.span()), vector.payload.size());
    EXPECT_EQ(view.header().first_event_number, vector.number("first_event_number"));
    EXPECT_EQ(view.header().source_id, vector.number("source_id"));
    EXPECT_EQ(view.header().source_sub_id, vector.number("source_sub_id"));
    EXPECT_EQ(view.header().event_count, vector.number("event_count"));
    Numbers events;
    std::vector<std::pair<std::size_t, MepHit>> hits;
    for (const MepEvent& event : events_of(view)) {
      const test::ExactCopy data(event.data);
      TdcView tdc;
      const ParseError error = TdcView::parse(data.span(), tdc);
      if (events.empty()) {
        constexpr const char* kNames[] = {"none", "bad_length", "bad_format"};
        EXPECT_EQ(kNames[static_cast<std::size_t>(error)], vector.values.at("tdc").at(0));
      }
      for (const MepHit& hit : hits_of(event, view.header().source_sub_id)) hits.emplace_back(events.size(), hit);
      events.push_back({event.event_number, event.timestamp, event.last_of_burst ? 1u : 0u, event.data.size()});
    }
    EXPECT_EQ(events, vector.lists("event"));
    EXPECT_EQ(hits, hits_of(vector));
    if (vector.number("canonical") == 1) expect_built(vector, view);
  }
}

TEST(Mep, EveryTruncationIsRefused) {
  for (const auto& vector : test::read_vectors("wire_mep.txt")) {
    if (vector.expect() != ParseError::none) continue;
    for (std::size_t length = 0; length < vector.payload.size(); ++length) {
      const test::ExactCopy copy(std::span(vector.payload).first(length));
      MepView view;
      ASSERT_EQ(MepView::parse(copy.span(), view), ParseError::bad_length) << vector.name << " cut to " << length;
    }
  }
}

// Cut data of a board reads nothing outside and never more hits.
TEST(Mep, TruncatedTdcDataReadsNothingOutside) {
  for (const auto& vector : test::read_vectors("wire_mep.txt")) {
    MepView view;
    if (MepView::parse(vector.payload, view) != ParseError::none) continue;
    for (const MepEvent& event : events_of(view)) {
      for (std::size_t length = 0; length < event.data.size(); ++length) {
        const test::ExactCopy copy(event.data.first(length));
        MepEvent cut = event;
        cut.data = copy.span();
        EXPECT_LE(hits_of(cut, 0).size(), hits_of(event, 0).size());
      }
    }
  }
}

TEST(Mep, RandomEventsComeBack) {
  std::mt19937_64 random(4);
  MepBuilder builder;
  for (int round = 0; round < 200; ++round) {
    builder.begin({.first_event_number = static_cast<std::uint32_t>(random()), .source_id = 0x1C, .source_sub_id = 2});
    std::vector<std::vector<MepHit>> expected;
    for (std::size_t e = random() % 20; e > 0; --e) {
      std::vector<MepHit> hits;
      std::vector<std::int32_t> busy_until(kTdcChannels, -kTdcTimeRange);
      for (std::size_t h = random() % 40; h > 0; --h) {
        // Pulses of one channel do not overlap.
        const auto channel = static_cast<std::uint16_t>(random() % 512);
        const std::int32_t time = std::max(busy_until[channel] + 1, static_cast<std::int32_t>(random() % 4000) - 2000);
        const auto width = static_cast<std::int32_t>(random() % 3 == 0 ? 0 : random() % 600);
        busy_until[channel] = time + width;
        hits.push_back({static_cast<std::uint16_t>(1024 + channel), time, width});
      }
      ASSERT_TRUE(builder.add_event(static_cast<std::uint32_t>(random()), hits));
      expected.push_back(hits);
    }
    const test::ExactCopy copy(builder.finish());
    MepView view;
    ASSERT_EQ(MepView::parse(copy.span(), view), ParseError::none);
    const auto events = events_of(view);
    ASSERT_EQ(events.size(), expected.size());
    const auto order = [](const MepHit& hit) { return std::pair(hit.channel, hit.time_ticks); };
    for (std::size_t e = 0; e < events.size(); ++e) {
      auto found = hits_of(events[e], 2);
      std::ranges::sort(found, {}, order);
      std::ranges::sort(expected[e], {}, order);
      EXPECT_EQ(found, expected[e]);
    }
  }
}

TEST(Mep, CountsHitsForWhichThereIsNoRoom) {
  MepBuilder builder;
  builder.begin({});
  std::vector<MepHit> hits;
  for (std::uint16_t channel = 0; channel < 10; ++channel) hits.push_back({channel, channel, 20});
  ASSERT_TRUE(builder.add_event(100, hits));
  MepView view;
  ASSERT_EQ(MepView::parse(builder.finish(), view), ParseError::none);
  TdcView tdc;
  ASSERT_EQ(TdcView::parse(events_of(view).front().data, tdc), ParseError::none);
  std::vector<MepHit> some(4);
  EXPECT_EQ(tdc_hits(tdc, 100, 0, some), 10u);
  EXPECT_TRUE(std::ranges::equal(some, std::span(hits).first(4)));
}

TEST(Mep, ABuilderTakesWhatFitsAndNoMore) {
  MepBuilder builder;
  builder.begin({});
  const std::vector<std::byte> data(65'000);
  EXPECT_TRUE(builder.add_event_data(1, data));
  EXPECT_FALSE(builder.add_event_data(1, std::span(data).first(520)));
  EXPECT_TRUE(builder.add_event_data(1, std::span(data).first(511)));
  EXPECT_EQ(builder.finish().size(), kMepBytesMax);
  builder.begin({});
  for (std::size_t e = 0; e < kMepEventsMax; ++e) EXPECT_TRUE(builder.add_event(1, {}));
  EXPECT_FALSE(builder.add_event(1, {}));
  builder.begin({});
  std::vector<MepHit> apart;  // a frame each
  for (std::int32_t frame = 0; frame < 256; ++frame) apart.push_back({0, 256 * frame, 0});
  EXPECT_FALSE(builder.add_event(1, apart));
  EXPECT_TRUE(builder.add_event(1, std::span(apart).first(255)));
}

}  // namespace
}  // namespace nanet::wire
