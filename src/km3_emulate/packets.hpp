// SPDX-License-Identifier: Apache-2.0
// A unit cut into packets (docs/formats-km3.md), side by side in memory, so that several leave as one message.
//
// Thread rules: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "km3_emulate/units.hpp"

namespace nanet::km3_emulate {

inline constexpr std::uint32_t kHeaderBytes = 32;

struct PacketHead {
  std::uint8_t tower = 0;
  std::uint8_t floor = 0;  // from 1
  Kind kind = Kind::hits;
  bool untimed = false;
  std::uint32_t run = 0;
  std::uint32_t slice = 0;
  std::uint64_t gps_ns = 0;  // when the slice begins
};

// A field of a packet, to be damaged.
struct PacketField {
  std::string_view name;
  std::uint32_t at;
  std::uint32_t bytes;  // 0: up to the end
};
inline constexpr PacketField kPacketFields[] = {{"magic", 0, 4}, {"tower", 4, 1},   {"floor", 5, 1},     {"kind", 6, 1},
                                                {"flags", 7, 1}, {"run", 8, 4},     {"slice", 12, 4},    {"second", 16, 4},
                                                {"tick", 20, 4}, {"offset", 24, 4}, {"sequence", 28, 4}, {"payload", 32, 0}};

class CutUnit {
 public:
  // unit: whole records of record_bytes.
  void cut(std::span<const std::byte> unit, std::uint32_t record_bytes, std::uint32_t packet_bytes_max);

  std::uint32_t packet_count() const { return packet_count_; }

  // Writes the header of a packet, and gives it with its payload. index < packet_count().
  std::span<const std::byte> packet(std::uint32_t index, const PacketHead& head, std::uint32_t sequence);

 private:
  std::vector<std::byte> bytes_;
  std::uint32_t unit_bytes_ = 0;
  std::uint32_t piece_bytes_ = 0;
  std::uint32_t packet_count_ = 0;
};

std::uint32_t record_bytes(Kind kind, std::uint32_t samples);

}  // namespace nanet::km3_emulate
