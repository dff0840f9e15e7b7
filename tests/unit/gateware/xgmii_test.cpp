// SPDX-License-Identifier: Apache-2.0
#include "model/xgmii.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace nanet::gateware {
namespace {

TEST(Xgmii, TheCheckSequenceIsThatOfEthernet) {
  const char* text = "123456789";
  EXPECT_EQ(ethernet_crc(std::as_bytes(std::span(text, std::strlen(text)))), 0xCBF4'3926u);
}

TEST(Xgmii, FramesOfAllLengthsComeBackAndFillTheLine) {
  std::mt19937_64 random(7);
  XgmiiSource source;
  XgmiiSink sink;
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
    sink.take(source.next(cycle), cycle);
    ++cycle;
  }
  EXPECT_EQ(sink.bad(), 0u);
  ASSERT_EQ(sink.frames().size(), sent.size());
  for (std::size_t k = 0; k < sent.size(); ++k) EXPECT_EQ(sink.frames()[k].bytes, sent[k]);
  EXPECT_NEAR(static_cast<double>(cycle), static_cast<double>(wire_bytes) / 8, 2.0);  // the gap is 12 bytes on average
}

TEST(Xgmii, AFlippedBitIsBad) {
  std::vector<std::byte> frame = with_fcs(std::vector<std::byte>(80));
  frame[20] ^= std::byte{4};
  XgmiiSource source;
  XgmiiSink sink;
  source.push(frame);
  for (std::uint64_t cycle = 0; source.waiting() != 0; ++cycle) sink.take(source.next(cycle), cycle);
  EXPECT_EQ(sink.bad(), 1u);
  EXPECT_TRUE(sink.frames().empty());
}

}  // namespace
}  // namespace nanet::gateware
