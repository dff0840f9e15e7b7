// SPDX-License-Identifier: Apache-2.0
// Random numbers that many small generators give: one for each slice, floor and purpose, so that any of them can be made again by itself.
//
// The generator is xoshiro256++ (Blackman and Vigna), filled by splitmix64 from a few words; the transforms are our own, since the standard's
// differ between libraries. They call log, sin and cos, whose last bit belongs to the C library.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>

namespace nanet::km3_emulate {

class Random {
 public:
  // The same words give the same numbers; words that differ anywhere give others.
  explicit Random(std::initializer_list<std::uint64_t> words) {
    std::uint64_t state = 0;
    for (const std::uint64_t word : words) {
      state += word;
      state = mixed(state);
    }
    for (std::uint64_t& part : state_) {
      state += 0x9E3779B97F4A7C15u;
      part = mixed(state);
    }
  }

  std::uint64_t bits() {
    const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }            // [0, 1)
  double positive() { return static_cast<double>((bits() >> 11) + 1) * 0x1p-53; }     // (0, 1]
  double between(double low, double high) { return low + (high - low) * uniform(); }  // [low, high)
  double exponential(double mean) { return -mean * std::log(positive()); }
  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>((bits() >> 32) * count >> 32); }
  bool chance(double probability) { return uniform() < probability; }

  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(positive()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

  // Exact for means up to some hundreds: how many exponential gaps fit.
  std::uint32_t poisson(double mean) {
    std::uint32_t count = 0;
    for (double sum = exponential(1.0); sum < mean; sum += exponential(1.0)) ++count;
    return count;
  }

 private:
  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  std::uint64_t state_[4];
};

}  // namespace nanet::km3_emulate
