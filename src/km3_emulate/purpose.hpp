// SPDX-License-Identifier: Apache-2.0
// What random numbers are for: words for Random, so that no two parts get the same ones.
#pragma once

#include <cstdint>

namespace nanet::km3_emulate::purpose {

inline constexpr std::uint64_t tracks = 1;
inline constexpr std::uint64_t noise = 2;
inline constexpr std::uint64_t coincidences = 3;
inline constexpr std::uint64_t bursts = 4;
inline constexpr std::uint64_t sound = 5;
inline constexpr std::uint64_t sound_table = 6;
inline constexpr std::uint64_t instruments = 7;
inline constexpr std::uint64_t faults = 8;
inline constexpr std::uint64_t charges = 9;

}  // namespace nanet::km3_emulate::purpose
