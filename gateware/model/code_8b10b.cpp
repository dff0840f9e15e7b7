// SPDX-License-Identifier: Apache-2.0
#include "model/code_8b10b.hpp"

#include <array>
#include <bit>
#include <cstddef>

namespace nanet::gateware {
namespace {

// As the standard's tables have them, the left bit first on the wire, after minus. After plus a part that is not balanced is turned over, and so are D.7's
// and D.x.3's.
constexpr std::array<std::uint8_t, 32> kSix{0b100111, 0b011101, 0b101101, 0b110001, 0b110101, 0b101001, 0b011001, 0b111000,
                                            0b111001, 0b100101, 0b010101, 0b110100, 0b001101, 0b101100, 0b011100, 0b010111,
                                            0b011011, 0b100011, 0b010011, 0b110010, 0b001011, 0b101010, 0b011010, 0b111010,
                                            0b110011, 0b100110, 0b010110, 0b110110, 0b001110, 0b101110, 0b011110, 0b101011};
constexpr std::array<std::uint8_t, 8> kFour{0b1011, 0b1001, 0b0101, 0b1100, 0b1101, 0b1010, 0b0110, 0b1110};
constexpr std::uint8_t kOther7 = 0b0111;  // where D.x.7 would make five bits in a row the same
// Control symbols after minus; after plus each is turned over.
constexpr std::uint16_t kK28_5Minus = 0b00'1111'1010, kK27_7Minus = 0b11'0110'1000, kK29_7Minus = 0b10'1110'1000;
constexpr std::uint32_t kSymbolBits = 10, kSymbolMask = 0x3FF;  // of a word

struct Code {
  std::uint16_t bits;  // the first on the wire highest
  bool is_plus;        // the disparity after it
};

// A part of `width` bits for this disparity, which it moves on. turns: it is turned over though it is balanced.
std::uint32_t part(std::uint32_t bits, unsigned width, bool turns, bool& is_plus) {
  const unsigned ones = static_cast<unsigned>(std::popcount(bits));
  const bool is_balanced = 2 * ones == width;
  if (is_plus && (turns || !is_balanced)) bits ^= (1U << width) - 1;
  if (!is_balanced) is_plus = !is_plus;
  return bits;
}

Code data_code(std::uint8_t byte, bool is_plus) {
  const unsigned x = byte & 31U, y = byte >> 5U;
  const std::uint32_t six = part(kSix[x], 6, x == 7, is_plus);
  const bool is_other = y == 7 && (is_plus ? x == 11 || x == 13 || x == 14 : x == 17 || x == 18 || x == 20);
  const std::uint32_t four = part(is_other ? kOther7 : kFour[y], 4, y == 3, is_plus);
  return {static_cast<std::uint16_t>(six << 4U | four), is_plus};
}

Code control_code(std::uint8_t byte, bool is_plus) {
  const std::uint16_t minus = byte == kK27_7 ? kK27_7Minus : byte == kK29_7 ? kK29_7Minus : kK28_5Minus;
  const bool is_balanced = byte != kK28_5;  // which has six ones after minus, four after plus
  return {static_cast<std::uint16_t>(is_plus ? minus ^ kSymbolMask : minus), is_plus == is_balanced};
}

std::uint32_t turned(std::uint32_t bits) {  // the first on the wire lowest
  std::uint32_t out = 0;
  for (std::uint32_t k = 0; k < kSymbolBits; ++k) out |= (bits >> k & 1U) << (kSymbolBits - 1 - k);
  return out;
}

struct Tables {
  std::array<std::array<Code, 256>, 2> codes{};  // of each disparity; bits as on a word
  std::array<std::int16_t, 1024> symbols{};      // of each code its byte, 256 more for a control symbol, -1: none

  Tables() {
    symbols.fill(-1);
    for (const bool is_plus : {false, true}) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        Code& code = codes[is_plus ? 1 : 0][byte] = data_code(static_cast<std::uint8_t>(byte), is_plus);
        code.bits = static_cast<std::uint16_t>(turned(code.bits));
        symbols[code.bits] = static_cast<std::int16_t>(byte);
      }
      for (const std::uint8_t byte : {kK28_5, kK27_7, kK29_7}) {
        symbols[turned(control_code(byte, is_plus).bits)] = static_cast<std::int16_t>(256 + byte);
      }
    }
  }
};

const Tables& tables() {
  static const Tables kTables;
  return kTables;
}

}  // namespace

std::uint32_t Encoder8b10b::encode_symbol(std::uint8_t byte, bool is_control) {
  if (is_control) {
    const Code code = control_code(byte, is_plus_);
    is_plus_ = code.is_plus;
    return turned(code.bits);
  }
  const Code code = tables().codes[is_plus_ ? 1 : 0][byte];
  is_plus_ = code.is_plus;
  return code.bits;
}

std::uint32_t Encoder8b10b::encode(LinkWord word) {
  const std::uint32_t low = encode_symbol(static_cast<std::uint8_t>(word.data), (word.control & 1U) != 0);
  const std::uint32_t high = encode_symbol(static_cast<std::uint8_t>(word.data >> 8U), (word.control & 2U) != 0);
  return low | high << kSymbolBits;
}

std::optional<LinkWord> decode_8b10b(std::uint32_t bits) {
  const std::int16_t low = tables().symbols[bits & kSymbolMask], high = tables().symbols[bits >> kSymbolBits & kSymbolMask];
  if (low < 0 || high < 0) return std::nullopt;
  const auto control = static_cast<std::uint8_t>((low >= 256 ? 1U : 0U) | (high >= 256 ? 2U : 0U));
  return LinkWord{static_cast<std::uint16_t>((low & 0xFF) | (high & 0xFF) << 8), control};
}

}  // namespace nanet::gateware
