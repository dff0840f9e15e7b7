// SPDX-License-Identifier: Apache-2.0
// 8b/10b in words of two symbols, as a KM3NeT link has them: 20 bits, the first on the wire lowest, byte 0 first.
//
// Of the control symbols K28.5, K27.7 and K29.7 alone. Thread rules: one thread for each object.
#pragma once

#include <cstdint>
#include <optional>

namespace nanet::gateware {

inline constexpr std::uint8_t kK28_5 = 0xBC, kK27_7 = 0xFB, kK29_7 = 0xFD;

// Bits 0 and 1 of control: the low and the high byte are control symbols.
struct LinkWord {
  std::uint16_t data = 0;
  std::uint8_t control = 0;

  bool operator==(const LinkWord&) const = default;
};

class Encoder8b10b {
 public:
  std::uint32_t encode(LinkWord word);

 private:
  std::uint32_t encode_symbol(std::uint8_t byte, bool is_control);
  bool is_plus_ = false;  // the running disparity
};

// Nothing: one of the two is no symbol. The disparity is not looked at.
std::optional<LinkWord> decode_8b10b(std::uint32_t bits);

}  // namespace nanet::gateware
