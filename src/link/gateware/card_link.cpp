// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/card_link.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include "link/gateware/ethernet_device.hpp"
#include "link/gateware/nic_counts.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

constexpr std::uint32_t kTxEntries = 64;
constexpr int kBuffersPerCall = 64;
constexpr int kRoomPolls = 10'000;  // each about a microsecond of a card: more than 64 of the longest packets take

// 4 MiB: with the ring's, less than the 8 MiB that many systems let a user lock.
const ClopConfig kClop{.buffer_bytes = 64 << 10, .buffer_count = 64, .packets_per_buffer = 64};

// "02:00:00:00:00:01" is 0x02'00'00'00'00'01; 0: it is no Ethernet address.
std::uint64_t mac_of(const std::string& text) {
  constexpr std::size_t kLength = 17;
  if (text.size() != kLength) return 0;
  std::uint64_t mac = 0;
  for (std::size_t at = 0; at < kLength; at += 3) {
    std::uint32_t byte = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + at + 2, byte, 16);
    if (error != std::errc{} || stop != text.data() + at + 2) return 0;
    mac = mac << 8 | byte;
  }
  return mac;
}

bool is_station(std::uint64_t mac) {
  constexpr std::uint64_t kGroup = std::uint64_t{1} << 40;
  return mac != 0 && (mac & kGroup) == 0;
}

const GatewareConfig& checked(const GatewareConfig& config) {
  const std::string link = "link " + config.name;
  if (!config.listen || config.listen->address.is_any() || config.listen->port == 0) {
    throw SetupError(link + " has no address of its own", "a card answers to one, and receives for one port",
                     "write its endpoint as gateware://ADDRESS:PORT");
  }
  refuse_ipv6(config.name, *config.listen);
  if (!is_station(mac_of(config.card->mac))) {
    throw SetupError(link + " has no usable mac", "a card's own Ethernet address is that of one station",
                     "set mac, such as 02:00:00:00:00:01");
  }
  if (!config.destinations.empty() && !is_station(mac_of(config.card->next_hop))) {
    throw SetupError(link + " cannot send", "the NIC answers ARP and does not ask, so it must be told to which station packets go",
                     "set next_hop to the Ethernet address of the receiver, or of the router to it");
  }
  const GatewareConfig simulated;
  if (config.cycles_per_call != simulated.cycles_per_call || config.seed != simulated.seed ||
      config.line_gbps != simulated.line_gbps) {
    throw SetupError(link + " has a card and settings of the simulation", "nothing is simulated with a card",
                     "leave cycles_per_call, seed and line_gbps as they are");
  }
  return config;
}

}  // namespace

CardLink::CardLink(std::unique_ptr<Device> device, const GatewareConfig& config)
    : config_(checked(config)),
      device_(std::move(device)),
      driver_(
          *device_,
          {.mac = mac_of(config.card->mac), .address = config.listen->address.ipv4(), .clops = {kClop}, .tx_entries = kTxEntries}),
      receiver_(driver_, config_),
      not_sent_before_(not_sent()) {
  set_destinations(driver_, config_, mac_of(config_.card->next_hop), config_.listen->port);
  driver_.set_match({.index = 0, .port = config_.listen->port});  // from any sender
  device_->read(0);  // now the NIC has all of it: no packet that comes from here on is missed
}

RxBatch CardLink::receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t) {
  RxBatch batch;
  for (int k = 0; k < kBuffersPerCall && receiver_.take_buffer(); ++k) {
    if (!receiver_.hand_on(batch, room, packets, {})) break;
  }
  receiver_.end_call(batch);
  return batch;
}

// Waits where the ring is full; but not again for a NIC that released nothing in all that time.
bool CardLink::has_room() {
  for (int polls = is_stuck_ ? kRoomPolls : 0;; ++polls) {
    while (driver_.poll_sent() != nullptr) is_stuck_ = false;
    if (driver_.under_way() != kTxEntries) return true;
    if (polls >= kRoomPolls) break;
    device_->poll();
  }
  is_stuck_ = true;
  return false;
}

void CardLink::send(std::span<const TxPacket> packets, std::uint64_t) {
  tx_calls_.add(1);
  for (const TxPacket& packet : packets) {
    if (can_send(driver_, config_, packet) && has_room() && driver_.send({packet.data, packet.bytes}, packet.destination, 0)) {
      tx_packets_.add(1);
      tx_bytes_.add(packet.bytes);
    } else {
      tx_dropped_.add(1);
      tell_dropped({&packet, 1});
    }
  }
}

void CardLink::wait(std::uint64_t timeout_ns) {
  if (!receiver_.has_buffer()) driver_.wait(timeout_ns);
}

std::uint64_t CardLink::not_sent() const {
  std::uint64_t total = 0;
  for (const unsigned counter : tx::kNotSent) total += driver_.tx_count(counter);
  return total;
}

LinkStats CardLink::stats() const {
  LinkStats stats;
  receiver_.add_stats(stats);
  const std::uint64_t sent = tx_packets_.value();
  const std::uint64_t lost = std::min(not_sent() - not_sent_before_, sent);  // one that is rung now may be lost before it is in `sent`
  stats.tx_calls = tx_calls_.value();
  stats.tx_packets = sent - lost;
  stats.tx_bytes = tx_bytes_.value();
  stats.tx_dropped = tx_dropped_.value() + lost;
  return stats;
}

std::optional<NicTimes> CardLink::nic_times() const {
  const std::lock_guard lock(times_mutex_);
  return receiver_.times("the card's");
}

std::string CardLink::path() const {
  const GatewareCard& card = *config_.card;
  return card.card.empty() ? "NIC on a board behind interface " + card.host_interface : "NIC on card " + card.card + " by VFIO";
}

std::vector<std::string> CardLink::notes() const {
  return {"link " + config_.name + " goes by code that was not run on hardware (its tests put the simulated NIC behind it)" +
          " compare its answers with those of a link over sockets"};
}

std::unique_ptr<Link> open_card(const GatewareConfig& config, Kernel& kernel) {
  const GatewareCard& card = *checked(config).card;
  std::unique_ptr<Device> device;
  if (card.card.empty()) {
    device = std::make_unique<EthernetDevice>(std::make_unique<PacketSocket>(card.host_interface, host_frames::kEtherType),
                                              card.host_interface);
  } else {
    device = std::make_unique<VfioDevice>(card.card, kernel);
  }
  return std::make_unique<CardLink>(std::move(device), config);
}

}  // namespace nanet::link::gateware
