// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/udp.hpp"

#include "link/udp/udp_receiver.hpp"
#include "link/udp/udp_sender.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

void check_endpoint(const UdpConfig& config, const Endpoint& endpoint) {
  if (endpoint.scheme != "udp") {
    throw SetupError("link " + config.name + " cannot use " + to_string(endpoint), "scheme '" + endpoint.scheme + "' is not udp",
                     "write udp:// or choose the link that serves '" + endpoint.scheme + "'");
  }
}

void check_socket_bytes(const UdpConfig& config, const std::string& key, std::uint32_t bytes) {
  constexpr std::uint32_t kLimit = 1u << 30;  // twice as much is the largest number that the kernel takes
  if (bytes > kLimit) {
    throw SetupError("link " + config.name + " cannot have " + key + " = " + std::to_string(bytes),
                     "the kernel takes at most 1073741824", "lower " + key + "; 64 MiB is 50 ms at 10 Gb/s");
  }
}

void check(const UdpConfig& config) {
  constexpr std::uint32_t kPacketBytesLimit = 65'507;
  if (!config.listen && config.destinations.empty()) {
    throw SetupError("link " + config.name + " has nothing to do", "neither listen nor destinations is set",
                     "set at least one of them");
  }
  if (config.listen) {
    check_endpoint(config, *config.listen);
  }
  for (const Endpoint& destination : config.destinations) {
    check_endpoint(config, destination);
    if (destination.port == 0 || destination.address.is_any()) {
      throw SetupError("link " + config.name + " cannot send to " + to_string(destination),
                       "a destination needs an address and a port, not 0", "write both, as in udp://127.0.0.1:6200");
    }
    if (config.source_port == SourcePort::listen && config.listen &&
        config.listen->address.is_ipv6() != destination.address.is_ipv6()) {
      throw SetupError("link " + config.name + " cannot send to " + to_string(destination),
                       "it listens on " + to_string(*config.listen) + ", of another family, and sends from there",
                       "use IPv4, or IPv6, for both, or a socket of its own to send");
    }
    if (config.listen && *config.listen == destination && destination.address.is_multicast() && config.group_sending.loop) {
      throw SetupError("link " + config.name + " cannot send to " + to_string(destination),
                       "it listens there and would receive what it sends",
                       "set multicast_loop: false, or use another group or port");
    }
  }
  if (config.packet_bytes_max == 0 || config.packet_bytes_max > kPacketBytesLimit) {
    throw SetupError("link " + config.name + " cannot have packet_bytes_max = " + std::to_string(config.packet_bytes_max),
                     "a UDP packet has 1..65507 bytes", "use 1472, or 8972 with jumbo frames");
  }
  if (config.source_port == SourcePort::listen && !config.listen) {
    throw SetupError("link " + config.name + " cannot send from the port it listens on", "listen is not set",
                     "set listen, or source_port: own");
  }
  if (const auto broken = config.check()) {
    throw SetupError("link " + config.name + ": " + broken->problem, broken->why, broken->suggestion);
  }
  if (config.queues > 1 && (!config.listen || config.listen->address.is_multicast())) {
    throw SetupError("link " + config.name + " cannot have " + std::to_string(config.queues) + " queues",
                     config.listen ? "each socket of a group gets every packet" : "listen is not set", "set queues: 1");
  }
  check_socket_bytes(config, "rx_socket_bytes", config.rx_socket_bytes);
  check_socket_bytes(config, "tx_socket_bytes", config.tx_socket_bytes);
}

}  // namespace

UdpLink::UdpLink(const UdpConfig& config) : config_(config) {
  check(config_);
  if (config_.listen) {
    receiver_ = std::make_unique<UdpReceiver>(config_, setup_notes_);
  }
  if (!config_.destinations.empty()) {
    sender_ = std::make_unique<UdpSender>(config_, receiver_ ? &receiver_->socket() : nullptr, setup_notes_);
  }
}

UdpLink::~UdpLink() = default;

std::size_t UdpLink::min_room_bytes() const { return receiver_ ? receiver_->min_room_bytes() : 0; }

RxBatch UdpLink::receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t /*now_ns*/) {
  return receiver_ ? receiver_->receive(room, packets) : RxBatch{};
}

std::span<const IpAddress> UdpLink::peers() const { return receiver_ ? receiver_->peers() : std::span<const IpAddress>{}; }

void UdpLink::send(std::span<const TxPacket> packets, std::uint64_t /*now_ns*/) {
  if (sender_) {
    sender_->send(packets);
  } else {
    sent_to_nowhere_.fetch_add(packets.size(), std::memory_order_relaxed);
    tell_dropped(packets);
  }
}

void UdpLink::wait(std::uint64_t timeout_ns) {
  if (receiver_) {
    receiver_->wait(timeout_ns);
  } else {
    wait_for(-1, 0, timeout_ns);
  }
}

LinkStats UdpLink::stats() const {
  LinkStats stats;
  if (receiver_) {
    receiver_->add_stats(stats);
  }
  if (sender_) {
    sender_->add_stats(stats);
  }
  stats.tx_dropped += sent_to_nowhere_.load(std::memory_order_relaxed);
  return stats;
}

std::map<std::string, std::uint64_t> UdpLink::refusals() const {
  return sender_ ? sender_->refusals() : std::map<std::string, std::uint64_t>{};
}

std::optional<NicTimes> UdpLink::nic_times() const { return receiver_ ? receiver_->times() : std::nullopt; }

Endpoint UdpLink::local() const { return receiver_ ? receiver_->local() : Endpoint{.scheme = "udp"}; }

std::string UdpLink::path() const {
  const bool coalesced = receiver_ ? receiver_->coalesces() : config_.gso == Coalesce::on;
  return coalesced ? "UDP socket, coalesced" : "UDP socket, packet by packet";
}

std::vector<std::string> UdpLink::notes() const {
  std::vector<std::string> notes = setup_notes_;
  if (sender_) {
    sender_->add_notes(notes);
  }
  return notes;
}

}  // namespace nanet::link
