// SPDX-License-Identifier: Apache-2.0
// The node with four ports, each at line rate with MGP packets of 1168 B of one board, merged into one stream of M2EGP: how much of it leaves as whole events,
// and how long the last part of an event takes to memory. Every event that comes is compared with what was sent.
//
// Thread rules: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace nanet::bench {

struct NodeLoad {
  std::size_t events_per_packet;  // of each board, 1 to 16
  std::size_t hits_per_part;      // 0 to 32
  std::uint32_t flush_cycles;     // after which a packet of merged events leaves

  // The most cycles from an event's last part to the last word written, as docs/design/gateware-node.md adds them up. None: more leaves than the bus takes, and
  // events are lost.
  std::optional<std::uint64_t> bound_cycles() const;
};

// Of an event: from the cycle in which the last byte of the last frame with a part of it stood on the wire, to the one in which the bus took the last word of
// the packet that it is in.
struct CycleRange {
  std::uint64_t min, max;
  std::uint64_t spread() const { return max - min; }
};

struct NodeMeasured {
  NodeLoad load{};
  std::uint64_t packets = 0;                          // sent by each board
  std::uint64_t events = 0;                           // sent
  std::uint64_t whole_events = 0;                     // came, with every hit of every part
  double in_gbit_per_s = 0;                           // on the wires, preamble and gap included
  double merged_gbit_per_s = 0;                       // of these, those whose events came whole
  double out_gbit_per_s = 0;                          // of M2EGP into memory
  std::optional<CycleRange> last_part_to_last_write;  // if no event was lost
  std::uint64_t cycles = 0;                           // simulated
  double wall_s = 0;                                  // in which they were
};

// packets: of each board. Throws std::runtime_error when events are not what was sent, or take longer than their bound, or are lost where there is one, or the
// node touches memory that it may not.
NodeMeasured measure_node(const NodeLoad& load, std::uint64_t packets);

// An event a packet, and 16 of few, of many and of the most hits.
std::vector<NodeMeasured> measure_node(std::uint64_t packets);

}  // namespace nanet::bench
