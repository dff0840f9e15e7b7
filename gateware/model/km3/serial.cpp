// SPDX-License-Identifier: Apache-2.0
#include "model/km3/serial.hpp"

namespace nanet::gateware::km3 {
namespace {

constexpr std::uint32_t kCommaAfterMinus = 0b01'0111'1100, kCommaAfterPlus = 0b10'1000'0011;  // K28.5, the first bit lowest

bool is_comma(std::uint32_t code) { return code == kCommaAfterMinus || code == kCommaAfterPlus; }

}  // namespace

std::uint32_t Deserialiser::give() {
  const std::uint64_t begin = next_ - kWordBits;
  next_ += kWordBits + slides_;
  slides_ = 0;
  const std::uint32_t step = wrong_ == Wrong::any_byte_order ? kWordBits / 2 : 1;
  if (wrong_ == Wrong::slides_in_logic || wrong_ == Wrong::any_byte_order) {
    // Of the word before: all of a comma in it has come.
    for (std::uint32_t place = 0; place < kWordBits; place += step) {
      if (is_comma(fibre_.read(begin - kWordBits + place, kWordBits / 2))) shift_ = place;
    }
    return fibre_.read(begin - kWordBits + shift_);
  }
  if (wrong_ == Wrong::elastic_buffer) {
    waiting_.push_back(fibre_.read(begin));
    const std::uint32_t word = waiting_.front();
    waiting_.pop_front();
    return word;
  }
  return fibre_.read(begin);
}

}  // namespace nanet::gateware::km3
