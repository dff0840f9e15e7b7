// SPDX-License-Identifier: Apache-2.0
// What packets mean, from bytes written by hand after the formats' own definitions (docs/declared-formats.md names them).
#include "nanet/format/decoder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "../allocation_count.hpp"
#include "../wire/exact_copy.hpp"
#include "declarations.hpp"

namespace nanet::format::test {
namespace {

using wire::test::ExactCopy;

Packet decoded(Decoder& decoder, const Bytes& bytes) {
  Packet packet;
  EXPECT_EQ(name_of(decoder.decode(ExactCopy(bytes).span(), packet)), "none") << decoder.explain(bytes);
  return packet;
}

Refusal refusal(Decoder& decoder, const Bytes& bytes) {
  Packet packet;
  return decoder.decode(ExactCopy(bytes).span(), packet);
}

Bytes ejfat_packet(std::uint64_t offset, std::uint64_t length, std::size_t payload_bytes) {
  return packet({{0x10, 1}, {0, 1}, {0x1234, 2}, {offset, 4}, {length, 4}, {0x0102030405060708, 8}}, payload_bytes);
}

TEST(Decoder, EjfatSegment) {
  Decoder decoder(ejfat());
  const Packet one = decoded(decoder, ejfat_packet(8000, 9000, 1000));
  EXPECT_EQ(one.stream, 0x1234u);
  EXPECT_EQ(one.unit, 0x0102030405060708u);
  EXPECT_EQ(one.place, 8000u);
  EXPECT_EQ(one.unit_bytes, 9000u);
  EXPECT_EQ(one.payload_offset, 20u);
  EXPECT_EQ(one.payload_bytes, 1000u);
  EXPECT_EQ(decoder.facts().unit_bytes_most, 1u << 20);
  EXPECT_EQ(decoder.facts().timeout_ns, 500'000'000u);
  EXPECT_EQ(decoder.facts().stream_bits, 16u);
}

TEST(Decoder, EjfatBehindTheBalancersHeader) {
  Decoder decoder(ejfat());
  Bytes both = packet({{0x4C42, 2}, {2, 1}, {1, 1}, {0, 2}, {77, 2}, {0x0102030405060708, 8}}, 0);
  const Bytes inner = ejfat_packet(0, 500, 500);
  both.insert(both.end(), inner.begin(), inner.end());
  const Packet one = decoded(decoder, both);
  EXPECT_EQ(one.before_bytes, 16u);
  EXPECT_EQ(one.payload_offset, 36u);
  EXPECT_EQ(one.payload_bytes, 500u);
}

TEST(Decoder, WhatDoesNotLieInItsUnitIsRefused) {
  Decoder decoder(ejfat());
  EXPECT_EQ(refusal(decoder, ejfat_packet(8001, 9000, 1000)), Refusal::outside_unit);
  EXPECT_EQ(refusal(decoder, ejfat_packet(0xFFFFFFFF, 9000, 1)), Refusal::outside_unit);
  EXPECT_EQ(refusal(decoder, ejfat_packet(0, 0xFFFFFFFF, 1)), Refusal::unit_too_long);
  EXPECT_EQ(refusal(decoder, ejfat_packet(0, (1 << 20) + 1, 1)), Refusal::unit_too_long);
  EXPECT_EQ(refusal(decoder, ejfat_packet(0, 0, 0)), Refusal::out_of_range);
  Bytes other = ejfat_packet(0, 10, 10);
  other[0] = std::byte{0x20};
  EXPECT_EQ(refusal(decoder, other), Refusal::not_accepted);
  EXPECT_EQ(decoder.explain(other), "version is 32, it must be 16");
}

Bytes spead_packet(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& items, std::size_t payload_bytes) {
  Bytes bytes = packet({{0x53, 1}, {4, 1}, {2, 1}, {6, 1}, {0, 2}, {items.size(), 2}}, 0);
  for (const auto& [id, value] : items) put(bytes, std::uint64_t{1} << 63 | id << 48 | value, 8);
  bytes.resize(bytes.size() + payload_bytes);
  return bytes;
}

TEST(Decoder, SpeadItemsInAnyOrder) {
  Decoder decoder(spead());
  std::vector<std::pair<std::uint64_t, std::uint64_t>> items{{1, 7}, {2, 4096}, {3, 1024}, {4, 512}, {0x4101, 21}, {0x1600, 99}};
  std::mt19937 random(1);
  for (int k = 0; k < 200; ++k) {
    if (k % 3 == 0) std::shuffle(items.begin(), items.end(), random);  // else the order that was remembered
    for (auto& [id, value] : items) value = id == 1 ? static_cast<std::uint64_t>(k) : value;
    const Packet one = decoded(decoder, spead_packet(items, 600));
    EXPECT_EQ(one.unit, static_cast<std::uint64_t>(k));
    EXPECT_EQ(one.place, 1024u);
    EXPECT_EQ(one.unit_bytes, 4096u);
    EXPECT_EQ(one.stream, 21u);
    EXPECT_EQ(one.payload_offset, 56u);
    EXPECT_EQ(one.payload_bytes, 512u);
    EXPECT_EQ(one.flags, 0);
  }
}

TEST(Decoder, SpeadWithoutOptionalItemsAndWithoutNeededOnes) {
  Decoder decoder(spead());
  EXPECT_EQ(decoded(decoder, spead_packet({{1, 7}, {3, 0}, {4, 0}, {6, 2}}, 0)).flags, Packet::stop);
  EXPECT_EQ(decoded(decoder, spead_packet({{1, 7}, {3, 0}, {4, 8}}, 8)).unit_bytes, 0u);
  EXPECT_EQ(refusal(decoder, spead_packet({{1, 7}, {3, 0}}, 8)), Refusal::item_missing);
  Bytes endless = spead_packet({{1, 7}, {3, 0}}, 8);
  endless[6] = endless[7] = std::byte{0xFF};  // the number of items
  EXPECT_EQ(refusal(decoder, endless), Refusal::too_short);
  EXPECT_EQ(decoder.explain(endless), "it has 32 bytes, its header says of itself that it has more");
  EXPECT_EQ(refusal(decoder, spead_packet({{1, 7}, {3, 0}, {4, 9}}, 8)), Refusal::payload_too_long);
  Bytes elsewhere = spead_packet({{1, 7}, {3, 0}, {4, 8}}, 8);
  elsewhere[8] &= std::byte{0x7F};
  EXPECT_EQ(refusal(decoder, elsewhere), Refusal::item_elsewhere);
  Bytes many = spead_packet({{1, 7}, {3, 0}, {4, 8}}, 8);
  many[6] = std::byte{0xFF};
  EXPECT_EQ(refusal(decoder, many), Refusal::too_short);
}

TEST(Decoder, SpeadWithMoreItemsThanAreRemembered) {
  Decoder decoder(spead());
  std::vector<std::pair<std::uint64_t, std::uint64_t>> items;
  for (std::uint64_t id = 0x2000; id < 0x2000 + 100; ++id) items.emplace_back(id, id);
  items.insert(items.end(), {{1, 5}, {3, 0}, {4, 8}});
  EXPECT_EQ(decoded(decoder, spead_packet(items, 8)).unit, 5u);
}

Bytes jungfrau_packet(std::uint64_t number, std::size_t payload_bytes = 8192) {
  return packet(
      {{0x1122334455, 8}, {1, 4}, {number, 4}, {0, 8}, {123456789, 8}, {0, 2}, {3, 2}, {9, 2}, {0, 2}, {0, 4}, {0, 2}, {3, 1}, {2, 1}},
      payload_bytes, ByteOrder::little);
}

TEST(Decoder, JungfrauPacket) {
  Decoder decoder(jungfrau());
  const Packet one = decoded(decoder, jungfrau_packet(127));
  EXPECT_EQ(one.unit, 0x1122334455u);
  EXPECT_EQ(one.place, 127u * 8192);
  EXPECT_EQ(one.unit_bytes, 1u << 20);
  EXPECT_EQ(one.unit_packets, 128u);
  EXPECT_EQ(one.stream, 3u << 16 | 9u);
  EXPECT_EQ(one.time, 123456789u);
  EXPECT_EQ(decoder.facts().time_unit_ns, 100.0);
  EXPECT_EQ(decoder.facts().unit_bytes_most, 1u << 20);
  EXPECT_EQ(refusal(decoder, jungfrau_packet(128)), Refusal::out_of_range);
  EXPECT_EQ(refusal(decoder, jungfrau_packet(0, 8191)), Refusal::payload_too_long);
}

TEST(Decoder, CameraLeaderPayloadTrailer) {
  Decoder decoder(gvsp());
  const Packet leader = decoded(decoder, packet({{0, 2}, {5, 2}, {0x01000000, 4}}, 36));
  EXPECT_EQ(leader.flags, Packet::first);
  EXPECT_EQ(leader.payload_bytes, 0u);
  const Packet data = decoded(decoder, packet({{0, 2}, {5, 2}, {0x03000002, 4}}, 1400));
  EXPECT_EQ(data.unit, 5u);
  EXPECT_EQ(data.place, 1u);
  EXPECT_EQ(data.payload_bytes, 1400u);
  const Packet trailer = decoded(decoder, packet({{0, 2}, {5, 2}, {0x02000004, 4}}, 8));
  EXPECT_EQ(trailer.flags, Packet::last);
  EXPECT_EQ(trailer.unit_packets, 3u);
  const Packet extended = decoded(decoder, packet({{0, 2}, {0, 2}, {0x83000000, 4}, {1ull << 40, 8}, {11, 4}}, 1000));
  EXPECT_EQ(extended.unit, 1ull << 40);
  EXPECT_EQ(extended.place, 10u);
  EXPECT_EQ(extended.payload_offset, 20u);
  EXPECT_EQ(refusal(decoder, packet({{0x8000, 2}, {5, 2}, {0x03000002, 4}}, 9)), Refusal::not_accepted);
  EXPECT_EQ(refusal(decoder, packet({{0, 2}, {5, 2}, {0x04000002, 4}}, 9)), Refusal::no_variant);
  EXPECT_EQ(refusal(decoder, packet({{0, 2}, {5, 2}, {0x03000000, 4}}, 9)), Refusal::arithmetic);
}

// RTP: the extension's length stands behind a list whose length the header says.
TEST(Decoder, FieldAtAComputedPlace) {
  Declaration rtp;
  rtp.byte_order = ByteOrder::big;
  rtp.header = {bits(equal(field("version", "0", kU8), "2"), 7, 6),
                bits(field("x", "0", kU8), 4, 4),
                bits(field("cc", "0", kU8), 3, 0),
                field("seq", "2", kU16),
                field("stamp", "4", kU32),
                field("ssrc", "8", kU32)};
  rtp.stream = {"ssrc"};
  rtp.sequence = SequenceConfig{.field = "seq"};
  rtp.variants.resize(2);
  rtp.variants[0].when = {{"x", "0"}};
  rtp.variants[0].header_bytes = "12 + 4 * cc";
  rtp.variants[1].header = {field("words", "14 + 4 * cc", kU16)};
  rtp.variants[1].header_bytes = "16 + 4 * cc + 4 * words";
  Decoder decoder(rtp);
  EXPECT_EQ(decoder.facts().sequence_modulo, 65536u);
  const Packet plain = decoded(decoder, packet({{0x82, 1}, {96, 1}, {500, 2}, {1, 4}, {42, 4}, {1, 4}, {2, 4}}, 10));
  EXPECT_EQ(plain.payload_offset, 20u);
  EXPECT_EQ(plain.sequence, 500u);
  EXPECT_EQ(plain.stream, 42u);
  const Packet extended = decoded(decoder,
                                  packet({{0x91, 1}, {96, 1}, {500, 2}, {1, 4}, {42, 4}, {1, 4}, {0xBEDE, 2}, {2, 2}, {0, 8}}, 10));
  EXPECT_EQ(extended.payload_offset, 28u);
  EXPECT_EQ(extended.payload_bytes, 10u);
  EXPECT_EQ(refusal(decoder, packet({{0x9F, 1}, {96, 1}, {500, 2}, {1, 4}, {42, 4}, {1, 4}}, 0)), Refusal::too_short);
}

TEST(Decoder, ExpressionsThatOverflowAreRefused) {
  Declaration made;
  made.header = {field("a", "0", kU64), field("b", "8", kU64)};
  made.header_bytes = "16";
  made.unit = {"a"};
  made.place = "a * b - 5";
  made.unit_bytes_most = 1 << 20;
  made.last_when = {{"b", "0"}};
  Decoder decoder(made);
  EXPECT_EQ(decoded(decoder, packet({{10, 8}, {20, 8}}, 1)).place, 195u);
  EXPECT_EQ(refusal(decoder, packet({{2, 8}, {2, 8}}, 1)), Refusal::arithmetic);
  EXPECT_EQ(refusal(decoder, packet({{~0ull, 8}, {~0ull, 8}}, 1)), Refusal::arithmetic);
  EXPECT_EQ(refusal(decoder, packet({{1ull << 62, 8}, {4, 8}}, 1)), Refusal::arithmetic);
  EXPECT_EQ(refusal(decoder, packet({{1ull << 40, 8}, {1, 8}}, 1)), Refusal::outside_unit);
}

TEST(Decoder, TimeOfTwoPartsAndPacketsShorterThanAWord) {
  Declaration made;
  made.byte_order = ByteOrder::little;
  made.header = {field("second", "0", kU8), field("tick", "1", kU16)};
  made.header_bytes = "3";
  made.time = {{.field = "second", .unit = "1 s"}, {.field = "tick", .unit = "16 ns"}};
  Decoder decoder(made);
  EXPECT_EQ(decoded(decoder, packet({{2, 1}, {7, 2}}, 0, ByteOrder::little)).time, 2u * 62'500'000 + 7);
  EXPECT_EQ(refusal(decoder, packet({{2, 1}, {7, 1}}, 0)), Refusal::too_short);
  EXPECT_EQ(refusal(decoder, {}), Refusal::too_short);
}

// What every caller may rely on, whatever a packet says.
void expect_bounds(const Decoder& decoder, const Packet& one, std::size_t bytes) {
  const Facts& facts = decoder.facts();
  EXPECT_LE(std::uint64_t{one.payload_offset} + one.payload_bytes, bytes);
  if (!facts.has_unit || facts.has_packet_index) return;
  EXPECT_LE(one.unit_bytes, facts.unit_bytes_most);
  EXPECT_LE(one.place + one.payload_bytes, one.unit_bytes != 0 ? one.unit_bytes : facts.unit_bytes_most);
}

// A decoder that has read nothing knows one way only, and this one may know a shorter one by now.
void expect_same_as_first(Decoder& used, std::span<const std::byte> bytes) {
  Decoder first = used;
  Packet expected;
  Packet got;
  const Refusal refusal = first.decode(bytes, expected);
  ASSERT_EQ(name_of(used.decode(bytes, got)), name_of(refusal));
  if (refusal == Refusal::none) {
    EXPECT_EQ(got, expected);
  }
}

// Fletcher-32 of "abcde" and "abcdef" is published as f04fc729 and 56502d2a, of little-endian words. Big-endian they are 6162 6364 6500 and
// 6162 6364 6566, whose sums are by hand 29c7, 4ff0 and 2a2d, 5056 (modulo ffff).
TEST(Decoder, ChecksumsAreOfWordsInTheFormatsByteOrder) {
  const auto packet_of = [](const char* text, std::uint32_t sum, ByteOrder order) {
    Bytes made;
    for (std::size_t k = 0; text[k] != 0; ++k) {
      if (k == 4) put(made, sum, 4, order);
      made.push_back(static_cast<std::byte>(text[k]));
    }
    return made;
  };
  Decoder little(summed(ByteOrder::little));
  Decoder big(summed(ByteOrder::big));
  EXPECT_EQ(refusal(little, packet_of("abcde", 0xF04FC729, ByteOrder::little)), Refusal::none);
  EXPECT_EQ(refusal(little, packet_of("abcdef", 0x56502D2A, ByteOrder::little)), Refusal::none);
  EXPECT_EQ(refusal(big, packet_of("abcde", 0x4FF029C7, ByteOrder::big)), Refusal::none);
  EXPECT_EQ(refusal(big, packet_of("abcdef", 0x50562A2D, ByteOrder::big)), Refusal::none);
  EXPECT_EQ(refusal(big, packet_of("abcdef", 0x56502D2A, ByteOrder::big)), Refusal::checksum);
  EXPECT_EQ(refusal(big, packet_of("abcdef", 0x56502D2A, ByteOrder::little)), Refusal::checksum);
}

TEST(Decoder, EveryTruncationAndDamageKeepsTheBounds) {
  const std::pair<Declaration, Bytes> all[] = {{ejfat(), ejfat_packet(8000, 9000, 1000)},
                                               {spead(), spead_packet({{1, 7}, {2, 4096}, {3, 1024}, {4, 512}, {6, 2}}, 512)},
                                               {jungfrau(), jungfrau_packet(5)},
                                               {gvsp(), packet({{0, 2}, {5, 2}, {0x03000002, 4}}, 100)}};
  std::mt19937 random(7);
  for (const auto& [declaration, good] : all) {
    Decoder decoder(declaration);
    std::size_t accepted = 0;
    const auto judge = [&](std::span<const std::byte> bytes) {
      Packet one;
      const ExactCopy copy(bytes);
      expect_same_as_first(decoder, copy.span());
      if (decoder.decode(copy.span(), one) != Refusal::none) {
        EXPECT_FALSE(decoder.explain(copy.span()).empty());
        return;
      }
      ++accepted;
      expect_bounds(decoder, one, bytes.size());
    };
    for (std::size_t n = 0; n <= good.size(); ++n) judge(std::span(good).first(n));
    EXPECT_GT(accepted, 0u);
    for (int k = 0; k < 5000; ++k) {
      Bytes bad = good;
      for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
        const std::size_t at = random() % std::min<std::size_t>(bad.size(), 64);
        bad[at] = static_cast<std::byte>(random() % 3 == 0 ? 0xFF : random());
      }
      bad.resize(random() % 4 == 0 ? random() % bad.size() : bad.size());
      judge(bad);
    }
  }
}

// kind: 0 to 3, flag: 0 or 1, in a byte before 8 bytes of payload and a number.
Bytes small_packet(unsigned kind, unsigned flag, std::uint64_t number) {
  return packet({{kind << 1 | flag, 1}, {0, 7}, {number, 8}}, 8);
}

Declaration small(const std::vector<Conditions>& whens) {
  Declaration made;
  made.byte_order = ByteOrder::big;
  made.header = {bits(field("flag", "0", kU8), 0, 0), bits(field("kind", "0", kU8), 2, 1), field("number", "8", WordType::u64)};
  made.header_bytes = "16";
  made.sequence = SequenceConfig{.field = "number"};
  for (const Conditions& when : whens) {
    VariantConfig one;
    one.when = when;
    made.variants.push_back(one);
  }
  return made;
}

// However many packets of one variant were read, the next is of the first that fits.
TEST(Decoder, TheFirstVariantThatFitsIsTaken) {
  const std::vector<Conditions> overlapping{{{"kind", "1"}, {"flag", "1"}}, {{"kind", "1"}}, {}};
  const std::vector<Conditions> apart{{{"kind", "1"}, {"flag", "1"}}, {{"kind", "1"}, {"flag", "0"}}, {{"kind", "2"}}};
  for (const auto& whens : {overlapping, apart}) {
    Decoder decoder(small(whens));
    for (unsigned before = 0; before < 8; ++before) {
      for (unsigned now = 0; now < 8; ++now) {
        for (int k = 0; k < 2; ++k) refusal(decoder, small_packet(before >> 1, before & 1, 7));
        expect_same_as_first(decoder, small_packet(now >> 1, now & 1, now));
      }
    }
  }
  Decoder decoder(small(overlapping));
  EXPECT_EQ(decoded(decoder, small_packet(1, 0, 0)).variant, 1u);
  EXPECT_EQ(decoded(decoder, small_packet(1, 1, 0)).variant, 0u);
  EXPECT_EQ(decoded(decoder, small_packet(2, 1, 0)).variant, 2u);
}

TEST(Decoder, SumsThatWouldNotFitAreRefusedAsBefore) {
  Declaration made = small({});
  made.time = {{.field = "number", .unit = "1 ns"}};
  made.unit = {"kind"};
  made.place = "number - 3";
  made.unit_bytes = "64";
  Decoder decoder(made);
  for (const std::uint64_t number :
       {0ull, 2ull, 3ull, 59ull, 60ull, 1ull << 60, (1ull << 60) + 1, 1ull << 62, 1ull << 63, ~0ull, 4ull}) {
    for (int k = 0; k < 2; ++k) expect_same_as_first(decoder, small_packet(1, 0, number));
  }
  EXPECT_EQ(decoded(decoder, small_packet(1, 0, 4)).place, 1u);
  EXPECT_EQ(refusal(decoder, small_packet(1, 0, 2)), Refusal::arithmetic);
}

TEST(Decoder, AllocatesNothing) {
  Decoder decoder(spead());
  const Bytes one = spead_packet({{1, 7}, {2, 4096}, {3, 1024}, {4, 512}}, 512);
  const Bytes other = spead_packet({{3, 1024}, {2, 4096}, {1, 7}, {4, 512}}, 512);
  Packet packet;
  const std::uint64_t before = nanet::test::allocation_count;
  for (int k = 0; k < 100; ++k) {
    decoder.decode(k % 2 == 0 ? one : other, packet);
    decoder.decode(std::span(one).first(static_cast<std::size_t>(k)), packet);
  }
  EXPECT_EQ(nanet::test::allocation_count, before);
}

// A field read bit by bit, as a data sheet says it.
std::uint64_t by_hand(const Bytes& bytes, std::size_t at, unsigned word_bytes, unsigned high, unsigned low, ByteOrder order) {
  std::uint64_t value = 0;
  for (unsigned bit = high + 1; bit-- > low;) {
    const unsigned byte = order == ByteOrder::little ? bit / 8 : word_bytes - 1 - bit / 8;
    value = value << 1 | (static_cast<unsigned>(bytes[at + byte]) >> bit % 8 & 1u);
  }
  return value;
}

TEST(Decoder, AnyFieldIsItsBits) {
  std::mt19937 random(3);
  for (int k = 0; k < 2000; ++k) {
    const WordType types[] = {kU8, kU16, kU32, kU64};
    const WordType type = types[random() % 4];
    const auto word_bytes = static_cast<unsigned>(type);
    const unsigned low = static_cast<unsigned>(random()) % (8 * word_bytes);
    const unsigned high = low + static_cast<unsigned>(random()) % (8 * word_bytes - low);
    const std::size_t at = random() % 12;
    Declaration made;
    made.byte_order = random() % 2 == 0 ? ByteOrder::big : ByteOrder::little;
    made.header = {bits(field("it", std::to_string(at), type), high, low)};
    made.header_bytes = std::to_string(at + word_bytes);
    made.stream = {"it"};
    Bytes bytes(at + word_bytes + random() % 9);
    for (std::byte& one : bytes) one = static_cast<std::byte>(random());
    const std::uint64_t expected = by_hand(bytes, at, word_bytes, high, low, made.byte_order);
    Decoder reads(made);
    EXPECT_EQ(decoded(reads, bytes).stream, expected);
    made.header[0].equals = std::to_string(expected);
    Decoder accepts(made);
    EXPECT_EQ(refusal(accepts, bytes), Refusal::none);
    const unsigned flipped = low + static_cast<unsigned>(random()) % (high - low + 1);
    bytes[at + (made.byte_order == ByteOrder::little ? flipped / 8 : word_bytes - 1 - flipped / 8)] ^= static_cast<std::byte>(
        1u << flipped % 8);
    EXPECT_EQ(refusal(accepts, bytes), Refusal::not_accepted);
  }
}

}  // namespace
}  // namespace nanet::format::test
