// SPDX-License-Identifier: Apache-2.0
// Starts under traffic: frames stand on the wire back to back when the entries of the match table are enabled, at any moment of a frame, and again when
// they are disabled. What comes must be whole, and after the last entry was enabled nothing may be missing.
//
// Thread rules: one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "measure.hpp"

namespace nanet::bench {

struct Starts {
  std::uint64_t count = 0;
  std::uint64_t wrong = 0;  // starts after which a packet was wrong or missing, or the books did not balance
  Measured measured;        // all of them together; wrong packets count here, and missing ones as Compared::missing
};

Starts measure_starts(std::size_t payload_bytes, std::uint64_t count, gateware::Line line);

}  // namespace nanet::bench
