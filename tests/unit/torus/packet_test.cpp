// SPDX-License-Identifier: Apache-2.0
// The harness's packets against the literal words of docs/apelink-format.md.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/torus/packet.hpp"

namespace nanet::torus {
namespace {

Word word_of(std::array<std::uint8_t, 16> bytes) {
  Word word{};
  for (std::size_t k = 0; k < bytes.size(); ++k) word[k / 4] |= std::uint32_t{bytes[k]} << (8 * (k % 4));
  return word;
}

Header example() {
  Header header;
  header.vc = 1;
  header.process = 0x1234;
  header.to.at = {3, 2, 1};
  header.packet_type = 1;
  header.bytes = 20;
  header.address = 0x1234'5678'9ABC;
  header.hops = 2;
  return header;
}

constexpr std::uint32_t kPort5 = 5u << 5;  // of bits 40:37, which packets of the harness leave zero

TEST(Packet, IsTheOneOfTheFormatPage) {
  Word header = pack(example());
  header[1] |= kPort5;
  Word page = word_of({0x81, 0x46, 0x62, 0x10, 0xa1, 0x08, 0x14, 0x00, 0xaf, 0x26, 0x9e, 0x15, 0x8d, 0x84, 0x00, 0x56});
  page[3] &= 0x00FF'FFFF;  // the code is the link's to make
  EXPECT_EQ(header, page);

  PacketCrc crc(header);
  crc.add(word_of({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  crc.add(word_of({16, 17, 18, 19}));
  EXPECT_EQ(crc.footer(), word_of({0xc6, 0xde, 0x3a, 0xf6, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
}

TEST(Packet, ItsFieldsComeBack) {
  for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{0xFFFF'FFFF'FFFF}, std::uint64_t{0x8000'0000'0001}}) {
    Header header = example();
    header.address = address;
    EXPECT_EQ(unpack(pack(header)), header);
  }
}

TEST(Packet, NoWordIsThatOfAnotherPlaceOrPacket) {
  std::vector<Word> words;
  Header header = example();
  for (header.process = 0; header.process < 8; ++header.process) {
    for (header.address = 0; header.address < 8; ++header.address) {
      for (std::uint32_t place = 1; place <= 64; ++place) words.push_back(payload_word(header, place));
    }
  }
  std::ranges::sort(words);
  EXPECT_EQ(std::ranges::adjacent_find(words), words.end());
}

}  // namespace
}  // namespace nanet::torus
