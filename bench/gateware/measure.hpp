// SPDX-License-Identifier: Apache-2.0
// Frames back to back through the simulated NIC, under conditions that a run chooses: how many came, how many cycles each took, whether each is whole.
// comparison.hpp says what is compared and what is timed. A frame that begins on lane 4 is half a word later on the wire, so lanes are kept apart.
//
// Thread rules: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "comparison.hpp"

namespace nanet::bench {

constexpr double cycles_per_s(gateware::Line line) { return 1e9 / gateware::ns_per_cycle(line); }

struct Traffic {
  std::vector<std::size_t> payload_bytes;  // of the packets, in this order again and again; empty: nothing is received
  std::uint32_t packets_per_buffer = 16;
  std::uint64_t packets_max, cycles_max;  // it ends with the first that is reached
  gateware::HostTiming host{.write_cycles = 0};
  gateware::Line line = gateware::Line::gbps_10;
  Hostile hostile = Hostile::none;  // every fourth frame
  std::uint32_t timeout_ns = 0;     // of a buffer; 0: none
  bool flushes = false;             // of a buffer, at random
  bool footers = false;
  std::size_t sent_payload_bytes = 0;  // by the TX ring, which is kept full; 0: nothing
  Damage damage = Damage::none;
};

struct Measured {
  std::uint64_t sent = 0;                                         // good packets, to the NIC
  std::vector<std::pair<std::string_view, std::uint64_t>> drops;  // frames, those counts that are not 0, by the name of counts.toml
  Compared compared;
  double wire_cycles = 0;            // that the frames take on the line, preamble and gap included
  double line_rate_fraction = 0;     // what was stored of the frames that fit on the wire meanwhile
  std::uint64_t tx_sent = 0;         // frames that left
  double tx_line_rate_fraction = 0;  // of the line while the ring was kept full
  std::uint64_t cycles = 0;          // simulated with the traffic, without setting up
  double wall_s = 0;                 // in which they were

  std::uint64_t lost() const { return sent - compared.packets; }
  double packets_per_s(gateware::Line line) const {
    return wire_cycles == 0 ? 0 : static_cast<double>(compared.packets) / wire_cycles * cycles_per_s(line);
  }
};

// Throws std::runtime_error when counters or accesses to memory are not as they must be; what is wrong in a packet is in Compared.
Measured measure(const Traffic& traffic);

}  // namespace nanet::bench
