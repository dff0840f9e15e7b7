// SPDX-License-Identifier: Apache-2.0
// A torus whose nodes have their hosts in other processes: memories, jobs, keys and completions are shared with them in a file (src/link/torus/torus_file.hpp).
// docs/design/torus.md
//
// Time stands still while nothing happens: a node that waits for something in cycles, such as its time-out for a message, waits until there is traffic again.
// Thread rules: one thread calls; those of RdmaTorus work within turn().
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "link/torus/torus_file.hpp"
#include "model/torus/rdma_torus.hpp"

namespace nanet::torus {

// Of PUTs: from the cycle in which a job was taken from its host to that in which its completion was made at the other end.
struct Flights {
  std::uint64_t count = 0, cycles_min = 0, cycles_max = 0, cycles_sum = 0;
  void add(std::uint64_t cycles);
};

class SharedTorus {
 public:
  // Throws SetupError for a file that cannot be, std::invalid_argument as RdmaTorus.
  SharedTorus(const Shape& shape, const std::string& path, std::uint32_t wire_cycles = 16, unsigned threads = 1);

  // What hosts have asked for since the last turn, then a few cycles of all nodes. False: nothing is going on, and no cycle was simulated.
  bool turn();

  RdmaTorus& torus() { return torus_; }
  const Flights& flights() const { return flights_; }

 private:
  struct Under {
    std::uint16_t process;
    std::uint64_t cycle;
  };
  // A node, and what of its host could not be handed on yet.
  struct Host {
    std::deque<Completion> waiting;
    std::uint64_t seen = 0;  // sum of all counters
  };

  bool take_from_hosts();
  bool give_to_hosts();
  bool give(std::uint32_t node);
  void count_flight(std::uint32_t to, const Completion& one);
  std::uint64_t publish_counts(std::uint32_t node);

  link::TorusFile file_;
  RdmaTorus torus_;
  std::vector<Host> hosts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Under>> under_way_;  // PUTs, by sender and receiver
  Flights flights_;
  std::uint32_t turn_cycles_;
  std::uint64_t quiet_cycles_, busy_until_ = 0;
  bool is_quiet_ = true;  // then registers are read once more, and time stands still
};

}  // namespace nanet::torus
