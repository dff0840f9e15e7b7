// SPDX-License-Identifier: Apache-2.0
// A serial link in steps of half a bit: serialiser, fibre, deserialiser. What has a divider begins at any bit after a reset, and is moved by slides.
//
// Bit n of a fibre leaves at half bit `origin` + 2n and comes in `delay` later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

namespace nanet::gateware::km3 {

using HalfBits = std::uint64_t;
inline constexpr std::uint32_t kWordBits = 20;
inline constexpr HalfBits kWord = 2 * kWordBits;

class Fibre {
 public:
  Fibre(HalfBits origin, HalfBits delay) : origin_(origin), delay_(delay), bits_(ring_bits(delay)) {}

  HalfBits leaves(std::uint64_t bit) const { return origin_ + 2 * bit; }
  HalfBits arrives(std::uint64_t bit) const { return leaves(bit) + delay_; }
  std::uint64_t first_leaving_after(HalfBits now) const { return now < origin_ ? 0 : (now - origin_) / 2 + 1; }
  std::uint64_t first_arriving_after(HalfBits now) const { return now < arrives(0) ? 0 : (now - arrives(0)) / 2 + 1; }

  void write(std::uint64_t bit, bool value) {
    if (!lit) value = false;
    if (wrong_in != 0 && --wrong_in == 0) value = !value;
    bits_[bit & (bits_.size() - 1)] = value;
  }
  // Those from `bit` on, the first one lowest.
  std::uint32_t read(std::uint64_t bit, std::uint32_t count = kWordBits) const {
    std::uint32_t word = 0;
    for (std::uint32_t k = 0; k < count; ++k) word |= std::uint32_t{bits_[(bit + k) & (bits_.size() - 1)]} << k;
    return word;
  }

  bool lit = true;             // else cut
  std::uint64_t wrong_in = 0;  // the bit that is turned, counted from the next one; 0: none

 private:
  static std::size_t ring_bits(HalfBits delay) {
    std::size_t bits = 256;
    while (bits < delay / 2 + 128) bits *= 2;
    return bits;
  }
  HalfBits origin_, delay_;
  std::vector<std::uint8_t> bits_;
};

// Takes a word at each edge of its divider.
class Serialiser {
 public:
  explicit Serialiser(Fibre& fibre) : fibre_(fibre) {}

  HalfBits next_edge() const { return fibre_.leaves(next_); }
  void reset(HalfBits now, std::mt19937_64& random) {
    next_ = fibre_.first_leaving_after(now) + random() % kWordBits;
    slides_ = 0;
  }
  void slide() { ++slides_; }
  void take(std::uint32_t word, bool light) {
    for (std::uint32_t k = 0; k < kWordBits + slides_; ++k) fibre_.write(next_ + k, light && k < kWordBits && (word >> k & 1) != 0);
    next_ += kWordBits + slides_;
    slides_ = 0;
  }

 private:
  Fibre& fibre_;
  std::uint64_t next_ = 0;
  std::uint32_t slides_ = 0;
};

// What a receiver may do wrong between the bits and the logic: each lets the data through, and gives the latency of any value.
enum class Wrong : std::uint8_t {
  nothing,
  slides_in_logic,  // words are aligned by shifting them, the recovered clock is not moved
  elastic_buffer,   // words wait in a buffer that is as full as it happens to be
  any_byte_order,   // a comma in either byte is moved to byte 0 by exchanging the bytes
};

// Gives a word at each edge of its divider, whose edges are those of the recovered clock.
class Deserialiser {
 public:
  Deserialiser(const Fibre& fibre, Wrong wrong) : fibre_(fibre), wrong_(wrong) {}

  HalfBits next_edge() const { return fibre_.arrives(next_); }
  void reset(HalfBits now, std::mt19937_64& random) {
    next_ = fibre_.first_arriving_after(now) + kWordBits + random() % kWordBits;
    slides_ = shift_ = 0;
    waiting_.assign(1 + random() % 4, 0);
  }
  void slide() { ++slides_; }
  std::uint32_t give();

 private:
  const Fibre& fibre_;
  const Wrong wrong_;
  std::uint64_t next_ = 0;
  std::uint32_t slides_ = 0, shift_ = 0;
  std::deque<std::uint32_t> waiting_;
};

}  // namespace nanet::gateware::km3
