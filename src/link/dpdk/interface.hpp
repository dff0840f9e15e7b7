// SPDX-License-Identifier: Apache-2.0
// The text that names a device to DPDK, and the device's kernel network interface if it has one: drivers say little about that.
//
// Thread rules: any thread; system calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "link/udp_frame.hpp"

namespace nanet::link::dpdk {

// "net_af_packet0,iface=eth1"
struct DeviceText {
  std::string name;       // "net_af_packet0"
  std::string arguments;  // "iface=eth1"

  std::string text() const { return arguments.empty() ? name : name + "," + arguments; }
  std::optional<std::string> argument(std::string_view key) const;
  void add_argument(const std::string& key, const std::string& value);
  bool is(std::string_view driver) const { return name.starts_with(driver); }
  bool is_pci() const;
};

DeviceText parse_device(const std::string& text);

struct Interface {
  int index = 0;
  std::uint32_t mtu_bytes = 0;
  bool up = false;       // switched on
  bool carrier = false;  // the other end is there
};

// Nothing: this network namespace has no such interface.
std::optional<Interface> find_interface(const std::string& name);

// Of the calling thread. capability: CAP_NET_RAW, ...
bool has_capability(int capability);

// True: the file is a pcap recording of IPv4 packets without Ethernet headers.
bool holds_raw_ip(const std::string& pcap_path);

// Lets a kernel's interface hear an Ethernet multicast group, for as long as this lives, through a packet socket that itself receives nothing.
class EthernetGroup {
 public:
  EthernetGroup() = default;
  ~EthernetGroup();
  EthernetGroup(const EthernetGroup&) = delete;
  EthernetGroup& operator=(const EthernetGroup&) = delete;

  bool join(int interface_index, const MacAddress& group);

 private:
  int fd_ = -1;
};

// The driver for packet sockets does not say what the kernel dropped because its ring was full, the kernel does: it is asked through the
// driver's own sockets. Each reading clears the kernel's count, so that a driver which asks too takes nothing away that is not in its own count.
class PacketSocketDrops {
 public:
  // Sockets that this process has at this moment and which are not ours to ask.
  PacketSocketDrops();
  // Takes those that came since and are bound to the interface.
  void take_new(int interface_index);
  // Since the start. Not from two threads at once.
  std::uint64_t total();

 private:
  std::vector<int> known_;
  std::vector<int> sockets_;  // the driver's: closed by it, in the end
  std::uint64_t total_ = 0;
};

}  // namespace nanet::link::dpdk
