// SPDX-License-Identifier: Apache-2.0
// The check of a data packet by shares against what the views accept: on every vector, on random packets, and on these with bytes changed.
#include "wire/packet_check.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "exact_copy.hpp"
#include "packet_check_reference.hpp"
#include "vector_file.hpp"

namespace nanet::wire {
namespace {

using Bytes = std::vector<std::byte>;
using test::by_lanes;
using test::by_view;

// Returns what both say. Payloads lie alone in their memory, so that a sanitizer sees each read after them.
ParseError expect_same(std::span<const std::byte> payload, const std::string& what) {
  const test::ExactCopy copy(payload);
  const ParseError expected = by_view(copy.span());
  if (payload.size() >= kMgpHeaderBytes && static_cast<unsigned>(payload[3]) == 0) {
    EXPECT_NE(by_lanes(copy.span(), 32), ParseError::none) << what << ": a marker";
    return expected;
  }
  for (const std::uint32_t lanes : {1u, 4u, 32u}) EXPECT_EQ(by_lanes(copy.span(), lanes), expected) << what << ", lanes " << lanes;
  return expected;
}

Bytes random_packet(std::mt19937& random, PacketFormat format) {
  Bytes room(kMgpPackedBytesMax);
  const std::size_t events = 1 + random() % (format == PacketFormat::padded ? 16 : 40);
  const std::size_t room_bytes = format == PacketFormat::padded ? kMgpPaddedBytes : 24 + random() % (kMgpPackedBytesMax - 24);
  const auto span = std::span(room).first(room_bytes);
  MgpBuilder builder(span);
  M2egpBuilder merged(span);
  merged.begin();
  if (format != PacketFormat::merged) builder.begin(static_cast<MgpLayout>(format));
  for (std::size_t e = 0; e < events; ++e) {
    std::vector<std::uint16_t> hits(e == 0 ? 0 : random() % (format == PacketFormat::padded ? 33 : 30));
    for (std::uint16_t& hit : hits) hit = static_cast<std::uint16_t>(random());
    const MgpEvent event{static_cast<std::uint32_t>(random()), static_cast<std::uint8_t>(random()), 0, static_cast<std::uint16_t>(e)};
    const bool added = format == PacketFormat::merged ? merged.add_event(event, hits) : builder.add_event(event, hits);
    if (!added) break;
  }
  const auto sub_id = static_cast<std::uint8_t>(random() % 4);
  const auto packet = format == PacketFormat::merged ? merged.finish({.source_sub_id = sub_id, .sequence = 7}, random() % 2 * 1472)
                                                     : builder.finish({.source_sub_id = sub_id, .sequence = 7}, random() % 2 * 1472);
  return {packet.begin(), packet.end()};
}

constexpr std::array kFormats{PacketFormat::padded, PacketFormat::packed, PacketFormat::merged};

TEST(PacketCheck, EveryVector) {
  for (const char* file : {"wire_mgp_padded.txt", "wire_mgp_packed.txt", "wire_m2egp.txt"}) {
    for (const test::Vector& vector : test::read_vectors(file)) {
      if (vector.payload.size() > kMgpPackedBytesMax) continue;
      expect_same(vector.payload, vector.name);
    }
  }
}

TEST(PacketCheck, GoodPackets) {
  std::mt19937 random(1);
  for (int k = 0; k < 3000; ++k) {
    const Bytes packet = random_packet(random, kFormats[static_cast<std::size_t>(k) % kFormats.size()]);
    EXPECT_EQ(expect_same(packet, "packet " + std::to_string(k)), ParseError::none);
  }
}

// Bytes are changed, cut off or put on; half of the packets get the checksum of what they are then, so that the lengths have to be looked at.
TEST(PacketCheck, ChangedPackets) {
  std::mt19937 random(2);
  std::array<int, 4> seen{};
  for (int k = 0; k < 30000; ++k) {
    Bytes packet = random_packet(random, kFormats[static_cast<std::size_t>(k) % kFormats.size()]);
    for (std::size_t changes = random() % 3; changes != 0; --changes)
      packet[random() % packet.size()] ^= std::byte(1 + random() % 255);
    if (random() % 4 == 0) packet.resize(std::min<std::size_t>(packet.size() - random() % 9 + random() % 9, kMgpPackedBytesMax));
    if (random() % 3 == 0) {  // a hit count
      std::size_t offset = kMgpHeaderBytes + (random() % 3) * kMgpEventHeaderBytes;
      if (offset + 5 < packet.size()) packet[offset + 5] = std::byte(random());
    }
    if (packet.size() >= kMgpHeaderBytes && packet.size() % 2 == 0 && random() % 2 == 0) seal(packet);
    ++seen[static_cast<std::size_t>(expect_same(packet, "packet " + std::to_string(k)))];
  }
  for (const int count : seen) EXPECT_GT(count, 1000);
}

// The lengths of all sizes there are, and the largest sums.
TEST(PacketCheck, ChecksumOfEveryLength) {
  std::mt19937 random(3);
  for (const bool largest : {false, true}) {
    for (std::size_t bytes = kMgpHeaderBytes; bytes <= kMgpPackedBytesMax; bytes += 2) {
      Bytes payload(bytes, std::byte{0xFF});
      for (std::byte& byte : payload) byte = largest ? byte : std::byte(random());
      seal(payload);
      for (const std::uint32_t lanes : {1u, 2u, 32u}) {
        ChecksumShare sum;
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
          const ChecksumShare share = checksum_share(payload.data(), static_cast<std::uint32_t>(bytes), {lane, lanes});
          sum.first += share.first;
          sum.second += share.second;
        }
        ASSERT_TRUE(checksum_matches(payload.data(), sum)) << bytes << " bytes, lanes " << lanes;
        ASSERT_FALSE(checksum_matches(payload.data(), {sum.first + 1, sum.second}));
        ASSERT_FALSE(checksum_matches(payload.data(), {sum.first, sum.second + 1}));
      }
    }
  }
}

}  // namespace
}  // namespace nanet::wire
