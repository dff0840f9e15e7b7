// SPDX-License-Identifier: Apache-2.0
// The NIC under conditions that are not those of the tables: each with the bounds that it must keep, and what was measured.
//
// Thread rules: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure.hpp"

namespace nanet::bench {

// What may not be passed.
struct Bounds {
  std::uint64_t max_cycles = 31;    // from the last byte to the last write
  std::uint64_t spread_cycles = 0;  // of that, of packets of one size and start lane
  std::uint64_t lost_packets = 0;
  std::optional<double> tx_line_rate_fraction{};  // at least; none: nothing is sent
};

struct Condition {
  std::string name;  // in plain words
  std::vector<std::size_t> payload_bytes;
  std::uint32_t packets_per_buffer;
  Bounds bounds;
  Measured measured;
  std::uint64_t starts = 0, wrong_starts = 0;  // under traffic; 0: it is no condition of starts
  // last byte to last write, all lanes and sizes
  std::uint64_t min_cycles = 0, max_cycles = 0, spread_cycles = 0;

  std::vector<std::string> passed_bounds() const;  // each in words; empty: all are kept
};

// TX of one size: alone, beside reception at line rate of the same size into buffers of 16 packets and of 1.
struct TxRate {
  std::size_t payload_bytes;
  double alone, beside_16, beside_1;
};

std::vector<Condition> measure_conditions(std::uint64_t cycles, std::uint64_t starts, gateware::Line line);
std::vector<TxRate> tx_rates(const std::vector<Condition>& conditions);

}  // namespace nanet::bench
