// SPDX-License-Identifier: Apache-2.0
#include "nanet/wire/m2egp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "exact_copy.hpp"
#include "nanet/setup_error.hpp"
#include "vector_file.hpp"

namespace nanet::wire {
namespace {

struct Event {
  std::uint32_t timestamp;
  std::uint8_t fine_time;
  std::uint16_t event_number;
  std::vector<std::uint16_t> hits;
  bool operator==(const Event&) const = default;
};

std::vector<Event> events_of(const M2egpView& view) {
  std::vector<Event> events;
  for_each_event(view, [&](MgpEvent event, const std::uint16_t* hits) {
    events.push_back({event.timestamp, event.fine_time, event.event_number, {hits, hits + event.hit_count}});
  });
  return events;
}

std::vector<Event> events_of(const test::Vector& vector) {
  std::vector<Event> events;
  for (const auto& line : vector.lists("event")) {
    events.push_back(
        {static_cast<std::uint32_t>(line.at(0)), static_cast<std::uint8_t>(line.at(1)), static_cast<std::uint16_t>(line.at(2)), {}});
    for (std::size_t i = 3; i < line.size(); ++i) events.back().hits.push_back(static_cast<std::uint16_t>(line[i]));
  }
  return events;
}

ParseError parse_error(std::span<const std::byte> payload) {
  M2egpView view;
  return M2egpView::parse(payload, view);
}

std::string error_name(ParseError error) {
  constexpr const char* kNames[] = {"none", "bad_length", "bad_format", "bad_checksum"};
  return kNames[static_cast<std::size_t>(error)];
}

std::vector<test::Vector> good_vectors() {
  auto vectors = test::read_vectors("wire_m2egp.txt");
  std::erase_if(vectors, [](const test::Vector& vector) { return vector.expect() != ParseError::none; });
  return vectors;
}

void expect_header(const test::Vector& vector, const M2egpHeader& header) {
  const std::uint64_t format = vector.number("format");
  EXPECT_EQ(format & 0xF, kM2egpLayout);
  EXPECT_EQ(header.source_id, vector.number("source_id"));
  EXPECT_EQ(header.source_sub_id, vector.number("source_sub_id"));
  EXPECT_EQ(header.run_start, (format >> 4 & 1) != 0);
  EXPECT_EQ(header.run_end, (format >> 5 & 1) != 0);
  EXPECT_EQ(header.event_count, vector.number("event_count"));
  EXPECT_EQ(header.sequence, vector.number("sequence"));
  EXPECT_EQ(header.send_time_ns, vector.number("send_time_ns"));
}

TEST(M2egp, VectorsParseAndBuild) {
  for (const auto& vector : test::read_vectors("wire_m2egp.txt")) {
    SCOPED_TRACE(vector.name);
    const test::ExactCopy copy(vector.payload);
    M2egpView view;
    ASSERT_EQ(M2egpView::parse(copy.span(), view), vector.expect());
    if (vector.expect() != ParseError::none) continue;
    expect_header(vector, view.header());
    EXPECT_TRUE(is_m2egp(copy.span()));
    EXPECT_EQ(load_le<std::uint32_t>(copy.span().data() + 12), vector.number("checksum"));
    EXPECT_EQ(events_of(view), events_of(vector));
    EXPECT_EQ(events_of(M2egpView::from_checked(copy.span())), events_of(vector));

    std::vector<std::byte> room(kM2egpBytesMax, std::byte{0xA5});  // what lies in the room must not show
    std::span<std::byte> built;
    if (view.is_marker()) {
      EXPECT_EQ(view.next_event_number(), vector.number("next_event_number"));
      built = make_m2egp_marker(room, view.header(), view.next_event_number());
    } else {
      const auto events = events_of(vector);
      EXPECT_EQ(view.first_event_number(), events.at(0).event_number);
      M2egpBuilder builder(room);
      for (const auto& event : events) {
        ASSERT_TRUE(builder.add_event({event.timestamp, event.fine_time, 0, event.event_number}, event.hits));
      }
      built = builder.finish(view.header(), vector.payload.size());
    }
    EXPECT_TRUE(std::ranges::equal(built, vector.payload));
  }
}

// The two formats share the header and must never be taken for one another.
TEST(M2egp, AnMgpReaderSaysWhatTheVectorSays) {
  for (const auto& vector : test::read_vectors("wire_m2egp.txt")) {
    const test::ExactCopy copy(vector.payload);
    MgpView view;
    const ParseError error = MgpView::parse(copy.span(), view);
    EXPECT_EQ(error_name(error), vector.values.at("mgp").at(0)) << vector.name;
    EXPECT_FALSE(error == ParseError::none && vector.expect() == ParseError::none) << vector.name;
    EXPECT_FALSE(error == ParseError::none && is_m2egp(copy.span())) << vector.name;
  }
}

TEST(M2egp, EveryTurnedBitIsRefused) {
  for (const auto& vector : good_vectors()) {
    test::ExactCopy copy(vector.payload);
    for (std::size_t bit = 0; bit < 8 * vector.payload.size(); ++bit) {
      const auto mask = static_cast<std::byte>(1u << bit % 8);
      copy.span()[bit / 8] ^= mask;
      ASSERT_NE(parse_error(copy.span()), ParseError::none) << vector.name << " bit " << bit;
      copy.span()[bit / 8] ^= mask;
    }
    EXPECT_EQ(parse_error(copy.span()), ParseError::none);
  }
}

// A cut packet with a checksum that fits may lose only its padding.
TEST(M2egp, EveryTruncationIsRefused) {
  for (const auto& vector : good_vectors()) {
    for (std::size_t length = 0; length < vector.payload.size(); ++length) {
      test::ExactCopy copy(std::span(vector.payload).first(length));
      ASSERT_NE(parse_error(copy.span()), ParseError::none) << vector.name << " cut to " << length;
      if (length < kMgpHeaderBytes || length % 2 != 0) continue;
      seal(copy.span());
      M2egpView view;
      if (M2egpView::parse(copy.span(), view) != ParseError::none) continue;
      ASSERT_EQ(events_of(view), events_of(vector)) << vector.name << " cut to " << length;
    }
  }
}

TEST(M2egp, AnOddAddressIsRefused) {
  const auto vector = good_vectors().front();
  std::vector<std::byte> room(vector.payload.size() + 2);
  const std::size_t odd = 1 - reinterpret_cast<std::uintptr_t>(room.data()) % 2;
  std::ranges::copy(vector.payload, room.begin() + static_cast<std::ptrdiff_t>(odd));
  EXPECT_EQ(parse_error(std::span(room).subspan(odd, vector.payload.size())), ParseError::bad_length);
}

TEST(M2egp, ABuilderTakesWhatFitsAndNoMore) {
  const std::vector<std::uint16_t> hits(kM2egpHitsMax + 1, 0x7FF);
  std::vector<std::byte> room(1472);
  M2egpBuilder builder(room);
  EXPECT_TRUE(builder.finish({}).empty());
  EXPECT_FALSE(builder.add_event({}, hits));
  std::size_t added = 0;
  while (builder.add_event({}, std::span(hits).first(20))) ++added;
  EXPECT_EQ(added, (1472u - 16u) / 48u);
  EXPECT_EQ(builder.event_count(), added);
  EXPECT_EQ(builder.used_bytes(), 16 + 48 * added);
  EXPECT_EQ(builder.finish({}).size(), builder.used_bytes());
  EXPECT_EQ(builder.finish({}, 1472).size(), 1472u);
  EXPECT_EQ(builder.finish({}, 5000).size(), 1472u) << "as far as the room goes";
  EXPECT_EQ(parse_error(builder.finish({}, 1472)), ParseError::none);
  builder.begin();
  EXPECT_TRUE(builder.finish({}).empty());

  std::vector<std::byte> large(10'000);
  M2egpBuilder jumbo{large};
  added = 0;
  while (jumbo.add_event({}, {})) ++added;
  EXPECT_EQ(added, kM2egpEventsMax);
  EXPECT_EQ(jumbo.finish({}, 10'000).size(), kM2egpBytesMax);
}

TEST(M2egp, RandomPacketsComeBack) {
  std::mt19937_64 random(11);
  std::vector<std::byte> room(kM2egpBytesMax);
  for (int round = 0; round < 300; ++round) {
    const std::size_t room_bytes = 24 + random() % (kM2egpBytesMax - 23);
    const std::span<std::byte> part(room.data(), room_bytes);
    M2egpBuilder builder(part);
    std::vector<Event> events;
    for (;;) {
      Event event{
          static_cast<std::uint32_t>(random()), static_cast<std::uint8_t>(random()), static_cast<std::uint16_t>(random()), {}};
      for (std::size_t h = random() % (kM2egpHitsMax + 1); h > 0; --h) event.hits.push_back(static_cast<std::uint16_t>(random()));
      if (!builder.add_event({event.timestamp, event.fine_time, 0, event.event_number}, event.hits)) break;
      events.push_back(event);
    }
    const auto payload = builder.finish({.source_id = 1, .sequence = static_cast<std::uint32_t>(round)});
    if (events.empty()) {
      EXPECT_TRUE(payload.empty());
      continue;
    }
    const test::ExactCopy copy(payload);
    M2egpView view;
    ASSERT_EQ(M2egpView::parse(copy.span(), view), ParseError::none);
    EXPECT_EQ(events_of(view), events);
  }
}

TEST(M2egp, SetUpMistakesThrow) {
  std::vector<std::byte> room(24);
  const auto small = std::span(room).first(23);
  EXPECT_THROW(M2egpBuilder{small}, SetupError);
  EXPECT_THROW(make_m2egp_marker(small, {.run_start = true}, 0), SetupError);
  EXPECT_THROW(make_m2egp_marker(room, {}, 0), SetupError);
  EXPECT_THROW(make_m2egp_marker(room, {.run_start = true, .run_end = true}, 0), SetupError);
}

}  // namespace
}  // namespace nanet::wire
