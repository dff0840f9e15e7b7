// SPDX-License-Identifier: Apache-2.0
// Frames back to back at 10 Gb/s through the simulated NIC, and how many cycles each took.
//
// Times begin with the word in which a frame's start character is on XGMII (first byte), or the last byte of its check sequence (last byte). They end
// with the cycle in which the host's memory has the last word of its payload, or of the completion that hands it over: with a host that is ready at once,
// the cycle in which the bus takes that word. A frame that begins on lane 4 is half a word later on the wire, so lanes are kept apart.
//
// Thread rules: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "histogram.hpp"
#include "model/model.hpp"

namespace nanet::bench {

inline constexpr double kCyclesPerSecond = 156.25e6;
inline constexpr std::size_t kHeadersAndFcs = 46;       // of a frame: Ethernet, IPv4, UDP, check sequence
inline constexpr std::size_t kBetweenFramesBytes = 20;  // preamble and gap

struct Traffic {
  std::vector<std::size_t> frame_bytes;  // check sequence included; sent in this order, again and again
  std::uint32_t packets_per_buffer;
  std::uint64_t packets_max, cycles_max;  // it ends with the first that is reached
  gateware::HostTiming host{.write_cycles = 0};
};

struct Latencies {  // [cycles]
  Histogram first_to_write, last_to_write;
  Histogram first_to_completion, last_to_completion;  // of packets that ended a buffer
};

struct Measured {
  std::uint64_t sent = 0, stored = 0;                             // packets
  std::vector<std::pair<std::string_view, std::uint64_t>> drops;  // those that are not 0, by the name of counts.toml
  std::array<Latencies, 2> latencies;  // by start lane: 0, 4. Empty when a packet was lost: then it is not known whose a write is
  std::map<std::size_t, std::array<Latencies, 2>> by_size;  // the same by frame_bytes, for traffic of several sizes
  double wire_cycles = 0;                                   // that the frames take at 10 Gb/s, preamble and gap included
  double line_rate_fraction = 0;                            // what was stored of the frames that fit on the wire meanwhile
  std::uint64_t cycles = 0;                                 // simulated with the traffic, without setting up
  double wall_s = 0;                                        // in which they were

  std::uint64_t lost() const { return sent - stored; }
  double packets_per_s() const { return static_cast<double>(stored) / wire_cycles * kCyclesPerSecond; }
};

// Throws std::runtime_error when bytes, completions or counters are not as they must be.
Measured measure(const Traffic& traffic);

}  // namespace nanet::bench
