// SPDX-License-Identifier: Apache-2.0
#include "rdma/reach.hpp"

#include <ifaddrs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include "rdma/socket_address.hpp"

namespace nanet::rdma::detail {
namespace {

// Its segments have no name and are this account's alone. UCX's sysv lets the account's whole group in (mode 660), cma needs leave to trace processes.
constexpr const char* kOneMachine = "posix";
constexpr std::array<std::string_view, 3> kShared{"posix", "self", "shm"};
constexpr std::array<std::string_view, 4> kGpu{"cuda", "cuda_copy", "cuda_ipc", "gdr_copy"};

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

std::string first_line(const std::filesystem::path& file) {
  std::string line;
  std::ifstream opened(file);
  std::getline(opened, line);
  return line;
}

// Ports of RDMA devices that belong to an interface, "mlx5_0:1,mlx5_1:1".
std::string rdma_devices_of(const std::string& interface) {
  std::string found;
  std::error_code none;
  for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband", none)) {
    for (const auto& port : std::filesystem::directory_iterator(device.path() / "ports", none)) {
      bool belongs = false;
      for (const auto& gid : std::filesystem::directory_iterator(port.path() / "gid_attrs" / "ndevs", none))
        belongs = belongs || first_line(gid.path()) == interface;
      if (!belongs) continue;
      if (!found.empty()) found += ',';
      found.append(device.path().filename().string()).append(":").append(port.path().filename().string());
    }
  }
  return found;
}

// This machine's address from which the other is reached; itself if it is this machine's. Consults the routes, and sends nothing.
SocketAddress own_address_towards(const SocketAddress& to, const std::string& name) {
  SocketAddress own;
  own.bytes = sizeof own.storage;
  const int probe = ::socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  SocketAddress there = to;
  if (there.family() == AF_INET)
    reinterpret_cast<sockaddr_in&>(there.storage).sin_port = htons(9);
  else
    reinterpret_cast<sockaddr_in6&>(there.storage).sin6_port = htons(9);
  const bool is_known = probe >= 0 && ::connect(probe, there.get(), there.bytes) == 0 &&
                        ::getsockname(probe, own.get(), &own.bytes) == 0;
  if (probe >= 0) ::close(probe);
  if (!is_known) throw SetupError("no path to " + name, "this machine has no route to it", "see ip route get " + name);
  return own;
}

bool is_same_host(const sockaddr* one, const SocketAddress& other) {
  if (!one || one->sa_family != other.family()) return false;
  if (one->sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in*>(one)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(other.storage).sin_addr.s_addr;
  return IN6_ARE_ADDR_EQUAL(&reinterpret_cast<const sockaddr_in6*>(one)->sin6_addr,
                            &reinterpret_cast<const sockaddr_in6&>(other.storage).sin6_addr);
}

std::string interface_of(const SocketAddress& own, const std::string& name) {
  ifaddrs* all = nullptr;
  std::string found;
  if (getifaddrs(&all) == 0) {
    for (const ifaddrs* one = all; one; one = one->ifa_next)
      if (found.empty() && is_same_host(one->ifa_addr, own)) found = one->ifa_name;
    freeifaddrs(all);
  }
  if (found.empty())
    throw SetupError("no interface has the address that reaches " + name, "its network devices are not known", "see ip addr");
  return found;
}

std::string refused_tcp(const std::string& where) { return "UCX's TCP is not used at " + where; }

constexpr const char* kNoKeys = "it checks no keys: whoever reaches the interface has full control over this process";
constexpr const char* kTrustIt = "where that network is trusted, give --trust-network (trust_network: true)";

struct Names {
  std::string list;
  bool has_tcp = false, has_rdma = false;
};

// What was named, of what there may be.
Names named(const WorkerConfig& config, bool is_one_machine) {
  Names names;
  for (std::string& name : split(config.transports)) {
    const bool is_tcp = name == "tcp", is_hardware = is_rdma(name) || name.starts_with("ud");
    if (!is_tcp && !is_hardware && !is_one_of(name, kShared) && !is_one_of(name, kGpu))
      throw SetupError("transport '" + name + "' is not used", "there are posix, tcp, rc, dc, cuda and their longer names",
                       "name some of these, or none");
    if (is_hardware && is_one_machine)
      throw SetupError("transport '" + name + "' is not used at " + config.address, "RDMA hardware has no such address",
                       "give the address of its interface");
    if (is_tcp && !config.trust_network) throw SetupError(refused_tcp(config.address), kNoKeys, kTrustIt);
    if (name == "shm") name = kOneMachine;
    names.has_tcp = names.has_tcp || is_tcp;
    names.has_rdma = names.has_rdma || is_hardware;
    if (!names.list.empty()) names.list += ',';
    names.list += name;
    // UCX connects queue pairs of RC by messages over UD; its short names ("rc") say so themselves.
    if (name == "rc_verbs") names.list += ",ud_verbs:aux";
    if (name == "rc_mlx5") names.list += ",ud_mlx5:aux";
  }
  return names;
}

Names chosen(const WorkerConfig& config, bool is_one_machine, const std::string& rdma_devices) {
  const std::string gpu = ::access("/dev/nvidiactl", F_OK) == 0 ? ",cuda" : "";
  if (is_one_machine) return {.list = kOneMachine + gpu};
  // RDMA hardware does gets by itself only where nothing else is named.
  if (!rdma_devices.empty()) return {.list = "rc,dc", .has_rdma = true};
  if (!config.trust_network)
    throw SetupError("no RDMA hardware is at " + config.address, std::string("what is left is UCX's TCP, and ") + kNoKeys, kTrustIt);
  return {.list = std::string(kOneMachine) + ",tcp" + gpu, .has_tcp = true};
}

}  // namespace

bool is_rdma(std::string_view transport) { return transport.starts_with("rc") || transport.starts_with("dc"); }

Reach reach_of(const WorkerConfig& config, bool is_one_machine, const std::string& interface, const std::string& rdma_devices) {
  const Names names = config.transports.empty() ? chosen(config, is_one_machine, rdma_devices) : named(config, is_one_machine);
  if (names.has_rdma && rdma_devices.empty())
    throw SetupError("no RDMA hardware is at " + config.address, "no device of /sys/class/infiniband belongs to " + interface,
                     "give the address of one that has, see nanet rdma doctor");
  Reach reach{.transports = names.list, .is_one_machine = is_one_machine};
  if (names.has_rdma) reach.net_devices = rdma_devices;
  if (names.has_tcp) {
    if (names.has_rdma) reach.net_devices += ',';
    reach.net_devices += interface;
    reach.text = "whoever reaches interface " + interface + " has full control over this process: UCX's TCP checks no keys";
  } else if (names.has_rdma) {
    reach.text = "who proves the token, and no one else, gets a key, which the hardware checks (" + rdma_devices + ")";
  } else {
    reach.text =
        "processes of this account on this machine can map the region, and root, but no other account; no port of UCX is open";
  }
  return reach;
}

Reach reach_of(const WorkerConfig& config) {
  const SocketAddress address = resolve(config.address, 0, 0);
  if (is_any(address))
    throw SetupError("no worker is at " + config.address, "it stands for every interface of this machine",
                     "give the address of one");
  const bool here = is_one_machine(address);
  if (address.family() == AF_UNIX && config.trust_network && config.transports.find("tcp") != std::string::npos)
    throw SetupError(refused_tcp(config.address), "a path has no interface", "give 127.0.0.1, or other transports");
  if (here) return reach_of(config, true, "lo", "");
  const std::string interface = interface_of(own_address_towards(address, config.address), config.address);
  return reach_of(config, false, interface, rdma_devices_of(interface));
}

}  // namespace nanet::rdma::detail
