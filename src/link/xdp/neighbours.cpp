// SPDX-License-Identifier: Apache-2.0
#include "link/xdp/neighbours.hpp"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

constexpr std::uint64_t kAskEveryNs = 10'000'000'000;  // also keeps the kernel's entry, which no packet of its own uses
constexpr std::uint64_t kAskUnknownEveryNs = 1'000'000'000;
constexpr std::uint64_t kRestNs = 100'000'000;  // between two looks, however many changes the kernel reports

std::uint64_t pack(const MacAddress& mac) {
  std::uint64_t packed = 0;
  for (std::size_t i = 0; i < mac.size(); ++i) packed |= std::uint64_t{mac[i]} << (8 * i);
  return packed;
}

// A thread made while this lives takes no signal: they are for the program's own threads.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Neighbours::Neighbours(const std::vector<Endpoint>& destinations, const Interface& interface, const std::string& link_name)
    : interface_(interface),
      entries_(destinations.size()),
      changes_(RTMGRP_NEIGH | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE | RTMGRP_LINK),
      probe_(family_of(destinations.front().address)) {
  bind_to_interface(probe_, interface.name, link_name);
  for (std::size_t i = 0; i < destinations.size(); ++i) {
    Entry& entry = entries_[i];
    entry.address = destinations[i].address;
    entry.text = to_string(destinations[i]);
    const std::string problem = "link " + link_name + " cannot send to " + entry.text + " through " + interface.name;
    Route route;
    const int error = netlink_.find_route(entry.address, interface.index, route);
    if (error != 0) {
      throw SetupError(problem, error == EAFNOSUPPORT ? "its gateway has an address of the other family" : std::strerror(error),
                       "see `ip route get ADDRESS oif " + interface.name + "`");
    }
    if (route.type == RTN_LOCAL) {
      throw SetupError(problem, "the address is this machine's own: such packets never reach the interface",
                       "use udp:// for peers on the same machine, or network namespaces");
    }
    if (route.source.is_any()) {
      const bool is_ipv6 = entry.address.is_ipv6();
      throw SetupError(problem, std::string("the interface has no ") + (is_ipv6 ? "IPv6" : "IPv4") + " address",
                       std::string("ip addr add ADDRESS/") + (is_ipv6 ? "64" : "24") + " dev " + interface.name);
    }
    entry.source = route.source;
  }
  constexpr int kLooks = 100;
  constexpr std::uint64_t kLookEveryNs = 10'000'000;
  for (int look = 0; !refresh(netlink_) && look < kLooks; ++look) wait_for(-1, 0, kLookEveryNs);

  stop_fd_ = ::eventfd(0, EFD_CLOEXEC);
  if (stop_fd_ < 0) {
    throw SetupError("link " + link_name + " cannot watch its neighbours", std::strerror(errno),
                     "raise the limit of open files (ulimit -n)");
  }
  const NoSignals no_signals;
  thread_ = std::thread([this] { run(); });
}

Neighbours::~Neighbours() {
  const std::uint64_t one = 1;
  while (::write(stop_fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
  ::close(stop_fd_);
}

std::vector<std::string> Neighbours::unknown() const {
  std::vector<std::string> result;
  for (const Entry& entry : entries_) {
    if (entry.mac.load(std::memory_order_relaxed) == 0) result.push_back(entry.text);
  }
  return result;
}

void Neighbours::run() {
  ::pthread_setname_np(::pthread_self(), "nanet-neigh");
  bool all_known = false;
  for (;;) {
    const std::uint64_t patience_ns = all_known ? kAskEveryNs : kAskUnknownEveryNs;
    pollfd polls[2] = {{stop_fd_, POLLIN, 0}, {changes_.fd(), POLLIN, 0}};
    const timespec timeout{static_cast<time_t>(patience_ns / 1'000'000'000), static_cast<long>(patience_ns % 1'000'000'000)};
    ::ppoll(polls, 2, &timeout, nullptr);
    if (wait_for(stop_fd_, POLLIN, kRestNs)) return;
    changes_.drain();
    all_known = refresh(netlink_);
  }
}

// True: every destination has its address.
bool Neighbours::refresh(Netlink& netlink) {
  bool all_known = true;
  for (Entry& entry : entries_) all_known = refresh_one(netlink, entry) && all_known;
  return all_known;
}

bool Neighbours::refresh_one(Netlink& netlink, Entry& entry) {
  const auto learn = [&entry](const MacAddress& mac) {
    entry.mac.store(pack(mac) | kKnown, std::memory_order_relaxed);
    return true;
  };
  const bool was_known = entry.mac.load(std::memory_order_relaxed) != 0;
  Route route;
  if (netlink.find_route(entry.address, interface_.index, route) != 0)
    return was_known;  // the interface is down: what was known stays
  if (route.type == RTN_BROADCAST) return learn({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF});
  if (route.type == RTN_MULTICAST) return learn(multicast_mac(entry.address));
  Neighbour neighbour;
  const bool found = netlink.find_neighbour(route.next_hop, interface_.index, neighbour) == 0;
  if (!found || !neighbour.is_fresh) {
    if (netlink.ask_for_neighbour(route.next_hop, interface_.index) != 0 && !neighbour.is_known) {
      constexpr std::uint16_t kDiscardPort = 9;
      const SocketAddress to({"udp", route.next_hop, kDiscardPort});
      ::sendto(probe_.fd(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL, to.data(), to.bytes());
    }
  }
  return neighbour.is_known ? learn(neighbour.mac) : was_known;
}

}  // namespace nanet::link
