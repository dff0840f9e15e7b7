// SPDX-License-Identifier: Apache-2.0
// What bench_gateware measured, as tables for a person or one JSON object (docs/json.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "conditions.hpp"
#include "measure.hpp"
#include "node.hpp"
#include "router.hpp"

namespace nanet::bench {

struct Case {
  std::size_t payload_bytes;  // the longest
  std::uint32_t packets_per_buffer;
  Measured measured;
};

struct Report {
  gateware::Line line;
  gateware::HostTiming host;      // of the modelled host
  std::vector<Case> cases{};      // every frame size by every buffer, the host ready at once
  std::vector<Case> long_runs{};  // the same, of many packets
  std::vector<Case> mixed{};      // the same, one run with every size at random
  std::vector<Case> with_host{};  // never mixed with the others
  std::vector<Condition> conditions{};
  std::vector<RouterMeasured> router{};
  std::vector<NodeMeasured> node{};   // the first: an event a packet, the others as many as fit
  double cycles_per_wall_second = 0;  // of the NIC with its harness, the host ready at once

  std::uint64_t compared_packets() const;  // each whole, of all runs
  std::uint64_t wrong_packets() const;
  std::vector<std::string> problems() const;  // packets that are not what was sent, and bounds that were passed, in words

  // function(Measured), in the order of the report.
  template <class Function>
  void for_each_run(Function&& function) const {
    for (const auto* all : {&cases, &long_runs, &mixed, &with_host}) {
      for (const Case& one : *all) function(one.measured);
    }
    for (const Condition& one : conditions) function(one.measured);
  }
};

// Each frame size and lane of a run by itself: function(payload bytes, start lane, Latencies).
template <class Function>
void for_each_size(const Case& one, Function&& function) {
  const Compared& compared = one.measured.compared;
  const auto of = [&](std::size_t bytes, const std::array<Latencies, 2>& lanes) {
    for (unsigned lane = 0; lane < 2; ++lane) {
      if (lanes[lane].last_to_write.count() != 0) function(bytes, 4 * lane, lanes[lane]);
    }
  };
  if (compared.by_size.empty()) of(one.payload_bytes, compared.latencies);
  for (const auto& [bytes, lanes] : compared.by_size) of(bytes, lanes);
}

void print_tables(const Report& report);
void print_json(const Report& report);

}  // namespace nanet::bench
