// SPDX-License-Identifier: Apache-2.0
// What bench_gateware measured, as tables for a person or one JSON object (docs/json.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "measure.hpp"
#include "node.hpp"
#include "router.hpp"

namespace nanet::bench {

struct Case {
  std::size_t frame_bytes;
  std::uint32_t packets_per_buffer;
  Measured measured;
};

struct Report {
  std::vector<Case> cases;      // every frame size by every buffer, the host ready at once
  std::vector<Case> long_runs;  // the same, of many packets
  std::vector<Case> mixed;      // the same, one run with every size at random
  gateware::HostTiming host;    // of the modelled host
  std::vector<Case> with_host;  // never mixed with the others
  std::vector<RouterMeasured> router;
  std::vector<NodeMeasured> node;     // the first: an event a packet, the others as many as fit
  double cycles_per_wall_second = 0;  // of the NIC with its harness, the host ready at once
};

void print_tables(const Report& report);
void print_json(const Report& report);

}  // namespace nanet::bench
