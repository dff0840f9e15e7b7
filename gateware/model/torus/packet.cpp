// SPDX-License-Identifier: Apache-2.0
#include "model/torus/packet.hpp"

namespace nanet::torus {
namespace {

constexpr std::array<std::array<std::uint32_t, 256>, 4> crc_tables() {
  std::array<std::array<std::uint32_t, 256>, 4> tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB8'8320u : 0u);
    tables[0][i] = value;
  }
  for (std::size_t k = 1; k < 4; ++k) {
    for (std::size_t i = 0; i < 256; ++i) tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xFF];
  }
  return tables;
}

// Fields of the header: the lowest bit and the width of each.
constexpr unsigned kVc = 0, kVcBits = 5, kProcess = 5, kProcessBits = 16, kType = 43, kTypeBits = 5, kBytes = 48, kBytesBits = 14;
constexpr unsigned kAddress = 62, kAddressBits = 48, kHops = 110, kHopsBits = 10;
constexpr std::array<unsigned, 3> kTo{21, 27, 32}, kToBits{6, 5, 5};

void put(Word& word, unsigned at, unsigned bits, std::uint64_t value) {
  for (unsigned k = 0; k < bits; ++k) word[(at + k) / 32] |= static_cast<std::uint32_t>((value >> k) & 1) << ((at + k) % 32);
}

std::uint64_t take(const Word& word, unsigned at, unsigned bits) {
  const unsigned low = at / 32, shift = at % 32;
  std::uint64_t value = word[low] >> shift;
  for (unsigned k = 1; k < 3 && low + k < word.size(); ++k) {
    if (32 * k < shift + bits) value |= (std::uint64_t{word[low + k]} << (32 * k - 1 - shift)) << 1;
  }
  return value & ((std::uint64_t{1} << bits) - 1);
}

}  // namespace

Word pack(const Header& header) {
  Word word{};
  put(word, kVc, kVcBits, header.vc);
  put(word, kProcess, kProcessBits, header.process);
  for (std::size_t d = 0; d < 3; ++d) put(word, kTo[d], kToBits[d], header.to.at[d]);
  put(word, kType, kTypeBits, header.packet_type);
  put(word, kBytes, kBytesBits, header.bytes);
  put(word, kAddress, kAddressBits, header.address);
  put(word, kHops, kHopsBits, header.hops);
  return word;
}

Header unpack(const Word& word) {
  const auto small = [&](unsigned at, unsigned bits) { return static_cast<std::uint32_t>(take(word, at, bits)); };
  Header header;
  header.vc = small(kVc, kVcBits);
  header.process = small(kProcess, kProcessBits);
  for (std::size_t d = 0; d < 3; ++d) header.to.at[d] = small(kTo[d], kToBits[d]);
  header.packet_type = small(kType, kTypeBits);
  header.bytes = small(kBytes, kBytesBits);
  header.address = take(word, kAddress, kAddressBits);
  header.hops = small(kHops, kHopsBits);
  return header;
}

Word payload_word(const Header& header, std::uint32_t place) {
  std::uint64_t mixed = header.address ^ (std::uint64_t{header.process} << 48) ^ (std::uint64_t{place} << 40);
  mixed = (mixed ^ (mixed >> 31)) * 0x9E37'79B9'7F4A'7C15u;
  const auto low = static_cast<std::uint32_t>(mixed), high = static_cast<std::uint32_t>(mixed >> 32);
  return {low, high, low ^ place, (header.process << 16) | static_cast<std::uint32_t>(header.address & 0xFFFF)};
}

PacketCrc::PacketCrc(const Word& header) {
  add({header[0] & ~0x1Fu, header[1], header[2], header[3] & 0x3FFFu});  // without vc, hops and the code
}

void PacketCrc::add(const Word& word) {
  static constexpr auto kTables = crc_tables();
  for (const std::uint32_t part : word) {
    const std::uint32_t mixed = crc_ ^ part;
    crc_ = kTables[3][mixed & 0xFF] ^ kTables[2][(mixed >> 8) & 0xFF] ^ kTables[1][(mixed >> 16) & 0xFF] ^ kTables[0][mixed >> 24];
  }
}

Word PacketCrc::footer() const { return {~crc_, 0xFFFF'0000, 0xFFFF'FFFF, 0xFFFF'FFFF}; }

bool is_flagged(const Word& footer) { return footer[1] == 0xFFFF'FFFF && footer[2] == 0xFFFF'FFFF && footer[3] == 0xFFFF'FFFF; }

}  // namespace nanet::torus
