// SPDX-License-Identifier: Apache-2.0
// Throughput and fairness of gateware/rtl/router.sv with 4 ports of 64 bit, counted in simulated cycles; every input always has a packet to send.
//
// Thread rules: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace nanet::bench {

inline constexpr std::size_t kRouterPorts = 4, kRouterWordBytes = 8;
inline constexpr double kRouterCyclesPerSecond = 156.25e6;

enum class Pattern : std::uint8_t {
  permutation,  // each input to an output of its own, another permutation every 256 packets
  one_output,   // all inputs to output 0
  random        // each packet to any output
};
inline constexpr std::array<std::string_view, 3> kPatternNames{"permutation", "one_output", "random"};

struct RouterLoad {
  std::string_view name;
  Pattern pattern;
  std::array<std::size_t, kRouterPorts> packet_bytes;  // by input
};

struct RouterMeasured {
  RouterLoad load;
  std::uint64_t cycles = 0;
  std::array<std::uint64_t, kRouterPorts> packets{}, bytes{};  // by input, as they came out
  double bytes_per_s() const;
  double of_full_rate() const;  // of all ports, or of the one output that is asked for
  double jain_index() const;    // of packets by input: 1 is equal shares, 1 / kRouterPorts one input alone
};

// Each load of the benchmark for so many cycles after the first hundred. Throws std::runtime_error when a packet is lost, mixed or goes astray.
std::vector<RouterMeasured> measure_router(std::uint64_t cycles);

}  // namespace nanet::bench
