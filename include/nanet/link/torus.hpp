// SPDX-License-Identifier: Apache-2.0
// The link between the hosts of a simulated torus (gateware/model/torus): what one sends is put by remote DMA, over routers and links of RTL, into the memory of
// the node that another receives from. The simulation is a process of its own, `nanet torus serve`, and shares the nodes' memories as a file.
// docs/design/links.md
//
// For trying the RTL with all that comes before and after it, and slow. Not run on hardware: there is none.
//
// Packets given to send() = tx_packets + tx_dropped; nic_counts() says why those were dropped. Of what left, rx_packets at the receiver = tx_packets -
// rx_kernel_dropped - `held` of nic_counts(), which has landed and was not received - what has not come yet: each loss shows as a gap, and under its own name in
// the counters of the receiver's node.
//
// Layout of what receive() writes: each packet at the next multiple of 8 bytes, bytes_used rounded up to one. RxPacket::peer_port is the sender's node + 1,
// peer_address 0.
//
// Thread rules: those of Link, but receive, send, stats and nic_counts wait for each other. wait() sleeps 50 us at most.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nanet/config/setting.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/link.hpp"

namespace nanet::link {

// Keys that a node has whether it receives or only sends.
inline constexpr config::Setting kTorusFile{
    .help = "The torus: the file that its simulation, nanet torus serve, shares with the hosts of its nodes",
    .length_least = 1,
    .required = true};
inline constexpr config::Setting kTorusWait{
    .help =
        "How long one call may wait for a receiver that has no room; then what is sent to it is dropped, and counted, until "
        "it has some",
    .unit = "ms",
    .least = 0,
    .most = 60'000,
    .too_small = "packets are dropped while the simulation, which is slow, brings the credit",
    .too_big = "one receiver that stands still holds up the thread that sends"};

// The node that an engine's packets leave from where it receives nothing from the torus.
struct TorusFrom {
  static constexpr config::Component component{"TorusFrom", "The node of a simulated torus that packets leave from."};

  std::string file;
  std::uint32_t node = 0;
  std::uint32_t slot_count = 64;
  std::uint32_t wait_ms = 1000;

  template <class Visit>
  void visit(Visit&& v) {
    v("file", file, kTorusFile);
    v("node", node, {.help = "The node, which no link has", .least = 0, .most = 63, .required = true});
    v("slot_count", slot_count,
      {.help = "Packets that the node's memory has room for; a power of two",
       .unit = "packets",
       .least = 2,
       .most = 4096,
       .too_small = "the sender waits for each credit to come back",
       .too_big = "the node has 4 MB"});
    v("wait_ms", wait_ms, kTorusWait);
  }

  std::optional<config::Problem> check() const;
};

struct TorusConfig {
  static constexpr config::Component component{"Torus", "What a torus:// link needs: which torus, and which nodes may send here."};

  // Name of the link in messages and reports.
  std::string name = "torus";

  // torus://NODE, whose memory packets are received into and sent from.
  std::optional<Endpoint> listen;

  // TxPacket::destination is an index into this list; each torus://NODE, once.
  std::vector<Endpoint> destinations;

  // False: it only sends.
  bool receives = true;

  // Bytes, 1..65507: longest payload.
  std::uint32_t packet_bytes_max = 1472;

  std::string file;

  // Nodes. None: all others.
  std::vector<std::uint32_t> senders;

  std::uint32_t slot_count = 64;
  std::uint32_t wait_ms = 1000;

  template <class Visit>
  void visit(Visit&& v) {
    v("file", file, kTorusFile);
    v("senders", senders,
      {.help = "Nodes other than the link's own that may send here, each into slots of its own with a key of its own; none: all "
               "other nodes",
       .least = 0,
       .most = 63,
       .length_most = 16});
    v("slot_count", slot_count,
      {.help = "Payloads of each sender, and to each destination, that the node's memory has room for, each of the link's "
               "packet_bytes_max; a power of two",
       .unit = "payloads",
       .least = 2,
       .most = 4096,
       .too_small = "its sender waits for each credit to come back",
       .too_big = "the node has 4 MB"});
    v("wait_ms", wait_ms, kTorusWait);
  }

  std::optional<config::Problem> check() const;
};

// Of a link that only sends, packets of so many bytes at most.
TorusConfig torus_sender(const TorusFrom& from, const std::string& name, const std::vector<Endpoint>& destinations,
                         std::uint32_t packet_bytes_max);

// Throws SetupError: no such torus, no such node, or one that another link has.
std::unique_ptr<Link> open_torus(const TorusConfig& config);

}  // namespace nanet::link
