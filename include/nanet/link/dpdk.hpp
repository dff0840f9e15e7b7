// SPDX-License-Identifier: Apache-2.0
// The link over DPDK: a poll-mode driver in this process moves the frames, without the kernel. docs/design/link-dpdk.md.
//
// Optional: built where libdpdk (22.11 or newer) is found. DPDK is set up once a process; all links of a process share that.
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

struct DpdkConfig {
  // Name of the link in messages and reports.
  std::string name = "dpdk";

  // dpdk://ADDRESS:PORT to receive on. The address is this link's own: it answers ARP for it, as no kernel does. None: this link only sends.
  std::optional<Endpoint> listen;

  // TxPacket::destination is an index into this list.
  std::vector<Endpoint> destinations;

  // What DPDK calls a device: "0000:3b:00.0", or a virtual one such as "net_af_packet0,iface=eth1".
  std::string device;

  // IPv4 with prefix length of the link's own address when it only sends, and of its network: "10.0.0.2/24". Empty: the address to listen on, /24.
  std::string address;

  // More arguments for DPDK's environment abstraction layer; those of the first link of a process count.
  std::vector<std::string> eal_arguments;

  bool huge_pages = false;           // without: ordinary memory of memory_mib
  std::uint32_t memory_mib = 256;    // for DPDK's pools
  std::uint32_t descriptors = 1024;  // of each of the device's two rings. Too few: rx_kernel_dropped at every pause.

  // Bytes, 1..9014: longest UDP payload expected.
  std::uint32_t packet_bytes_max = 1472;
};

// Throws SetupError, also when nanet was built without DPDK.
std::unique_ptr<Link> open_dpdk(const DpdkConfig& config);

bool has_dpdk();  // built in

}  // namespace nanet::link
