// SPDX-License-Identifier: Apache-2.0
// What a node has beside a NIC (gateware/registers/node.rdl): its ports' addresses and match tables, the merging of events, and what they count. The
// host's port is NicDriver's.
//
// Thread rules: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "link/gateware/device.hpp"
#include "link/gateware/nic_driver.hpp"
#include "nanet/link/link.hpp"

namespace nanet::link::gateware {

// Where the payloads of a match entry go.
enum class Route : std::uint8_t { host = 0, events = 1 };

// A field that is not set is one with which nothing is dropped as long as every part comes.
struct MergeSettings {
  std::uint32_t links = 0xF;                    // a bit for each that is waited for
  std::uint32_t window_cycles = 0xFFFF'FFFF;    // so long an event waits for its parts
  std::uint32_t lapse_cycles = 0;               // so long without an event, and any time is good; 0: never
  std::uint64_t jump = std::uint64_t{1} << 39;  // 1/256 of a timestamp
  std::uint32_t flush_cycles = 100;             // after its first event a packet leaves
  bool complete_only = false;
  std::uint8_t source_id = 0, source_sub_id = 0;  // of the packets
  std::uint16_t source = 0;                       // PacketRef::source
  std::uint32_t clop = 0;
};

class Node {
 public:
  explicit Node(Device& device) : device_(device) {}

  std::uint32_t ports() const;
  std::uint32_t packet_bytes_max() const;  // of merged events

  void set_station(std::size_t port, std::uint64_t mac, std::uint32_t address);
  void set_match(std::size_t port, const Match& match, Route route);
  void set_merging(const MergeSettings& merging);
  void forget_time();  // what was sent last: any event's time is good next

  std::uint64_t markers() const;  // of runs, that came over any port

  // A group each of rx, reply, port and merge for every port, and host, events and node: as gateware/registers/counts.toml names them.
  std::vector<NicCounts> counts() const;

  // What the ports after the first and the merging have dropped. The first port and the host's are NicReceiver's.
  void add_stats(LinkStats& stats) const;

 private:
  std::uint64_t merge_count(std::uint32_t port, unsigned counter) const;

  Device& device_;
  MergeSettings merging_;
};

}  // namespace nanet::link::gateware
