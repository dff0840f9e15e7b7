// SPDX-License-Identifier: Apache-2.0
// Configuration of the L0 trigger processor: its inputs, its alignment memory, its masks. Times are ticks of 97.46 ps.
//
// Bits of a primitive ID are numbered as on the wire. An input without a match shows 16 zero bits to the masks, which no
// primitive can be, as its top byte is never 0: a mask that cares for all 16 bits of an input and asks for 0 is a veto.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "nanet/wire/mtp.hpp"

namespace nanet::l0tp {

inline constexpr std::uint32_t kInputsMax = 7;
inline constexpr std::uint32_t kMasksMax = 16;
inline constexpr std::uint32_t kCellCount = 16384;
inline constexpr std::uint32_t kFineTimeBitsMax = 3;
inline constexpr std::uint32_t kTimeCutTicksMax = 511;  // what N-1, N and N+1 can hold of cells of 25 ns

struct InputConfig {
  std::uint8_t source_id = 0;         // of its MTP packets; any sub-ID
  std::uint32_t time_cut_ticks = 62;  // 0..511; largest distance from the reference. Too small: inefficient; too big: chance matches
};

// A mask matches when every bit that it cares for has its value.
struct MaskConfig {
  std::string name;
  std::array<std::uint16_t, kInputsMax> value{};  // 0 where care is 0
  std::array<std::uint16_t, kInputsMax> care{};
  std::uint32_t downscaling = 1;  // at least 1: fires at every n-th match, first at the n-th
  bool enabled = true;
};

struct Config {
  // 1 to 7. The default seven are those that tell most about a decay within a millisecond; reasons in docs/design/l0tp.md.
  std::vector<InputConfig> inputs = {{wire::kSourceRich}, {wire::kSourceChod}, {wire::kSourceNewChod}, {wire::kSourceMuv3},
                                     {wire::kSourceLav},  {wire::kSourceLkr},  {wire::kSourceCedar}};
  std::uint32_t reference_index = 0;      // of inputs: the one whose primitives are decided on
  std::uint32_t fine_time_bits = 2;       // b = 0..3: a cell is 256 >> b ticks. Too few: overwritten cells; too many: short memory
  std::uint64_t read_lag_ticks = 16'416;  // 1.6 us; up to half of the memory. Too small: late primitives; too big: latency
  std::uint64_t silence_ns = 500'000;     // without any packet for this long, all that waits is decided; 0: never
  std::vector<MaskConfig> masks;          // up to 16; mask i is bit i of the trigger word

  std::uint32_t cell_ticks() const { return 256u >> fine_time_bits; }
  std::uint64_t memory_ticks() const { return std::uint64_t{kCellCount} * cell_ticks(); }
};

// Throws SetupError.
void check(const Config& config);

}  // namespace nanet::l0tp
