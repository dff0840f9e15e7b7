// SPDX-License-Identifier: Apache-2.0
// The sending half of the DPDK link: headers and payload into buffers of the device, bursts of them into its queue.
//
// Thread rules: one thread; add_stats(): any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device.hpp"
#include "link/tally.hpp"
#include "link/udp_template.hpp"
#include "nanet/link/link.hpp"
#include "neighbours.hpp"
#include "station.hpp"

namespace nanet::link::dpdk {

class Sender {
 public:
  // station: to be tended by this half, because no one receives; else null.
  Sender(Device& device, const Neighbours& neighbours, Station* station, const DpdkConfig& config);

  // packets given = tx_packets + tx_dropped, exactly.
  void send(std::span<const TxPacket> packets, std::uint64_t now_ns);
  void add_stats(LinkStats& stats) const;

 private:
  static constexpr std::uint32_t kBurst = 64;
  static constexpr std::uint16_t kSourcePort = 49'152;  // of a link that does not listen: the first that no one is given

  bool take_queue();
  void send_burst(std::span<const TxPacket> packets);
  void drop(std::span<const TxPacket> packets);
  void write_frame(rte_mbuf& frame, const TxPacket& packet);
  bool wait_a_little();

  Device& device_;
  const Neighbours& neighbours_;
  Station* station_;
  const std::uint64_t wait_cycles_;
  std::uint64_t waiting_since_ = 0;  // in this call of send(); 0: has not waited yet
  std::uint64_t next_drain_ns_ = 0;
  std::vector<UdpTemplate> templates_;  // of each destination

  Tally packets_, bytes_, calls_, dropped_;
};

}  // namespace nanet::link::dpdk
