// SPDX-License-Identifier: Apache-2.0
// A tiny format whose packets are pieces of units, little-endian: stream u64, unit u64, place u64, unit_bytes u64, time u32, flags u32 (bit 0: ends the unit, bit 1: place is an index,
// bits 31..8: packets of the unit),
// payload. Byte b of unit u of stream s is byte_of(s, u, b).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "nanet/engine/protocol_of.hpp"
#include "nanet/engine/unit_facts.hpp"

namespace nanet::engine::test {

inline constexpr std::size_t kPieceHeadBytes = 40;

struct PieceDecoder {
  Inspection decode(std::span<const std::byte> packet, UnitFacts& facts) {
    if (packet.size() < kPieceHeadBytes) return {false, flow::Counter::packets_bad_length};
    const auto word = [&](std::size_t at) {
      std::uint64_t value = 0;
      std::memcpy(&value, packet.data() + at, sizeof value);
      return value;
    };
    const std::uint64_t last = word(32);
    facts = {.stream = word(0),
             .unit = word(8),
             .place = word(16),
             .unit_bytes = word(24),
             .time = last & UINT32_MAX,
             .payload_offset = kPieceHeadBytes,
             .payload_bytes = static_cast<std::uint32_t>(packet.size() - kPieceHeadBytes),
             .ends_unit = (last >> 32 & 1) != 0,
             .unit_packets = last >> 40,
             .place_is_index = (last >> 33 & 1) != 0};
    return {true, flow::Counter::packets_accepted};
  }

  UnitTime unit_time() const { return {.tick_ns = 10}; }
};

inline constexpr Protocol kPieces = unit_protocol_of<PieceDecoder>("pieces", "pieces of units");

struct Piece {
  std::uint64_t stream = 0;
  std::uint64_t unit = 0;
  std::uint64_t place = 0;
  std::uint32_t bytes = 0;
  std::uint64_t unit_bytes = 0;
  std::uint32_t time = 0;
  bool ends_unit = false;
  std::uint32_t unit_packets = 0;
  std::uint64_t at = 0;  // with is_index: where in the unit the payload really is
  bool is_index = false;
};

inline std::byte byte_of(std::uint64_t stream, std::uint64_t unit, std::uint64_t place) {
  return static_cast<std::byte>((stream * 31 + unit * 7 + place * 13 + (place >> 8)) & 0xFF);
}

inline std::vector<std::byte> make_piece(const Piece& piece) {
  std::vector<std::byte> packet(kPieceHeadBytes + piece.bytes);
  const std::uint64_t words[5] = {piece.stream, piece.unit, piece.place, piece.unit_bytes,
                                  piece.time | std::uint64_t{piece.ends_unit} << 32 | std::uint64_t{piece.is_index} << 33 |
                                      std::uint64_t{piece.unit_packets} << 40};
  std::memcpy(packet.data(), words, sizeof words);
  const std::uint64_t first = piece.is_index ? piece.at : piece.place;
  for (std::uint32_t b = 0; b < piece.bytes; ++b) packet[kPieceHeadBytes + b] = byte_of(piece.stream, piece.unit, first + b);
  return packet;
}

}  // namespace nanet::engine::test
