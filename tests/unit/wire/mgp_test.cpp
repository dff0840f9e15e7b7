// SPDX-License-Identifier: Apache-2.0
#include "nanet/wire/mgp.hpp"

#include <gtest/gtest.h>

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

std::vector<Event> events_of(const MgpView& view) {
  std::vector<Event> events;
  std::array<std::uint16_t, kMgpScratchHits> scratch;
  for_each_event(view, scratch.data(), [&](MgpEvent event, const std::uint16_t* hits) {
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
  MgpView view;
  return MgpView::parse(payload, view);
}

void expect_header(const test::Vector& vector, const MgpHeader& header) {
  const std::uint64_t format = vector.number("format");
  EXPECT_EQ(header.source_id, vector.number("source_id"));
  EXPECT_EQ(header.source_sub_id, vector.number("source_sub_id"));
  EXPECT_EQ(static_cast<std::uint64_t>(header.layout), format & 0xF);
  EXPECT_EQ(header.run_start, (format >> 4 & 1) != 0);
  EXPECT_EQ(header.run_end, (format >> 5 & 1) != 0);
  EXPECT_EQ(header.event_count, vector.number("event_count"));
  EXPECT_EQ(header.sequence, vector.number("sequence"));
  EXPECT_EQ(header.send_time_ns, vector.number("send_time_ns"));
}

class MgpVectors : public ::testing::TestWithParam<const char*> {};

TEST_P(MgpVectors, ParseAndBuild) {
  for (const auto& vector : test::read_vectors(GetParam())) {
    SCOPED_TRACE(vector.name);
    const test::ExactCopy copy(vector.payload);
    MgpView view;
    ASSERT_EQ(MgpView::parse(copy.span(), view), vector.expect());
    if (vector.expect() != ParseError::none) continue;
    expect_header(vector, view.header());
    EXPECT_EQ(load_le<std::uint32_t>(copy.span().data() + 12), vector.number("checksum"));
    EXPECT_EQ(events_of(view), events_of(vector));

    std::vector<std::byte> room(1472, std::byte{0xA5});  // what lies in the room must not show
    std::span<std::byte> built;
    if (view.is_marker()) {
      EXPECT_EQ(view.next_event_number(), vector.number("next_event_number"));
      built = make_marker(room, view.header(), view.next_event_number());
    } else {
      const auto events = events_of(vector);
      EXPECT_EQ(view.first_event_number(), events.at(0).event_number);
      MgpBuilder builder(room);
      builder.begin(view.header().layout);
      for (const auto& event : events) {
        ASSERT_TRUE(builder.add_event({event.timestamp, event.fine_time, 0, event.event_number}, event.hits));
      }
      built = builder.finish(view.header(), vector.payload.size());
    }
    EXPECT_TRUE(std::ranges::equal(built, vector.payload));
  }
}

// The checksum sees every single bit, its own four bytes included.
TEST_P(MgpVectors, EveryTurnedBitIsRefused) {
  for (const auto& vector : test::read_vectors(GetParam())) {
    if (vector.expect() != ParseError::none) continue;
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

TEST_P(MgpVectors, EveryTruncationIsRefused) {
  for (const auto& vector : test::read_vectors(GetParam())) {
    if (vector.expect() != ParseError::none) continue;
    for (std::size_t length = 0; length < vector.payload.size(); ++length) {
      const test::ExactCopy copy(std::span(vector.payload).first(length));
      ASSERT_NE(parse_error(copy.span()), ParseError::none) << vector.name << " cut to " << length;
    }
  }
}

// A cut packet with a checksum that fits: padded and markers have one length, packed may lose only its padding.
TEST_P(MgpVectors, EverySealedTruncationReadsNothingOutside) {
  for (const auto& vector : test::read_vectors(GetParam())) {
    if (vector.expect() != ParseError::none) continue;
    for (std::size_t length = kMgpHeaderBytes; length < vector.payload.size(); length += 2) {
      test::ExactCopy copy(std::span(vector.payload).first(length));
      seal(copy.span());
      MgpView view;
      if (MgpView::parse(copy.span(), view) != ParseError::none) continue;
      ASSERT_EQ(view.header().layout, MgpLayout::packed) << vector.name;
      ASSERT_EQ(events_of(view), events_of(vector)) << vector.name << " cut to " << length;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, MgpVectors, ::testing::Values("wire_mgp_padded.txt", "wire_mgp_packed.txt", "wire_mgp_marker.txt"),
                         [](const auto& file) { return std::string(file.param).substr(5, 10); });

std::vector<std::byte> literal(std::initializer_list<int> values, std::size_t size) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  bytes.resize(size);
  return bytes;
}

TEST(Mgp, PaddedLiteralBytes) {
  std::vector<std::byte> room(1168);
  MgpBuilder builder(room);
  const std::array<std::uint16_t, 2> hits = {0x0005, make_hit(0x1E8, -1)};
  ASSERT_TRUE(builder.add_event({0x01020304, 0x80, 0, 7}, hits));
  EXPECT_EQ(builder.last_event_offset(), 16u);
  const auto payload = builder.finish({0x1C, 1, MgpLayout::padded, false, false, 0, 0x11223344, 0x55667788});
  // The checksum is that of the serial definition over these bytes without 12..15.
  auto expected = literal({0x1C, 0x01, 0x01, 0x01, 0x44, 0x33, 0x22, 0x11, 0x88, 0x77, 0x66, 0x55, 0,    0,
                           0,    0,    0x04, 0x03, 0x02, 0x01, 0x80, 0x02, 0x07, 0x00, 0x05, 0x00, 0xE8, 0xF9},
                          1168);
  unsigned first = 0;
  unsigned second = 0;
  for (std::size_t i = 0; i < expected.size(); i += 2) {
    if (i == 12 || i == 14) continue;
    first = (first + static_cast<unsigned>(expected[i]) + 256 * static_cast<unsigned>(expected[i + 1])) % 65535;
    second = (second + first) % 65535;
  }
  store_le(expected.data() + 12, second << 16 | first);
  EXPECT_TRUE(std::ranges::equal(payload, expected));
}

TEST(Mgp, PackedLiteralBytes) {
  std::vector<std::byte> room(32, std::byte{0xFF});
  MgpBuilder builder(room);
  builder.begin(MgpLayout::packed);
  const std::array<std::uint16_t, 4> hits = {0, 1, 511, 256};
  ASSERT_TRUE(builder.add_event({0x0A0B0C0D, 0x40, 0, 300}, hits));
  const auto payload = builder.finish({0x1C, 2, MgpLayout::packed, false, false, 0, 9, 1000});
  ASSERT_EQ(payload.size(), 30u);
  // 0, 1, 511, 256 LSB first: 000000000 100000000 111111111 000000001 0000
  const auto expected = literal({0x1C, 0x02, 0x02, 0x01, 0x09, 0, 0, 0, 0xE8, 0x03, 0, 0}, 12);
  EXPECT_TRUE(std::ranges::equal(payload.first(12), expected));
  const auto body = literal({0x0D, 0x0C, 0x0B, 0x0A, 0x40, 0x04, 0x2C, 0x01, 0x00, 0x02, 0xFC, 0x07, 0x08, 0x00}, 14);
  EXPECT_TRUE(std::ranges::equal(payload.subspan(16), body));
}

TEST(Mgp, MarkerLiteralBytes) {
  std::array<std::byte, 24> room;
  MgpHeader header;
  header.source_id = 0x1C;
  header.source_sub_id = 3;
  header.run_end = true;
  header.sequence = 625000;
  header.send_time_ns = 0x9ABCDEF0;
  header.event_count = 9;
  const auto payload = make_marker(room, header, 10000000);
  const auto expected = literal({0x1C, 3, 0x21, 0, 0x68, 0x89, 0x09, 0, 0xF0, 0xDE, 0xBC, 0x9A}, 12);
  EXPECT_TRUE(std::ranges::equal(payload.first(12), expected));
  EXPECT_TRUE(std::ranges::equal(payload.subspan(16), literal({0x80, 0x96, 0x98, 0, 0, 0, 0, 0}, 8)));
  header.run_start = true;
  EXPECT_THROW(make_marker(room, header, 0), SetupError);
  header.run_start = header.run_end = false;
  EXPECT_THROW(make_marker(room, header, 0), SetupError);
}

TEST(Mgp, Hits) {
  EXPECT_EQ(hit_channel(0xF9E8), 0x1E8u);
  EXPECT_EQ(hit_time(0xF9E8), -1);
  EXPECT_EQ(hit_time(0x7FFF), 15);
  EXPECT_EQ(hit_time(0x8000), -16);
  for (unsigned hit = 0; hit < 65536; ++hit) {
    const auto word = static_cast<std::uint16_t>(hit);
    ASSERT_EQ(make_hit(hit_channel(word), hit_time(word)), word);
  }
}

TEST(Mgp, OddAddressIsRefused) {
  const auto vectors = test::read_vectors("wire_mgp_padded.txt");
  std::vector<std::byte> room(1170);
  std::ranges::copy(vectors.at(0).payload, room.begin() + 1);
  EXPECT_EQ(parse_error(std::span(room).subspan(1, 1168)), ParseError::bad_length);
}

TEST(Mgp, ARefusedPacketLeavesTheViewAlone) {
  const auto vectors = test::read_vectors("wire_mgp_padded.txt");
  MgpView view;
  ASSERT_EQ(MgpView::parse(vectors.at(0).payload, view), ParseError::none);
  auto broken = vectors.at(0).payload;
  broken[100] ^= std::byte{1};
  EXPECT_EQ(MgpView::parse(broken, view), ParseError::bad_checksum);
  EXPECT_EQ(view.payload().data(), vectors.at(0).payload.data());
}

// A count in the header must not lead anywhere outside, whatever the checksum says.
TEST(Mgp, EveryHeaderByteWithAGoodChecksum) {
  for (const char* file : {"wire_mgp_padded.txt", "wire_mgp_packed.txt", "wire_mgp_marker.txt"}) {
    for (const auto& vector : test::read_vectors(file)) {
      if (vector.expect() != ParseError::none) continue;
      for (std::size_t at = 0; at < std::min<std::size_t>(24, vector.payload.size()); ++at) {
        for (int value = 0; value < 256; ++value) {
          test::ExactCopy copy(vector.payload);
          copy.span()[at] = static_cast<std::byte>(value);
          seal(copy.span());
          MgpView view;
          if (MgpView::parse(copy.span(), view) != ParseError::none) continue;
          const auto events = events_of(view);
          ASSERT_EQ(events.size(), view.header().event_count);
        }
      }
    }
  }
}

class RoundTrip : public ::testing::TestWithParam<MgpLayout> {};

TEST_P(RoundTrip, RandomContent) {
  std::mt19937 generator(42);
  const auto random = [&](unsigned limit) { return static_cast<unsigned>(generator() % limit); };
  const bool padded = GetParam() == MgpLayout::padded;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> room(padded ? 1168 : 24 + random(1500), static_cast<std::byte>(generator()));
    MgpHeader header{static_cast<std::uint8_t>(generator()),
                     static_cast<std::uint8_t>(random(4)),
                     GetParam(),
                     random(2) == 1,
                     random(2) == 1,
                     0,
                     static_cast<std::uint32_t>(generator()),
                     static_cast<std::uint32_t>(generator())};
    MgpBuilder builder(room);
    builder.begin(GetParam());
    std::vector<Event> events;
    for (;;) {
      Event event{static_cast<std::uint32_t>(generator()),
                  static_cast<std::uint8_t>(generator()),
                  static_cast<std::uint16_t>(generator()),
                  {}};
      event.hits.resize(random(padded ? 33 : 256));
      for (auto& hit : event.hits)
        hit = static_cast<std::uint16_t>(padded ? random(65536) : header.source_sub_id * 512 + random(512));
      if (!builder.add_event({event.timestamp, event.fine_time, 77, event.event_number}, event.hits)) break;
      events.push_back(event);
    }
    const auto payload = builder.finish(header);
    ASSERT_EQ(payload.empty(), events.empty());
    if (events.empty()) continue;
    const test::ExactCopy copy(payload);
    MgpView view;
    ASSERT_EQ(MgpView::parse(copy.span(), view), ParseError::none) << payload.size();
    ASSERT_EQ(events_of(view), events);
    ASSERT_EQ(view.header().sequence, header.sequence);
    ASSERT_EQ(view.header().run_start, header.run_start);
    ASSERT_EQ(view.header().event_count, events.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, RoundTrip, ::testing::Values(MgpLayout::padded, MgpLayout::packed));

TEST(Mgp, PreparedPacketIsChangedAndSealedAgain) {
  std::vector<std::byte> room(1168);
  MgpBuilder builder(room);
  builder.begin(MgpLayout::packed);
  const std::vector<std::uint16_t> hits = {3, 4, 5};
  ASSERT_TRUE(builder.add_event({1, 1, 0, 1}, hits));
  ASSERT_TRUE(builder.add_event({2, 2, 0, 2}, hits));
  const std::size_t offset = builder.last_event_offset();
  const auto payload = builder.finish({0x1C, 0, MgpLayout::packed, false, false, 0, 1, 1}, 1168);
  ASSERT_EQ(payload.size(), 1168u);
  set_event_time(payload, offset, 0xDEADBEEF, 0x55, 60000);
  set_header(payload, 123, 456);
  EXPECT_EQ(parse_error(payload), ParseError::bad_checksum);
  seal(payload);
  MgpView view;
  ASSERT_EQ(MgpView::parse(payload, view), ParseError::none);
  EXPECT_EQ(view.header().sequence, 123u);
  EXPECT_EQ(view.header().send_time_ns, 456u);
  EXPECT_EQ(events_of(view), (std::vector<Event>{{1, 1, 1, hits}, {0xDEADBEEF, 0x55, 60000, hits}}));
}

TEST(Mgp, BuilderLimits) {
  std::vector<std::byte> room(1472);
  MgpBuilder builder(room);
  std::vector<std::uint16_t> hits(33, 1);
  EXPECT_FALSE(builder.add_event({}, hits));
  EXPECT_TRUE(builder.finish({}).empty());
  hits.resize(32);
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(builder.add_event({}, hits));
  EXPECT_FALSE(builder.add_event({}, hits));
  EXPECT_EQ(builder.event_count(), 16u);
  EXPECT_EQ(builder.finish({}).size(), 1168u);
  builder.begin(MgpLayout::packed);
  hits.assign(256, 1);
  EXPECT_FALSE(builder.add_event({}, hits));
  hits.clear();
  for (int i = 0; i < 182; ++i) EXPECT_TRUE(builder.add_event({}, hits));
  EXPECT_FALSE(builder.add_event({}, hits));
  MgpBuilder small{std::span(room).first(1167)};
  EXPECT_THROW(small.begin(MgpLayout::padded), SetupError);
  EXPECT_THROW(MgpBuilder{std::span(room).first(23)}, SetupError);
}

}  // namespace
}  // namespace nanet::wire
