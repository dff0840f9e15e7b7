// SPDX-License-Identifier: Apache-2.0
#include "wire/l0_decision.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "exact_copy.hpp"
#include "nanet/setup_error.hpp"
#include "vector_file.hpp"

namespace nanet::wire {
namespace {

std::vector<L0DecisionEntry> entries_of(const L0DecisionView& view) {
  std::vector<L0DecisionEntry> entries;
  for (std::uint32_t i = 0; i < view.entry_count(); ++i) entries.push_back(view.entry(i));
  return entries;
}

ParseError parse_error(std::span<const std::byte> payload) {
  L0DecisionView view;
  return L0DecisionView::parse(payload, view);
}

TEST(L0Decision, Vectors) {
  for (const auto& vector : test::read_vectors("wire_l0_decision.txt")) {
    SCOPED_TRACE(vector.name);
    const test::ExactCopy copy(vector.payload);
    L0DecisionView view;
    ASSERT_EQ(L0DecisionView::parse(copy.span(), view), vector.expect());
    if (vector.expect() != ParseError::none) continue;
    EXPECT_EQ(view.source_sub_id(), vector.number("source_sub_id"));
    EXPECT_EQ(view.first_trigger_number(), vector.number("first_trigger_number"));
    ASSERT_EQ(view.entry_count(), vector.number("entry_count"));
    const auto entries = entries_of(view);
    const auto lines = vector.lists("entry");
    for (std::size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(entries[i].timestamp, lines[i].at(0));
      EXPECT_EQ(entries[i].fine_time, lines[i].at(1));
      EXPECT_EQ(entries[i].matched_kind, lines[i].at(2));
      EXPECT_EQ(entries[i].trigger_word, lines[i].at(3));
    }
    std::vector<std::byte> room(2000, std::byte{0xA5});
    L0DecisionWriter writer(room);
    writer.begin(view.source_sub_id(), view.first_trigger_number());
    for (const auto& entry : entries) ASSERT_TRUE(writer.add(entry));
    EXPECT_EQ(writer.entry_count(), entries.size());
    EXPECT_TRUE(std::ranges::equal(writer.finish(), vector.payload));
  }
}

TEST(L0Decision, LiteralBytes) {
  std::array<std::byte, 64> room;
  L0DecisionWriter writer(room);
  writer.begin(7, 0x5512345678);
  ASSERT_TRUE(writer.add({0x01020304, 0x99, 0x83, 0xC0DE}));
  const auto payload = writer.finish();
  const std::array<int, 16> expected = {0x78, 0x56, 0x34, 0x40, 16, 0, 1, 7, 4, 3, 2, 1, 0x99, 0x83, 0xDE, 0xC0};
  ASSERT_EQ(payload.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(static_cast<int>(payload[i]), expected[i]) << i;
}

TEST(L0Decision, EveryTruncationAndExtensionIsRefused) {
  for (const auto& vector : test::read_vectors("wire_l0_decision.txt")) {
    if (vector.expect() != ParseError::none) continue;
    for (std::size_t length = 0; length < vector.payload.size(); ++length) {
      const test::ExactCopy copy(std::span(vector.payload).first(length));
      ASSERT_EQ(parse_error(copy.span()), ParseError::bad_length) << vector.name << " cut to " << length;
    }
    auto longer = vector.payload;
    longer.resize(longer.size() + 8);
    EXPECT_EQ(parse_error(longer), ParseError::bad_length) << vector.name;
  }
}

TEST(L0Decision, AFullPacketTakesNoMore) {
  std::vector<std::byte> room(5000, std::byte{0xA5});
  L0DecisionWriter writer(room);
  writer.begin(0, 0);
  for (std::size_t i = 0; i < kL0DecisionEntriesMax; ++i) ASSERT_TRUE(writer.add({}));
  EXPECT_FALSE(writer.add({}));
  EXPECT_EQ(writer.finish().size(), kL0DecisionBytesMax);
  EXPECT_EQ(room[kL0DecisionBytesMax], std::byte{0xA5});
  writer.begin(0, 0);
  EXPECT_EQ(writer.finish().size(), kL0DecisionHeaderBytes);
}

TEST(L0Decision, RoomLimits) {
  std::array<std::byte, 23> room;
  L0DecisionWriter writer(room);
  EXPECT_TRUE(writer.add({}));
  EXPECT_FALSE(writer.add({}));
  EXPECT_THROW(L0DecisionWriter(std::span(room).first(7)), SetupError);
}

TEST(L0Decision, RandomRoundTrips) {
  std::mt19937 random(3);
  for (int repeat = 0; repeat < 300; ++repeat) {
    std::vector<L0DecisionEntry> entries(random() % (kL0DecisionEntriesMax + 1));
    for (auto& entry : entries) {
      entry = {static_cast<std::uint32_t>(random()), static_cast<std::uint8_t>(random()), static_cast<std::uint8_t>(random()),
               static_cast<std::uint16_t>(random())};
    }
    std::vector<std::byte> room(kL0DecisionBytesMax);
    L0DecisionWriter writer(room);
    const auto number = static_cast<std::uint32_t>(random()) & kL0TriggerNumberMask;
    writer.begin(static_cast<std::uint8_t>(repeat), number);
    for (const auto& entry : entries) ASSERT_TRUE(writer.add(entry));
    const test::ExactCopy copy(writer.finish());
    L0DecisionView view;
    ASSERT_EQ(L0DecisionView::parse(copy.span(), view), ParseError::none);
    EXPECT_EQ(view.first_trigger_number(), number);
    EXPECT_EQ(view.source_sub_id(), static_cast<std::uint8_t>(repeat));
    EXPECT_EQ(entries_of(view), entries);
  }
}

}  // namespace
}  // namespace nanet::wire
