// SPDX-License-Identifier: Apache-2.0
#include "model/wire.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace nanet::gateware {
namespace {

TEST(Wire, TheCheckSequenceIsThatOfEthernet) {
  const char* text = "123456789";
  EXPECT_EQ(ethernet_crc(std::as_bytes(std::span(text, std::strlen(text)))), 0xCBF4'3926u);
}

TEST(Wire, XgmiiFramesOfAllLengthsComeBackAndFillTheLine) {
  std::mt19937_64 random(7);
  WireSource source;
  WireSink sink;
  std::vector<std::vector<std::byte>> sent;
  std::uint64_t wire_bytes = 0;
  for (std::size_t bytes = 60; bytes < 200; ++bytes) {
    std::vector<std::byte>& frame = sent.emplace_back(bytes);
    for (std::byte& byte : frame) byte = static_cast<std::byte>(random());
    source.push(with_fcs(frame));
    wire_bytes += 8 + bytes + 4 + 12;
  }
  std::uint64_t cycle = 0;
  while (source.waiting() != 0) {
    sink.take(source.next_word(cycle), cycle);
    ++cycle;
  }
  EXPECT_EQ(sink.bad(), 0u);
  ASSERT_EQ(sink.frames().size(), sent.size());
  for (std::size_t k = 0; k < sent.size(); ++k) EXPECT_EQ(sink.frames()[k].bytes, sent[k]);
  EXPECT_NEAR(static_cast<double>(cycle), static_cast<double>(wire_bytes) / 8, 2.0);  // the gap is 12 bytes on average
}

TEST(Wire, GmiiFramesOfAllLengthsComeBackAndFillTheLine) {
  WireSource source;
  WireSink sink;
  source.keep_sent(true);
  std::uint64_t wire_bytes = 0;
  for (std::size_t bytes = 60; bytes < 100; ++bytes) {
    source.push(with_fcs(std::vector<std::byte>(bytes, static_cast<std::byte>(bytes))));
    wire_bytes += 8 + bytes + 4 + 12;
  }
  std::uint64_t cycle = 0;
  for (; source.waiting() != 0; ++cycle) sink.take(source.next_byte(cycle), cycle);
  sink.take(source.next_byte(cycle), cycle);
  EXPECT_EQ(cycle + 12, wire_bytes);  // the last gap is not waited for
  EXPECT_EQ(sink.bad(), 0u);
  ASSERT_EQ(sink.frames().size(), 40u);
  for (std::size_t k = 0; k < 40; ++k) {
    EXPECT_EQ(sink.frames()[k].bytes, std::vector<std::byte>(60 + k, static_cast<std::byte>(60 + k)));
    EXPECT_EQ(sink.frames()[k].cycle, source.sent_frames()[k].last_byte_cycle);
    EXPECT_EQ(source.sent_frames()[k].last_byte_cycle - source.sent_frames()[k].first_byte_cycle + 1, 8 + 60 + k + 4);
  }
}

TEST(Wire, AFlippedBitIsBad) {
  std::vector<std::byte> frame = with_fcs(std::vector<std::byte>(80));
  frame[20] ^= std::byte{4};
  WireSource source;
  WireSink sink;
  source.push(frame);
  for (std::uint64_t cycle = 0; source.waiting() != 0; ++cycle) sink.take(source.next_word(cycle), cycle);
  EXPECT_EQ(sink.bad(), 1u);
  EXPECT_TRUE(sink.frames().empty());
}

}  // namespace
}  // namespace nanet::gateware
