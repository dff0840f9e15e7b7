// SPDX-License-Identifier: Apache-2.0
// The sending half of the AF_XDP link: whole frames, headers and all, into the ring of one queue.
//
// Thread rules: one thread sends; add_stats() from any.
#pragma once

#include <span>
#include <vector>

#include "link/socket.hpp"
#include "link/udp_template.hpp"
#include "link/xdp/neighbours.hpp"
#include "link/xdp/queue.hpp"
#include "nanet/link/link.hpp"

namespace nanet::link {

class XdpSender {
 public:
  // The queue outlives this object. source_address any: what the kernel would take.
  XdpSender(const XdpConfig& config, const Interface& interface, const IpAddress& source_address, std::uint16_t source_port,
            Queue& queue);

  void send(std::span<const TxPacket> packets);
  void add_stats(LinkStats& stats) const;
  std::vector<std::string> unknown() const { return neighbours_.unknown(); }

 private:
  static constexpr std::uint32_t kWaits = 4;  // of one call, together tx_wait_us

  // Packets of this call.
  struct Call {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    std::uint64_t dropped = 0;
    std::uint32_t waits_left = kWaits;
  };

  bool put(const TxPacket& packet, Call& call);
  bool make_room(std::uint32_t frames, Call& call);
  void write_descriptor(std::uint64_t address, std::uint32_t bytes, std::uint32_t options);
  void flush(Call& call);
  enum class Kick : std::uint8_t { moved, stuck, hopeless };
  Kick kick();
  void reclaim();
  bool is_taken() const;

  Queue& queue_;
  Neighbours neighbours_;
  std::vector<UdpTemplate> templates_;  // a destination
  std::uint64_t wait_ns_;
  std::uint32_t payload_bytes_max_;
  std::vector<std::uint64_t> free_;  // frames, their addresses; a stack: the last one used is still in the cache
  std::uint32_t unsubmitted_ = 0;    // descriptors written, not shown to the kernel
  std::uint64_t refused_ = 0;        // packets that the device took and dropped, not yet in the books

  alignas(64) Tally packets_;
  Tally bytes_, calls_, dropped_;
};

}  // namespace nanet::link
