// SPDX-License-Identifier: Apache-2.0
#include "interface.hpp"

#include <dirent.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

namespace nanet::link::dpdk {
namespace {

std::vector<int> packet_sockets() {
  std::vector<int> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  for (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr; entry != nullptr; entry = ::readdir(folder.get())) {
    const int fd = std::atoi(entry->d_name);
    int domain = 0;
    socklen_t length = sizeof domain;
    if (entry->d_name[0] != '.' && ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_PACKET) {
      found.push_back(fd);
    }
  }
  return found;
}

int interface_of(int packet_socket) {
  sockaddr_ll address{};
  socklen_t length = sizeof address;
  return ::getsockname(packet_socket, reinterpret_cast<sockaddr*>(&address), &length) == 0 ? address.sll_ifindex : 0;
}

}  // namespace

DeviceText parse_device(const std::string& text) {
  const std::size_t comma = text.find(',');
  return {text.substr(0, comma), comma == text.npos ? "" : text.substr(comma + 1)};
}

bool DeviceText::is_pci() const {
  // 0000:3b:00.0 or 3b:00.0
  return name.find(':') != name.npos && name.find_first_not_of("0123456789abcdefABCDEF:.") == name.npos;
}

std::optional<std::string> DeviceText::argument(std::string_view key) const {
  std::size_t at = 0;
  while (at < arguments.size()) {
    const std::size_t end = std::min(arguments.find(',', at), arguments.size());
    const std::string_view one = std::string_view(arguments).substr(at, end - at);
    if (one.starts_with(key) && one.substr(key.size()).starts_with('=')) return std::string(one.substr(key.size() + 1));
    at = end + 1;
  }
  return std::nullopt;
}

void DeviceText::add_argument(const std::string& key, const std::string& value) {
  if (!argument(key)) arguments += (arguments.empty() ? "" : ",") + key + "=" + value;
}

std::optional<Interface> find_interface(const std::string& name) {
  Interface found;
  found.index = static_cast<int>(::if_nametoindex(name.c_str()));
  if (found.index == 0) return std::nullopt;
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  if (::ioctl(fd, SIOCGIFMTU, &request) == 0) found.mtu_bytes = static_cast<std::uint32_t>(request.ifr_mtu);
  if (::ioctl(fd, SIOCGIFFLAGS, &request) == 0) {
    found.up = (request.ifr_flags & IFF_UP) != 0;
    found.carrier = (request.ifr_flags & IFF_RUNNING) != 0;
  }
  ethtool_value link{.cmd = ETHTOOL_GLINK, .data = 0};  // the flag above may be a second old
  request.ifr_data = reinterpret_cast<char*>(&link);
  if (::ioctl(fd, SIOCETHTOOL, &request) == 0) found.carrier = link.data != 0;
  ::close(fd);
  return found;
}

bool has_capability(int capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return true;  // not known: let the kernel refuse
  const auto bit = static_cast<unsigned>(capability);
  return (data[bit / 32].effective >> (bit % 32) & 1u) != 0;
}

bool holds_raw_ip(const std::string& pcap_path) {
  std::array<unsigned char, 24> head{};
  std::ifstream file(pcap_path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(head.data()), head.size())) return false;
  const bool little = head[0] != 0xA1;  // 0xA1B2C3D4 or 0xA1B23C4D
  const int link_type = little ? head[20] | head[21] << 8 : head[23] | head[22] << 8;
  return link_type == 101 || link_type == 228;
}

EthernetGroup::~EthernetGroup() {
  if (fd_ >= 0) ::close(fd_);
}

bool EthernetGroup::join(int interface_index, const MacAddress& group) {
  fd_ = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  packet_mreq member{.mr_ifindex = interface_index, .mr_type = PACKET_MR_MULTICAST, .mr_alen = 6, .mr_address = {}};
  std::copy(group.begin(), group.end(), std::begin(member.mr_address));
  return fd_ >= 0 && ::setsockopt(fd_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &member, sizeof member) == 0;
}

PacketSocketDrops::PacketSocketDrops() : known_(packet_sockets()) {}

void PacketSocketDrops::take_new(int interface_index) {
  for (const int fd : packet_sockets()) {
    if (std::find(known_.begin(), known_.end(), fd) == known_.end() && interface_of(fd) == interface_index) sockets_.push_back(fd);
  }
}

std::uint64_t PacketSocketDrops::total() {
  for (const int fd : sockets_) {
    tpacket_stats counts{};
    socklen_t length = sizeof counts;
    if (::getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &counts, &length) == 0) total_ += counts.tp_drops;
  }
  return total_;
}

}  // namespace nanet::link::dpdk
