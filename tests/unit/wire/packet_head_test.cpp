// SPDX-License-Identifier: Apache-2.0
// parse_head(): what 24 bytes of a packet tell. It reads nothing after them, and refuses nothing that parse() accepts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "exact_copy.hpp"
#include "nanet/wire/m2egp.hpp"
#include "nanet/wire/mgp.hpp"
#include "vector_file.hpp"

namespace nanet::wire {
namespace {

using Bytes = std::vector<std::byte>;

struct Errors {
  ParseError whole;
  ParseError head;
};

// Both verdicts on one packet. Where both accept, they have to tell the same.
template <class View>
Errors judge(const Bytes& packet) {
  const test::ExactCopy whole(packet);
  const test::ExactCopy head{std::span(packet).first(std::min(packet.size(), kPacketHeadBytes))};
  View all;
  View first;
  const Errors errors{View::parse(whole.span(), all), View::parse_head(head.span(), packet.size(), first)};
  if (errors.whole == ParseError::none) {
    EXPECT_EQ(errors.head, ParseError::none);
  }
  if (errors.whole == ParseError::none && errors.head == ParseError::none) {
    EXPECT_EQ(first.header().source_id, all.header().source_id);
    EXPECT_EQ(first.header().source_sub_id, all.header().source_sub_id);
    EXPECT_EQ(first.header().sequence, all.header().sequence);
    EXPECT_EQ(first.header().event_count, all.header().event_count);
    EXPECT_EQ(first.header().run_start, all.header().run_start);
    EXPECT_EQ(first.is_marker(), all.is_marker());
    EXPECT_EQ(first.next_event_number(), all.next_event_number());  // in the same place as the first event number
  }
  return errors;
}

template <class View>
void judge_vectors(const char* file) {
  std::mt19937_64 random(5);
  for (const auto& vector : test::read_vectors(file)) {
    SCOPED_TRACE(vector.name);
    judge<View>(vector.payload);
    if (vector.expect() != ParseError::none) continue;
    Bytes cut = vector.payload;
    for (; cut.size() > kMgpHeaderBytes; cut.pop_back()) {
      seal(cut);
      judge<View>(cut);
    }
    for (int i = 0; i < 2000; ++i) {
      Bytes changed = vector.payload;
      for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
        changed[random() % std::min(changed.size(), kPacketHeadBytes)] = static_cast<std::byte>(random());
      }
      seal(changed);
      judge<View>(changed);
    }
  }
}

TEST(PacketHead, RefusesNothingThatTheWholePacketWouldPass) {
  judge_vectors<MgpView>("wire_mgp_padded.txt");
  judge_vectors<MgpView>("wire_mgp_packed.txt");
  judge_vectors<M2egpView>("wire_m2egp.txt");
}

Bytes packed(std::size_t event_count, std::size_t packet_bytes) {
  Bytes room(kMgpPackedBytesMax);
  MgpBuilder builder(room);
  builder.begin(MgpLayout::packed);
  const std::array<std::uint16_t, 20> hits{};
  for (std::size_t e = 0; e < event_count; ++e) builder.add_event({}, hits);
  const auto packet = builder.finish({}, packet_bytes);
  return {packet.begin(), packet.end()};
}

TEST(PacketHead, ChecksAMarkerToItsLastByte) {
  Bytes marker(kMgpMarkerBytes);
  make_marker(marker, {.run_start = true, .sequence = 7}, 42);
  EXPECT_EQ(judge<MgpView>(marker).head, ParseError::none);
  marker[20] ^= std::byte{1};
  EXPECT_EQ(judge<MgpView>(marker).head, ParseError::bad_checksum);
  marker.resize(26);
  seal(marker);
  EXPECT_EQ(judge<MgpView>(marker).head, ParseError::bad_length);

  Bytes merged(kMgpMarkerBytes);
  make_m2egp_marker(merged, {.run_end = true}, 42);
  EXPECT_EQ(judge<M2egpView>(merged).head, ParseError::none);
  merged[20] ^= std::byte{1};
  EXPECT_EQ(judge<M2egpView>(merged).head, ParseError::bad_checksum);
}

TEST(PacketHead, SaysWhatItCannotSeeAndWhatItCan) {
  Bytes packet = packed(4, 1000);
  packet[900] ^= std::byte{1};
  Errors errors = judge<MgpView>(packet);
  EXPECT_EQ(errors.whole, ParseError::bad_checksum);
  EXPECT_EQ(errors.head, ParseError::none) << "the checksum is not looked at";

  packet = packed(4, 0);  // 16 + 4 * (8 + 23): no byte to spare
  ASSERT_EQ(packet.size(), 140u);
  packet[16 + 31 + 5] = std::byte{90};
  seal(packet);
  errors = judge<MgpView>(packet);
  EXPECT_EQ(errors.whole, ParseError::bad_length);
  EXPECT_EQ(errors.head, ParseError::none) << "the second event is not looked at";

  packet[16 + 31 + 5] = std::byte{20};
  packet[16 + 5] = std::byte{90};  // 8 + 102 bytes leave no room for three headers
  seal(packet);
  EXPECT_EQ(judge<MgpView>(packet).head, ParseError::bad_length);

  packet = packed(1, 0);
  packet[3] = std::byte{200};
  seal(packet);
  EXPECT_EQ(judge<MgpView>(packet).head, ParseError::bad_length) << "no room for so many headers";
}

TEST(PacketHead, OfAPaddedPacketHasItsOneLengthAndItsCounts) {
  const auto vectors = test::read_vectors("wire_mgp_padded.txt");
  const auto good = std::ranges::find_if(vectors,
                                         [](const auto& v) { return v.expect() == ParseError::none && v.payload.size() == 1168; });
  ASSERT_NE(good, vectors.end());
  MgpView view;
  EXPECT_EQ(MgpView::parse_head(std::span(good->payload).first(24), 1168, view), ParseError::none);
  EXPECT_EQ(MgpView::parse_head(std::span(good->payload).first(24), 1166, view), ParseError::bad_length);
  EXPECT_EQ(MgpView::parse_head(std::span(good->payload).first(24), 1474, view), ParseError::bad_length);
  EXPECT_EQ(MgpView::parse_head(std::span(good->payload).first(24), 1167, view), ParseError::bad_length);
  Bytes packet = good->payload;
  packet[3] = std::byte{17};
  EXPECT_EQ(MgpView::parse_head(std::span(packet).first(24), 1168, view), ParseError::bad_format);
  packet[3] = std::byte{16};
  packet[21] = std::byte{33};
  EXPECT_EQ(MgpView::parse_head(std::span(packet).first(24), 1168, view), ParseError::bad_format);
}

}  // namespace
}  // namespace nanet::wire
