// SPDX-License-Identifier: Apache-2.0
// A declaration as the front of an input has it, written as a tree of values: a byte for the kind, then
//   0 null   1 false   2 true   3 number: 8 bytes, little-endian   4 text: its length, its bytes   5 list: its length, values   6 map: its length, {text, value}
// with lengths of one byte. fuzz/make_corpus.py writes the shipped formats so, and packets of them after it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "fuzz_common.hpp"
#include "nanet/config/read.hpp"
#include "nanet/config/value.hpp"
#include "nanet/format/declaration.hpp"

namespace nanet::fuzz {

inline std::string take_text(Bytes& bytes) {
  const auto piece = bytes.take(bytes.take());
  return {reinterpret_cast<const char*>(piece.data()), piece.size()};
}

inline config::Value take_value(Bytes& bytes, int depth = 8) {
  switch (bytes.take()) {
    case 1: return false;
    case 2: return true;
    case 3: return bytes.take_as<std::int64_t>();
    case 4: return take_text(bytes);
    case 5: {
      config::Value::List list;
      for (unsigned left = bytes.take(); left > 0 && depth > 0 && !bytes.empty(); --left)
        list.push_back(take_value(bytes, depth - 1));
      return list;
    }
    case 6: {
      config::Value::Map map;
      for (unsigned left = bytes.take(); left > 0 && depth > 0 && !bytes.empty(); --left) {
        std::string key = take_text(bytes);
        config::Value value = take_value(bytes, depth - 1);
        const bool is_new = std::none_of(map.begin(), map.end(), [&](const auto& entry) { return entry.first == key; });
        if (is_new) map.emplace_back(std::move(key), std::move(value));
      }
      return map;
    }
    default: return {};
  }
}

// None: it was refused, with a reason.
inline std::optional<format::Declaration> take_declaration(Bytes& bytes) {
  const config::Value tree = take_value(bytes);
  std::optional<format::Declaration> declared;
  is_refused([&] { declared = config::read<format::Declaration>(tree, "format"); });
  return declared;
}

// A packet: how long it is, with how many bytes it begins, both of two bytes, and these; the others are 0.
inline Input take_packet(Bytes& bytes) {
  constexpr std::size_t kPacketBytesMax = 10'000;
  const std::size_t size = bytes.take_as<std::uint16_t>() % kPacketBytesMax;
  const auto given = bytes.take(bytes.take_as<std::uint16_t>());
  Input packet(std::max(size, given.size()));
  std::copy(given.begin(), given.end(), packet.bytes().begin());
  return packet;
}

}  // namespace nanet::fuzz
