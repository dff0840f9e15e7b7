// SPDX-License-Identifier: Apache-2.0
#include "nanet/wire/mtp.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "exact_copy.hpp"
#include "nanet/setup_error.hpp"
#include "vector_file.hpp"

namespace nanet::wire {
namespace {

std::vector<Primitive> primitives_of(const MtpView& view) {
  std::vector<Primitive> primitives;
  for_each_primitive(view, [&](Primitive primitive) { primitives.push_back(primitive); });
  return primitives;
}

std::vector<Primitive> primitives_of(const test::Vector& vector) {
  std::vector<Primitive> primitives;
  for (const auto& line : vector.lists("primitive")) {
    primitives.push_back(
        {static_cast<std::uint32_t>(line.at(0)), static_cast<std::uint8_t>(line.at(1)), static_cast<std::uint16_t>(line.at(2))});
  }
  return primitives;
}

ParseError parse_error(std::span<const std::byte> payload) {
  MtpView view;
  return MtpView::parse(payload, view);
}

TEST(Mtp, Vectors) {
  for (const auto& vector : test::read_vectors("wire_mtp.txt")) {
    SCOPED_TRACE(vector.name);
    const test::ExactCopy copy(vector.payload);
    MtpView view;
    ASSERT_EQ(MtpView::parse(copy.span(), view), vector.expect());
    if (vector.expect() != ParseError::none) continue;
    EXPECT_EQ(view.source_id(), vector.number("source_id"));
    EXPECT_EQ(view.source_sub_id(), vector.number("source_sub_id"));
    EXPECT_EQ(view.first_timestamp(), vector.number("first_timestamp"));
    EXPECT_EQ(view.primitive_count(), vector.number("primitive_count"));
    EXPECT_EQ(primitives_of(view), primitives_of(vector));
    if (vector.name == "timestamp_word_last") continue;  // a writer never makes one

    std::vector<std::byte> room(2000, std::byte{0xA5});
    MtpWriter writer(room);
    writer.begin(view.source_id(), view.source_sub_id(), view.first_timestamp());
    for (const auto& primitive : primitives_of(vector)) ASSERT_TRUE(writer.add(primitive));
    EXPECT_TRUE(std::ranges::equal(writer.finish(), vector.payload));
  }
}

TEST(Mtp, LiteralBytes) {
  std::array<std::byte, 64> room;
  MtpWriter writer(room);
  writer.begin(kSourceRich, 5, 0x01020304);
  ASSERT_TRUE(writer.add({0x01020304, 0x99, 0x4FD4}));
  ASSERT_TRUE(writer.add({0x01020405, 0x9A, 0x4001}));
  const auto payload = writer.finish();
  const std::array<int, 20> expected = {0x03, 0x02, 0x01, 0x1C, 20,   0,    2,    5,    0x99, 0x04,
                                        0xD4, 0x4F, 0x04, 0x02, 0x01, 0x00, 0x9A, 0x05, 0x01, 0x40};
  ASSERT_EQ(payload.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(static_cast<int>(payload[i]), expected[i]) << i;
}

TEST(Mtp, EveryTruncationAndExtensionIsRefused) {
  for (const auto& vector : test::read_vectors("wire_mtp.txt")) {
    if (vector.expect() != ParseError::none) continue;
    for (std::size_t length = 0; length < vector.payload.size(); ++length) {
      const test::ExactCopy copy(std::span(vector.payload).first(length));
      ASSERT_NE(parse_error(copy.span()), ParseError::none) << vector.name << " cut to " << length;
    }
    auto longer = vector.payload;
    longer.resize(longer.size() + 4);
    EXPECT_EQ(parse_error(longer), ParseError::bad_length) << vector.name;
  }
}

// MTP has no checksum. A turned bit of the length is refused, one of the count as well; any other may be accepted, but the
// count of primitives stays true.
TEST(Mtp, EveryTurnedBit) {
  for (const auto& vector : test::read_vectors("wire_mtp.txt")) {
    if (vector.expect() != ParseError::none) continue;
    test::ExactCopy copy(vector.payload);
    for (std::size_t bit = 0; bit < 8 * vector.payload.size(); ++bit) {
      const auto mask = static_cast<std::byte>(1u << bit % 8);
      copy.span()[bit / 8] ^= mask;
      MtpView view;
      const ParseError error = MtpView::parse(copy.span(), view);
      if (bit / 8 == 4 || bit / 8 == 5) {
        ASSERT_EQ(error, ParseError::bad_length);
      } else if (bit / 8 == 6) {
        ASSERT_EQ(error, ParseError::bad_format);
      }
      if (error == ParseError::none) {
        ASSERT_EQ(primitives_of(view).size(), vector.number("primitive_count"));
      }
      copy.span()[bit / 8] ^= mask;
    }
  }
}

TEST(Mtp, RandomRoundTrip) {
  std::mt19937 generator(7);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> room(8 + generator() % 1600);
    MtpWriter writer(room);
    std::uint32_t timestamp = static_cast<std::uint32_t>(generator());
    const auto source = static_cast<std::uint8_t>(generator());
    const auto sub_id = static_cast<std::uint8_t>(generator());
    writer.begin(source, sub_id, timestamp);
    const std::uint32_t step = 1u << generator() % 10;
    std::vector<Primitive> primitives;
    for (;;) {
      const Primitive primitive{timestamp, static_cast<std::uint8_t>(generator()),
                                static_cast<std::uint16_t>(256 + generator() % 65280)};
      if (!writer.add(primitive)) break;
      primitives.push_back(primitive);
      timestamp += static_cast<std::uint32_t>(generator()) % step;
    }
    const auto payload = writer.finish();
    ASSERT_LE(payload.size(), std::min<std::size_t>(room.size(), 1472));
    ASSERT_TRUE(primitives.size() == 255 || payload.size() + 8 > std::min<std::size_t>(room.size(), 1472));
    const test::ExactCopy copy(payload);
    MtpView view;
    ASSERT_EQ(MtpView::parse(copy.span(), view), ParseError::none);
    ASSERT_EQ(primitives_of(view), primitives);
    ASSERT_EQ(view.source_id(), source);
    ASSERT_EQ(view.source_sub_id(), sub_id);
  }
}

// As a kernel writes a packet: each primitive finds its place by counting the timestamp words before it, and all are written in
// any order.
TEST(Mtp, WordsInAnyOrderMakeTheWritersPacket) {
  std::mt19937 generator(8);
  for (int round = 0; round < 500; ++round) {
    std::vector<Primitive> primitives(generator() % 200);
    auto timestamp = static_cast<std::uint32_t>(generator());
    for (auto& primitive : primitives) {
      primitive = {timestamp, static_cast<std::uint8_t>(generator()), static_cast<std::uint16_t>(256 + generator() % 65280)};
      timestamp += static_cast<std::uint32_t>(generator()) % 40;
    }
    const std::uint32_t first_timestamp = primitives.empty() ? timestamp : primitives.front().timestamp;
    std::vector<std::byte> room(kMtpBytesMax);
    MtpWriter writer(room);
    writer.begin(kSourceRich, 3, first_timestamp);
    ASSERT_EQ(writer.add(primitives), primitives.size());

    std::vector<std::uint32_t> places(primitives.size());
    auto end = static_cast<std::uint32_t>(kMtpHeaderBytes);
    for (std::size_t i = 0; i < primitives.size(); ++i) {
      if (i > 0 && mtp_needs_timestamp_word(primitives[i].timestamp, primitives[i - 1].timestamp)) end += 4;
      places[i] = end;
      end += 4;
    }
    std::vector<std::byte> packet(end);
    for (std::size_t i = primitives.size(); i-- > 0;) {
      if (i > 0 && mtp_needs_timestamp_word(primitives[i].timestamp, primitives[i - 1].timestamp)) {
        store_le(packet.data() + places[i] - 4, mtp_timestamp_word(primitives[i].timestamp));
      }
      store_le(packet.data() + places[i], mtp_primitive_word(primitives[i]));
    }
    store_le(packet.data(), mtp_header_time_word(kSourceRich, first_timestamp));
    store_le(packet.data() + 4, mtp_header_length_word(end, static_cast<std::uint32_t>(primitives.size()), 3));
    ASSERT_TRUE(std::ranges::equal(writer.finish(), packet));
  }
}

TEST(Mtp, WriterLimits) {
  std::vector<std::byte> room(1600);
  MtpWriter writer(room);
  writer.begin(kSourceRich, 0, 0);
  EXPECT_FALSE(writer.add({0, 0, 0x00FF}));  // would read as a timestamp word
  EXPECT_EQ(writer.finish().size(), 8u);
  for (int i = 0; i < 255; ++i) ASSERT_TRUE(writer.add({0, 0, 0x4000}));
  EXPECT_FALSE(writer.add({0, 0, 0x4000}));
  EXPECT_EQ(writer.finish().size(), 8u + 255 * 4);
  // With a timestamp word before each primitive the bytes run out first: (1472 - 8) / 8 = 183.
  writer.begin(kSourceRich, 0, 0);
  std::uint32_t count = 0;
  while (writer.add({256 * (count + 1), 0, 0x4000})) ++count;
  EXPECT_EQ(count, 183u);
  EXPECT_EQ(writer.finish().size(), 1472u);
  EXPECT_THROW(MtpWriter{std::span(room).first(7)}, SetupError);
}

}  // namespace
}  // namespace nanet::wire
