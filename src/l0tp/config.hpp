// SPDX-License-Identifier: Apache-2.0
// Configuration of the L0 trigger processor: its inputs, its alignment memory, its masks.
//
// Bits of a primitive ID are numbered as on the wire. An input without a match shows 16 zero bits to the masks, which no
// primitive can be, as its top byte is never 0: a mask that cares for all 16 bits of an input and asks for 0 is a veto.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nanet/config/setting.hpp"
#include "nanet/wire/mtp.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::l0tp {

inline constexpr std::uint32_t kInputsMax = 7;
inline constexpr std::uint32_t kMasksMax = 16;
inline constexpr std::uint32_t kCellCount = 16384;
inline constexpr std::uint32_t kFineTimeBitsMax = 3;

struct InputConfig {
  static constexpr config::Component component{"Input", "One detector that sends primitives."};

  std::string name;
  std::uint8_t source_id = 0;
  double time_cut_ns = 6.0;

  template <class Visit>
  void visit(Visit&& v) {
    v("name", name, {.help = "Name in masks and reports", .form = "Name", .required = true});
    v("source_id", source_id,
      {.help = "Source ID in its MTP packets; any sub-ID is accepted", .least = 0, .most = 255, .required = true});
    v("time_cut_ns", time_cut_ns,
      {.help = "Largest distance in time from the reference; at most one cell",
       .unit = "ns",
       .least = 0,
       .most = 25,
       .too_small = "matches are missed: detectors know their times to 0.1 to 2 ns",
       .too_big = "accidental primitives match"});
  }

  std::uint32_t time_cut_ticks() const { return static_cast<std::uint32_t>(time_cut_ns / wire::kTickNs); }
};

// What a mask asks of the 16 bits of an input: those that it cares for have this value. value is 0 where care is 0.
struct BitPattern {
  std::uint16_t value = 0;
  std::uint16_t care = 0;
};

struct MaskConfig {
  static constexpr config::Component component{"Mask", "One trigger condition: what the primitives of the inputs must be."};

  std::string name;
  std::map<std::string, std::string> bits;  // by name of the input; `_` is a separator
  std::uint32_t downscaling = 1;
  bool enabled = true;

  template <class Visit>
  void visit(Visit&& v) {
    v("name", name, {.help = "Name in reports", .form = "Name", .required = true});
    v("bits", bits,
      {.help = "Bit pattern of the primitive ID for each input that matters: 16 characters 0, 1 or x, bit 15 first",
       .form = "Quoted"});
    v("downscaling", downscaling,
      {.help = "Fire at every n-th match only",
       .unit = "matches",
       .least = 1,
       .below = 0x1p32,
       .too_small = "a trigger rate that the readout cannot follow"});
    v("enabled", enabled, {.help = "Whether it can fire at all"});
  }

  // Patterns can be read.
  std::optional<config::Problem> check() const;

  // Cares for nothing if the mask does not name the input. Precondition: check() finds nothing.
  BitPattern pattern_of(const std::string& input) const;
};

// The default inputs are those that tell most about a decay within a millisecond; reasons in docs/design/l0tp.md.
struct Config {
  static constexpr config::Component component{"TriggerProcessor", "Aligns the primitives of its inputs and decides on them."};

  std::vector<InputConfig> inputs = {{"RICH", wire::kSourceRich},  {"CHOD", wire::kSourceChod}, {"NewCHOD", wire::kSourceNewChod},
                                     {"MUV3", wire::kSourceMuv3},  {"LAV", wire::kSourceLav},   {"LKr", wire::kSourceLkr},
                                     {"CEDAR", wire::kSourceCedar}};
  std::string reference = "RICH";
  std::uint32_t fine_time_bits = 2;
  double read_lag_us = 1.6;
  std::uint64_t silence_us = 500;
  std::vector<MaskConfig> masks;

  template <class Visit>
  void visit(Visit&& v) {
    v("inputs", inputs, {.help = "The detectors, in the order of the decision's bits", .length_least = 1, .length_most = kInputsMax});
    v("reference", reference,
      {.help = "Name of the input whose primitives are decided on; preferably the one with the best time resolution", .form = "Name"});
    v("fine_time_bits", fine_time_bits,
      {.help = "Cells of the alignment memory are 25 ns divided by 2 to this power",
       .unit = "bits",
       .least = 0,
       .most = kFineTimeBitsMax,
       .too_small = "primitives close in time overwrite each other",
       .too_big = "the memory's 16384 cells hold less time"});
    v("read_lag_us", read_lag_us,
      {.help = "A decision waits until the newest time received is this far ahead; at most half of the memory",
       .unit = "us",
       .least = 0,
       .most = 205,
       .too_small = "primitives of slower detectors arrive late",
       .too_big = "all of it adds to the latency of every decision"});
    v("silence_us", silence_us,
      {.help = "After this long without any packet, everything pending is decided; 0: never",
       .unit = "us",
       .least = 0,
       .most = 1'000'000,
       .too_small = "a short pause of all detectors makes their next primitives late",
       .too_big = "the last events of a spill wait"});
    v("masks", masks, {.help = "Trigger conditions; the i-th is bit i of the trigger word", .length_most = kMasksMax});
  }

  // Names are known, and each is there once; cuts are no longer than a cell, the lag no longer than half of the memory.
  std::optional<config::Problem> check() const;

  std::size_t reference_index() const;  // of inputs; how many there are if none has the name
  double cell_ns() const { return wire::kTimestampNs / (1u << fine_time_bits); }
  std::uint32_t cell_ticks() const { return 256u >> fine_time_bits; }
  std::uint64_t memory_ticks() const { return std::uint64_t{kCellCount} * cell_ticks(); }
  std::uint64_t read_lag_ticks() const { return static_cast<std::uint64_t>(std::llround(1000 * read_lag_us / wire::kTickNs)); }
};

}  // namespace nanet::l0tp
