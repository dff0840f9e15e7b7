// SPDX-License-Identifier: Apache-2.0
// A packet of docs/apelink-format.md in words of 16 bytes, and one whose every word says which packet and which place it is of.
//
// Thread rules: values and functions without state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/torus/shape.hpp"

namespace nanet::torus {

inline constexpr unsigned kWordParts = 4;
using Word = std::array<std::uint32_t, kWordParts>;  // the lowest 32 bits first

inline constexpr std::uint32_t kWordBytes = 16, kPayloadBytesMax = 4096;

struct Header {
  std::uint32_t vc = 0;
  std::uint32_t process = 0;  // here: the node that sent it
  Place to;
  std::uint32_t packet_type = 0;
  std::uint32_t bytes = 0;  // of the payload
  std::uint64_t address = 0;  // here: its number among those from its sender to this node, and above 2^16 the cycle in which it was born
  std::uint32_t hops = 0;

  bool operator==(const Header&) const = default;
};

constexpr std::uint32_t payload_words(std::uint32_t bytes) { return (bytes + kWordBytes - 1) / kWordBytes; }
constexpr std::uint32_t packet_words(std::uint32_t payload_bytes) { return payload_words(payload_bytes) + 2; }

Word pack(const Header& header);  // without its code, which the link makes
Header unpack(const Word& word);

// Word `place`, from 1 on, of the payload of that packet: no other has it.
Word payload_word(const Header& header, std::uint32_t place);

// The footer's CRC-32: of the header without what routers change, then of the payload.
class PacketCrc {
 public:
  explicit PacketCrc(const Word& header);
  void add(const Word& word);
  Word footer() const;

 private:
  std::uint32_t crc_ = 0xFFFF'FFFF;
};

bool is_flagged(const Word& footer);

}  // namespace nanet::torus
