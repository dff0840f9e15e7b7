// SPDX-License-Identifier: Apache-2.0
// The link over AF_XDP: packets of the configured ports come from the driver's queue without the kernel's network stack, on any NIC;
// everything else goes on to the kernel. docs/design/link-xdp.md.
//
// Optional: built where libxdp, libbpf and clang are found.
// Thread rules: those of Link.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nanet/link/endpoint.hpp"
#include "nanet/link/link.hpp"

namespace nanet::link {

enum class XdpZeroCopy : std::uint8_t { automatic, required, off };
enum class XdpAttach : std::uint8_t { automatic, driver, generic };  // where the program runs: in the driver, or behind it

struct XdpConfig {
  // Name of the link in messages and reports.
  std::string name = "xdp";

  // xdp://ADDRESS:PORT to receive on, an address of `interface`; none: this link only sends.
  std::optional<Endpoint> listen;

  // TxPacket::destination is an index into this list. Reached through `interface`, by the kernel's neighbour table.
  std::vector<Endpoint> destinations;

  // Network interface; empty: the one that has the address to listen on.
  std::string interface;

  // Queues of the interface to receive from; empty: all it has. Packets that the NIC puts into another queue go to the kernel.
  std::vector<std::uint32_t> queues;

  // Frames of each queue, a power of two; a half is for sending. Too few: rx_kernel_dropped at every pause. Too many: memory no cache holds.
  std::uint32_t frame_count = 8192;

  // Bytes, 1..9014: longest UDP payload expected. Above what fits a frame, one packet takes several (multi-buffer).
  std::uint32_t packet_bytes_max = 1472;

  XdpZeroCopy zero_copy = XdpZeroCopy::automatic;
  XdpAttach attach = XdpAttach::automatic;

  // Microseconds for which the kernel polls the NIC's queue in a receive call (SO_PREFER_BUSY_POLL); 0: off.
  std::uint32_t busy_poll_us = 0;

  bool huge_pages = true;  // for the frames
};

// Attaches the program, opens the sockets, allocates everything. Throws SetupError, also when nanet was built without AF_XDP.
std::unique_ptr<Link> open_xdp(const XdpConfig& config);

bool has_xdp();  // built in

}  // namespace nanet::link
