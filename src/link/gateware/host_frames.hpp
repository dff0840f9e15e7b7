// SPDX-License-Identifier: Apache-2.0
// Frames between a board and its host, and the records in them: docs/design/gateware-board.md, "Frames". As gateware/rtl/host_link/host_link_pkg.sv has them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "link/gateware/frame_port.hpp"

namespace nanet::link::gateware::host_frames {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

inline constexpr std::uint16_t kEtherType = 0x88B5, kEtherTypeOnWire = 0xB588;
inline constexpr std::uint8_t kVersion = 1;
inline constexpr MacAddress kBoard{0x02, 0, 0, 0, 0, 0x01};
inline constexpr std::uint8_t kOpen = 1, kData = 2;
inline constexpr std::size_t kRecordBytesMax = 1440;  // of a frame
inline constexpr std::size_t kFrameBytesMin = 60, kFrameBytesMax = 1514;
inline constexpr std::size_t kBusWordBytes = 16;
inline constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << 40) - 1;

// The first 24 bytes of a frame.
struct Header {
  MacAddress to{}, from{};
  std::uint16_t ethertype = kEtherTypeOnWire;
  std::uint8_t version = kVersion;
  std::uint8_t flags = 0;
  std::uint32_t session = 0;
  std::uint16_t number = 0;        // of this frame, or of the next with records
  std::uint16_t acknowledged = 0;  // the number of the next frame with records that the sender waits for
};
static_assert(sizeof(Header) == 24 && offsetof(Header, session) == 16);

enum class Kind : std::uint8_t { nothing, write, read, register_answer, interrupt, read_answer, register_write, register_read };

// The first word of a record.
struct Record {
  Kind kind = Kind::nothing;
  bool failed = false;
  std::uint32_t tag = 0;
  std::uint32_t bytes = 0;
  std::uint64_t address = 0;

  std::uint64_t word() const {
    return address | std::uint64_t{bytes} << 40 | std::uint64_t{tag} << 52 | std::uint64_t{failed} << 59 |
           static_cast<std::uint64_t>(kind) << 60;
  }
};

inline std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t word;
  std::memcpy(&word, bytes.data() + at, sizeof(word));
  return word;
}

inline Record record_of(std::uint64_t word) {
  return {static_cast<Kind>(word >> 60), (word >> 59 & 1) != 0, static_cast<std::uint32_t>(word >> 52 & 0x7F),
          static_cast<std::uint32_t>(word >> 40 & 0xFFF), word & kAddressMask};
}

// Whole words of the bus that `bytes` from `lane` on take.
inline std::size_t bus_bytes(std::size_t lane, std::size_t bytes) {
  return (lane + bytes + kBusWordBytes - 1) / kBusWordBytes * kBusWordBytes;
}

// Appends a record with what follows it, filled up with zeros to whole words of `unit` bytes.
inline void append(std::vector<std::byte>& records, const Record& record, std::span<const std::byte> data, std::size_t unit = 8) {
  const std::uint64_t word = record.word();
  const std::size_t at = records.size();
  records.resize(at + sizeof(word) + (data.size() + unit - 1) / unit * unit);
  std::memcpy(records.data() + at, &word, sizeof(word));
  std::copy(data.begin(), data.end(), records.begin() + static_cast<std::ptrdiff_t>(at + sizeof(word)));
}

// The header of a frame of this version from the board to `host`, or nothing.
inline std::optional<Header> header_for(const MacAddress& host, std::span<const std::byte> frame) {
  Header header;
  if (frame.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, frame.data(), sizeof(header));
  if (header.to != host || header.from != kBoard || header.ethertype != kEtherTypeOnWire || header.version != kVersion) {
    return std::nullopt;
  }
  return header;
}

}  // namespace nanet::link::gateware::host_frames
