// SPDX-License-Identifier: Apache-2.0
#include "sender.hpp"

#include <rte_cycles.h>
#include <rte_pause.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "eal.hpp"

namespace nanet::link::dpdk {
namespace {

constexpr std::uint64_t kDrainPeriodNs = 1'000'000;  // at an ARP request a second, far too often; at a flood of others' frames, rarely

}  // namespace

Sender::Sender(Device& device, const Neighbours& neighbours, Station* station, const DpdkConfig& config)
    : device_(device), neighbours_(neighbours), station_(station), wait_cycles_(config.tx_wait_us * rte_get_timer_hz() / 1'000'000) {
  const std::uint16_t from_port = config.listen ? config.listen->port : kSourcePort;
  for (const Endpoint& destination : config.destinations) {
    templates_.emplace_back(IpUdpFlow{neighbours.own_address(), without_scope(destination.address), from_port, destination.port},
                            device_.mac());
  }
}

void Sender::send(std::span<const TxPacket> packets, std::uint64_t now_ns) {
  register_this_thread();
  if (station_ != nullptr && now_ns >= next_drain_ns_) {
    next_drain_ns_ = now_ns + kDrainPeriodNs;
    station_->tend(now_ns);
    station_->drain();
  }
  if (packets.empty()) return;
  waiting_since_ = 0;
  if (!take_queue()) {
    drop(packets);
    return;
  }
  while (!packets.empty()) {
    const std::size_t count = std::min<std::size_t>(packets.size(), kBurst);
    send_burst(packets.first(count));
    packets = packets.subspan(count);
  }
  device_.data_queue().give_back();
}

// The receiving thread may be sending an answer there.
bool Sender::take_queue() {
  while (!device_.data_queue().try_take()) {
    if (!wait_a_little()) return false;
  }
  return true;
}

void Sender::send_burst(std::span<const TxPacket> packets) {
  std::array<rte_mbuf*, kBurst> frames;
  const auto asked = static_cast<std::uint32_t>(packets.size());
  if (rte_pktmbuf_alloc_bulk(device_.tx_pool(), frames.data(), asked) != 0) {
    drop(packets);
    return;
  }
  std::array<const TxPacket*, kBurst> written;
  std::uint32_t count = 0;
  for (const TxPacket& packet : packets) {
    if (packet.destination >= templates_.size() || packet.bytes > device_.payload_bytes_max()) {
      drop({&packet, 1});
      continue;
    }
    write_frame(*frames[count], packet);
    written[count++] = &packet;
  }
  std::uint32_t sent = 0;
  while (sent < count) {
    const std::uint32_t taken = device_.transmit(device_.data_queue(), std::span(frames).subspan(sent, count - sent));
    calls_.add(1);
    sent += taken;
    if (taken == 0 && !wait_a_little()) break;
  }
  rte_pktmbuf_free_bulk(frames.data() + sent, asked - sent);  // what was not taken, and what was not needed
  packets_.add(sent);
  std::uint64_t bytes = 0;
  for (std::uint32_t k = 0; k < sent; ++k) bytes += written[k]->bytes;
  bytes_.add(bytes);
  for (std::uint32_t k = sent; k < count; ++k) drop({written[k], 1});
}

void Sender::drop(std::span<const TxPacket> packets) {
  dropped_.add(packets.size());
  tell_dropped(packets);
}

void Sender::write_frame(rte_mbuf& frame, const TxPacket& packet) {
  auto* out = rte_pktmbuf_mtod(&frame, std::byte*);
  const std::span<const std::byte> payload(packet.data, packet.bytes);
  const UdpTemplate& headers = templates_[packet.destination];
  headers.write(out, neighbours_.mac_of(packet.destination), payload);
  if (packet.bytes != 0) std::memcpy(out + headers.header_bytes(), packet.data, packet.bytes);
  std::size_t bytes = headers.header_bytes() + packet.bytes;
  if (bytes < kFrameBytesMin) {
    std::fill_n(out + bytes, kFrameBytesMin - bytes, std::byte{0});
    bytes = kFrameBytesMin;
  }
  frame.data_len = static_cast<std::uint16_t>(bytes);
  frame.pkt_len = static_cast<std::uint32_t>(bytes);
}

// False: this call of send() has waited long enough.
bool Sender::wait_a_little() {
  const std::uint64_t now = rte_get_timer_cycles();
  if (waiting_since_ == 0) waiting_since_ = now;
  rte_pause();
  return now - waiting_since_ < wait_cycles_;
}

void Sender::add_stats(LinkStats& stats) const {
  stats.tx_packets = packets_.value();
  stats.tx_bytes = bytes_.value();
  stats.tx_calls = calls_.value();
  stats.tx_dropped = dropped_.value();
}

}  // namespace nanet::link::dpdk
