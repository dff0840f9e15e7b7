// SPDX-License-Identifier: Apache-2.0
// Declarations for tests, as a program writes them, and packets by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "nanet/format/decoder.hpp"

namespace nanet::format::test {

using Bytes = std::vector<std::byte>;

inline void put(Bytes& bytes, std::uint64_t value, unsigned count, ByteOrder order = ByteOrder::big) {
  for (unsigned k = 0; k < count; ++k)
    bytes.push_back(static_cast<std::byte>(value >> 8 * (order == ByteOrder::big ? count - 1 - k : k)));
}

inline Bytes packet(std::initializer_list<std::pair<std::uint64_t, unsigned>> words, std::size_t payload_bytes,
                    ByteOrder order = ByteOrder::big) {
  Bytes bytes;
  for (const auto& [value, count] : words) put(bytes, value, count, order);
  for (std::size_t i = 0; i < payload_bytes; ++i) bytes.push_back(static_cast<std::byte>(i * 7 + 1));
  return bytes;
}

inline FieldConfig field(std::string name, std::string at, WordType type) {
  FieldConfig made;
  made.name = std::move(name);
  made.at = std::move(at);
  made.type = type;
  return made;
}
inline FieldConfig equal(FieldConfig made, std::string value) {
  made.equals = std::move(value);
  return made;
}
inline FieldConfig bits(FieldConfig made, std::uint32_t high, std::uint32_t low) {
  made.bits = {high, low};
  return made;
}
inline FieldConfig below(FieldConfig made, std::string value) {
  made.below = std::move(value);
  return made;
}
inline FieldConfig tagged(std::string name, std::string item, std::string otherwise = "") {
  FieldConfig made;
  made.name = std::move(name);
  made.item = std::move(item);
  made.otherwise = std::move(otherwise);
  return made;
}

inline constexpr auto kU8 = WordType::u8;
inline constexpr auto kU16 = WordType::u16;
inline constexpr auto kU32 = WordType::u32;
inline constexpr auto kU64 = WordType::u64;

// A number, and four bytes of a checksum after it.
inline Declaration summed(ByteOrder order) {
  Declaration made;
  made.byte_order = order;
  made.header = {field("number", "0", kU32)};
  made.header_bytes = "8";
  made.checksum = ChecksumConfig{.at = 4};
  return made;
}

// EJFAT's reassembly header, with the load balancer's in front if it is still there.
inline Declaration ejfat() {
  Declaration made;
  made.byte_order = ByteOrder::big;
  made.header = {equal(field("version", "0", kU8), "0x10"),
                 equal(field("zero", "1", kU8), "0"),
                 field("data_id", "2", kU16),
                 field("offset", "4", kU32),
                 field("length", "8", kU32),
                 field("event", "12", kU64)};
  made.header[4].least = "1";
  made.header_bytes = "20";
  made.optional_before = BeforeConfig{.bytes = 16, .header = {equal(field("lb", "0", kU16), "0x4C42")}};
  made.stream = {"data_id"};
  made.unit = {"event"};
  made.place = "offset";
  made.unit_bytes = "length";
  made.unit_bytes_most = 1 << 20;
  made.timeout_us = 500'000;
  return made;
}

// SPEAD-64-48 as MeerKAT's F-engines send it.
inline Declaration spead() {
  Declaration made;
  made.byte_order = ByteOrder::big;
  made.items = ItemsConfig{.at = 8, .count = "n_items"};
  made.header = {bits(equal(field("magic", "0", kU64), "0x530402060000"), 63, 16),
                 field("n_items", "6", kU16),
                 tagged("heap", "1"),
                 tagged("length", "2", "0"),
                 tagged("offset", "3"),
                 tagged("bytes", "4"),
                 tagged("control", "6", "1"),
                 tagged("feng", "0x4101", "0")};
  made.header_bytes = "8 + 8 * n_items";
  made.payload.bytes = "bytes";
  made.stream = {"feng"};
  made.unit = {"heap"};
  made.place = "offset";
  made.unit_bytes = "length";
  made.unit_bytes_most = 1 << 22;
  made.stop_when = {{"control", "2"}};
  return made;
}

// PSI's JUNGFRAU.
inline Declaration jungfrau() {
  Declaration made;
  made.byte_order = ByteOrder::little;
  made.header = {field("frame", "0", kU64),
                 below(field("packet", "12", kU32), "128"),
                 field("time", "24", kU64),
                 field("row", "34", kU16),
                 field("column", "36", kU16),
                 equal(field("type", "46", kU8), "3"),
                 equal(field("version", "47", kU8), "2")};
  made.header_bytes = "48";
  made.payload.bytes = "8192";
  made.stream = {"row", "column"};
  made.unit = {"frame"};
  made.place = "packet * 8192";
  made.unit_packets = "128";
  made.time = {{.field = "time", .unit = "100 ns"}};
  return made;
}

// A GigE Vision camera's stream: leader, payload and trailer, two forms of the header.
inline Declaration gvsp() {
  Declaration made;
  made.byte_order = ByteOrder::big;
  made.header = {bits(equal(field("bad", "0", kU16), "0"), 15, 15), bits(field("extended", "4", kU32), 31, 31),
                 bits(field("content", "4", kU32), 30, 24)};
  made.unit = {"block"};
  made.unit_bytes_most = 1 << 24;
  made.first_when = {{"content", "1"}};
  made.last_when = {{"content", "2"}};
  for (const char* const extended : {"0", "1"}) {
    const bool is_long = extended[0] == '1';
    for (const char* const content : {"1", "2", "3"}) {
      VariantConfig one;
      one.when = {{"extended", extended}, {"content", content}};
      one.header = {is_long ? field("block", "8", kU64) : field("block", "2", kU16),
                    is_long ? field("packet", "16", kU32) : bits(field("packet", "4", kU32), 23, 0)};
      one.header_bytes = is_long ? "20" : "8";
      one.packet_index = content[0] == '3' ? "packet - 1" : "0";
      if (content[0] != '3') one.payload.bytes = "0";
      if (content[0] == '2') one.unit_packets = "packet - 1";
      made.variants.push_back(one);
    }
  }
  return made;
}

}  // namespace nanet::format::test
