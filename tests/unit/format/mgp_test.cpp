// SPDX-License-Identifier: Apache-2.0
// MGP, declared, against the hand-written view of it: the same verdict on every packet, and the same bits of those that are good.
#include "nanet/wire/mgp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "../wire/exact_copy.hpp"
#include "../wire/vector_file.hpp"
#include "format/event_reader.hpp"
#include "mgp_declaration.hpp"

namespace nanet::format::test {
namespace {

using wire::ParseError;
using wire::test::ExactCopy;

ParseError kind_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::none: return ParseError::none;
    case Refusal::checksum: return ParseError::bad_checksum;
    case Refusal::too_short:
    case Refusal::bad_length:
    case Refusal::payload_too_long:
    case Refusal::events_cut: return ParseError::bad_length;
    default: return ParseError::bad_format;
  }
}

struct Compared {
  Decoder decoder{mgp()};
  std::size_t accepted = 0;
  std::size_t refused = 0;

  void compare(std::span<const std::byte> bytes) {
    const ExactCopy copy(bytes);
    wire::MgpView view;
    const ParseError expected = wire::MgpView::parse(copy.span(), view);
    Packet packet;
    const Refusal refusal = decoder.decode(copy.span(), packet);
    ASSERT_EQ(kind_of(refusal), expected) << name_of(refusal) << ", " << bytes.size() << " bytes: " << decoder.explain(copy.span());
    ++(expected == ParseError::none ? accepted : refused);
    if (expected == ParseError::none) compare_meaning(view, packet, copy.span());
  }

  void compare_meaning(const wire::MgpView& view, const Packet& packet, std::span<const std::byte> bytes) const {
    EXPECT_EQ(packet.stream, unsigned{view.header().source_id} << 8 | view.header().source_sub_id);
    EXPECT_EQ(packet.sequence, view.header().sequence);
    EXPECT_EQ(packet.event_count, view.header().event_count);
    if (view.is_marker()) {
      EXPECT_EQ(packet.flags, view.header().run_start ? Packet::start : Packet::stop);
      EXPECT_EQ(packet.next_event, view.next_event_number());
      return;
    }
    EXPECT_EQ(packet.flags, 0);
    EXPECT_EQ(packet.first_event, view.first_event_number());
    std::vector<std::uint64_t> expected;
    std::vector<std::uint16_t> scratch(wire::kMgpScratchHits);
    wire::for_each_event(view, scratch.data(), [&](const wire::MgpEvent& event, const std::uint16_t* hits) {
      expected.insert(expected.end(), {event.timestamp, event.fine_time, event.hit_count});
      expected.insert(expected.end(), hits, hits + event.hit_count);
    });
    std::vector<std::uint64_t> got;
    EventReader::for_each_event(
        EventReader(decoder).open(bytes), [&] { return scratch.data(); },
        [&](const ReadEvent& event) {
          got.insert(got.end(), {event.timestamp, event.fine_time, event.hit_count});
          got.insert(got.end(), event.hits, event.hits + event.hit_count);
        });
    EXPECT_EQ(got, expected);
  }
};

std::vector<Bytes> vectors() {
  std::vector<Bytes> all;
  for (const char* const file : {"wire_mgp_padded.txt", "wire_mgp_packed.txt", "wire_mgp_marker.txt"}) {
    for (const wire::test::Vector& vector : wire::test::read_vectors(file)) all.push_back(vector.payload);
  }
  return all;
}

TEST(DeclaredMgp, EveryVector) {
  Compared compared;
  for (const Bytes& one : vectors()) compared.compare(one);
  EXPECT_GE(compared.accepted, 10u);
  EXPECT_GT(compared.refused, 10u);
}

TEST(DeclaredMgp, EveryTruncation) {
  Compared compared;
  for (const Bytes& one : vectors()) {
    for (std::size_t n = 0; n <= one.size(); n += one.size() > 200 && n > 100 ? 37 : 1) compared.compare(std::span(one).first(n));
  }
  EXPECT_GT(compared.refused, 1000u);
}

// Every byte of the headers at its extremes and one bit off, with the checksum as it was and made right again.
TEST(DeclaredMgp, EveryByteOfTheHeadersDamaged) {
  Compared compared;
  for (const Bytes& one : vectors()) {
    for (std::size_t at = 0; at < std::min<std::size_t>(one.size(), 100); ++at) {
      for (const unsigned value :
           {0u, 1u, 2u, 0x10u, 0x20u, 0x7Fu, 0xFFu, static_cast<unsigned>(one[at]) ^ 1u, static_cast<unsigned>(one[at]) ^ 0x80u}) {
        Bytes bad = one;
        bad[at] = static_cast<std::byte>(value);
        compared.compare(bad);
        if (bad.size() < 16 || bad.size() % 2 != 0) continue;
        wire::seal(bad);
        compared.compare(bad);
      }
    }
  }
  EXPECT_GT(compared.accepted, 1000u);
  EXPECT_GT(compared.refused, 1000u);
}

// What MGP is for: if one of its variants could only be read the long way, the benchmark would say so and no test.
TEST(DeclaredMgp, EveryVariantHasAShortWay) {
  const Decoder decoder(mgp());
  for (const Body& body : decoder.program().bodies) EXPECT_TRUE(body.flat.has_value()) << unsigned{body.index};
}

TEST(DeclaredMgp, RandomPackets) {
  Compared compared;
  std::mt19937 random(11);
  std::vector<std::byte> room(1472);
  for (int k = 0; k < 3000; ++k) {
    wire::MgpBuilder builder(room);
    const bool is_packed = random() % 2 == 0;
    builder.begin(is_packed ? wire::MgpLayout::packed : wire::MgpLayout::padded);
    for (std::size_t events = 1 + random() % 16; events > 0; --events) {
      std::vector<std::uint16_t> hits(random() % 33);
      for (std::uint16_t& hit : hits) hit = static_cast<std::uint16_t>(is_packed ? random() % 512 : random());
      builder.add_event({.timestamp = static_cast<std::uint32_t>(random()),
                         .fine_time = static_cast<std::uint8_t>(random()),
                         .event_number = static_cast<std::uint16_t>(random())},
                        hits);
    }
    const auto packet = builder.finish({.source_id = 0x1C,
                                        .source_sub_id = static_cast<std::uint8_t>(random() % 4),
                                        .sequence = static_cast<std::uint32_t>(random())});
    compared.compare(packet);
    Bytes bad(packet.begin(), packet.end());
    bad[random() % 24] = static_cast<std::byte>(random());
    wire::seal(bad);
    compared.compare(bad);
  }
  EXPECT_GT(compared.accepted, 3000u);
}

}  // namespace
}  // namespace nanet::format::test
