// SPDX-License-Identifier: Apache-2.0
#include "link/xdp/interface.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "link/socket.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

using AddressOf = std::pair<std::string, IpAddress>;  // interface, its address

std::vector<AddressOf> all_addresses() {
  ifaddrs* list = nullptr;
  std::vector<AddressOf> result;
  if (::getifaddrs(&list) != 0) return result;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, &::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress address;
    std::memcpy(address.data(), entry->ifa_addr, family == AF_INET ? sizeof address.v4 : sizeof address.v6);
    result.emplace_back(entry->ifa_name, address.endpoint().address);
  }
  return result;
}

ifreq request_for(const std::string& name) {
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), std::min(name.size(), sizeof request.ifr_name - 1));
  return request;
}

}  // namespace

Interface find_interface(const std::string& name, const IpAddress& address, const std::string& link_name) {
  const std::vector<AddressOf> addresses = all_addresses();
  Interface found;
  found.name = name;
  if (name.empty()) {
    const auto match = std::find_if(addresses.begin(), addresses.end(), [&](const AddressOf& a) { return a.second == address; });
    if (match == addresses.end()) {
      throw SetupError("link " + link_name + " does not know its interface", "no interface has the address to listen on",
                       "name one in `interface`, or give one the address: ip addr add ADDRESS/24 dev NAME");
    }
    found.name = match->first.substr(0, match->first.find(':'));  // "eth0:1" is a label of eth0
  }
  found.index = static_cast<int>(::if_nametoindex(found.name.c_str()));
  const Socket socket;
  ifreq request = request_for(found.name);
  if (found.index == 0 || ::ioctl(socket.fd(), SIOCGIFMTU, &request) != 0) {
    throw SetupError("link " + link_name + " cannot use interface " + found.name, std::strerror(errno),
                     "see `ip link` for the names there are");
  }
  found.mtu = static_cast<std::uint32_t>(request.ifr_mtu);
  if (::ioctl(socket.fd(), SIOCGIFFLAGS, &request) == 0) found.is_up = (request.ifr_flags & IFF_UP) != 0;
  if (::ioctl(socket.fd(), SIOCGIFHWADDR, &request) == 0)
    std::memcpy(found.mac.data(), request.ifr_hwaddr.sa_data, found.mac.size());
  found.queue_count = std::max(1u, queue_count_of(found.name));  // a driver that does not tell has one
  for (const AddressOf& one : addresses) {
    if (one.first == found.name || one.first.starts_with(found.name + ":")) found.addresses.push_back(one.second);
  }
  return found;
}

std::uint32_t queue_count_of(const std::string& name) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  ifreq request = request_for(name);
  request.ifr_data = reinterpret_cast<char*>(&channels);
  const int result = ::ioctl(fd, SIOCETHTOOL, &request);
  ::close(fd);
  return result == 0 ? channels.rx_count + channels.combined_count : 0;
}

}  // namespace nanet::link
