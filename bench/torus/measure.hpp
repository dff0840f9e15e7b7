// SPDX-License-Identifier: Apache-2.0
// What nanet bench torus and nanet torus measure, in cycles of the RTL; docs/design/torus.md says how.
//
// Thread rules: one thread calls.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/torus/rdma_torus.hpp"
#include "model/torus/torus.hpp"

namespace nanet::bench {

struct Run {
  torus::Settings settings;
  torus::Load load;
  std::uint64_t warmup_cycles = 3000, window_cycles = 6000;
  std::uint64_t drain_cycles = 20'000;  // after the window, in which packets that were born in it may still come while others are sent
};

struct Point {
  Run run;
  double accepted = 0, accepted_worst_node = 0;  // words a node and cycle that came in the window
  double mean_hops = 0;
  torus::Latencies latencies;  // of packets that were born in the window
  std::uint64_t born = 0;      // in the window
  torus::Books books;
  std::vector<std::array<double, torus::kLinks>> link_words;  // of each node, words a cycle that each link sent in the window
  std::vector<std::string> problems;
  std::uint64_t node_cycles = 0;
  double wall_s = 0;
  bool is_saturated() const;  // sources outrun the torus
};

Point measure_point(const Run& run);

// A cable that is cut under load, in mid-packet as it happens, and comes back.
struct Fault {
  std::uint32_t node = 0;
  std::size_t port = 0;
  std::uint64_t silent_cycles = 0;  // until both ends knew, from the first cycle in which nothing could come
  std::uint64_t packets_after = 0;  // good ones over the cable, both directions, after it was back
  std::uint64_t false_alarms = 0;   // of all other links
  torus::Books books;
  std::vector<std::string> problems;
};

Fault measure_fault(const Run& run, std::size_t port);

// A way through a router that packets took, from one virtual channel of a link to one of another: 2 * port + vc.
struct Way {
  std::uint32_t node;
  std::size_t from, to;
};

struct Ways {
  std::vector<Way> ways;
  torus::Books books;
  std::vector<std::string> problems;
};

// Under the run's load, for its warm-up and window.
Ways measure_ways(const Run& run);

struct LinkEfficiency {
  std::uint32_t payload_bytes;
  std::uint64_t packets = 0, cycles = 0;  // between the last words of the first and the last packet
  double efficiency = 0;                  // payload words a cycle
};

struct Hops {
  std::array<std::uint64_t, torus::kLinks> min{}, max{};  // cycles through router and link, by the port that sends
  std::uint64_t router_cycles = 0;                        // from a local port to itself, with the register before it
  std::uint64_t packets = 0;
};

struct LinkReport {
  std::uint32_t wire_cycles;
  std::vector<LinkEfficiency> efficiencies;
  Hops hops;
  std::vector<std::string> problems;
};

// wire_cycles: each way, of the efficiencies.
LinkReport measure_link(std::uint32_t wire_cycles);

// Small PUTs between neighbours, one at a time, from host to host: from the cycle in which a job is handed to the RTL to the last word of its completion in memory.
struct PutReport {
  std::uint32_t bytes = 16, wire_cycles;
  std::uint32_t host_read_cycles = torus::kReadCycles;  // in `min` and `max`, once; it is the host's
  std::uint64_t puts = 0, min = 0, max = 0;             // cycles, wire and host included
  std::vector<std::string> problems;
};

PutReport measure_put(std::uint32_t wire_cycles);

}  // namespace nanet::bench
