// SPDX-License-Identifier: Apache-2.0
#include "link/pcap/pcap_link.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <memory>

#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

constexpr std::size_t kAlignment = 8;
constexpr std::size_t kPacketsMax = 4096;            // of one call
constexpr std::uint32_t kPacketBytesLimit = 65'507;  // of a UDP payload over IPv4

std::uint32_t no_events(std::span<const std::byte> /*payload*/) { return 0; }

const PcapLinkConfig& checked(const PcapLinkConfig& config) {
  if (config.pace == ReplayPace::events) {
    throw SetupError("link " + config.name + " cannot play " + config.path + " at a rate of events",
                     "a link does not know what is in its packets", "give a rate of packets");
  }
  if (config.packet_bytes_max == 0 || config.packet_bytes_max > kPacketBytesLimit) {
    throw SetupError("link " + config.name + " cannot have packet_bytes_max = " + std::to_string(config.packet_bytes_max),
                     "a UDP packet has 1..65507 bytes", "use 1472, or 8972 with jumbo frames");
  }
  return config;
}

}  // namespace

PcapLink::PcapLink(const PcapLinkConfig& config)
    : config_(checked(config)),
      source_(std::make_unique<MappedFile>(config.path), config.path, config.port, &no_events),
      pace_(config.pace, config.packets_per_s) {
  ipv6_peers_.reserve(kPacketsMax);
  has_waiting_ = source_.next_packet(waiting_);
  publish();
}

RxBatch PcapLink::receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) {
  rx_calls_.add(1);
  now_ns_ = now_ns;
  if (!started_) {
    started_ = true;
    pace_.start(now_ns);
    if (has_waiting_) due_ns_ = pace_.due_ns(waiting_.time_ns, 0);
  }
  RxBatch batch;
  std::uint64_t bytes_given = 0;
  ipv6_peers_.clear();
  const bool is_ipv6 = has_waiting_ && waiting_.flow.from_address.is_ipv6();  // packets of one call are of one family
  const std::size_t packets_max = std::min(packets.size(), ipv6_peers_.capacity());
  while (has_waiting_ && due_ns_ <= now_ns && batch.packet_count < packets_max && waiting_.flow.from_address.is_ipv6() == is_ipv6) {
    const std::size_t offset = (batch.bytes_used + kAlignment - 1) / kAlignment * kAlignment;
    const std::size_t left = offset < room.size() ? room.size() - offset : 0;
    const std::size_t wanted = std::min<std::size_t>(waiting_.payload.size(), config_.packet_bytes_max);
    if (left < wanted && batch.packet_count > 0) break;
    const std::size_t bytes = std::min(wanted, left);
    if (bytes > 0) std::memcpy(&room[offset], waiting_.payload.data(), bytes);
    const bool is_cut = bytes < waiting_.payload.size();
    if (is_cut) rx_truncated_.add(1);
    packets[batch.packet_count++] = {
        .offset = static_cast<std::uint32_t>(bytes > 0 ? offset : batch.bytes_used),
        .bytes = static_cast<std::uint16_t>(bytes),
        .peer_port = waiting_.flow.from_port,
        .peer_address = is_ipv6 ? add_peer(waiting_.flow.from_address) : waiting_.flow.from_address.ipv4(),
        .flags = is_cut ? RxPacket::truncated : std::uint16_t{0},
        .reserved = 0};
    if (bytes > 0) batch.bytes_used = static_cast<std::uint32_t>(offset + bytes);
    bytes_given += bytes;
    read_next();
  }
  if (batch.packet_count > 0) {
    rx_batches_.add(1);
    rx_packets_.add(batch.packet_count);
    rx_bytes_.add(bytes_given);
    publish();
  }
  return batch;
}

void PcapLink::send(std::span<const TxPacket> packets, std::uint64_t /*now_ns*/) {
  tx_dropped_.add(packets.size());
  tell_dropped(packets);
}

void PcapLink::wait(std::uint64_t timeout_ns) {
  const std::uint64_t due_in_ns = due_ns_ > now_ns_ ? due_ns_ - now_ns_ : 0;
  const std::uint64_t sleep_ns = has_waiting_ ? std::min(timeout_ns, due_in_ns) : timeout_ns;
  if (sleep_ns == 0) return;
  const timespec pause{.tv_sec = static_cast<std::time_t>(sleep_ns / 1'000'000'000),
                       .tv_nsec = static_cast<long>(sleep_ns % 1'000'000'000)};
  ::nanosleep(&pause, nullptr);
}

LinkStats PcapLink::stats() const {
  return {.rx_packets = rx_packets_.value(),
          .rx_bytes = rx_bytes_.value(),
          .rx_calls = rx_calls_.value(),
          .rx_batches = rx_batches_.value(),
          .rx_truncated = rx_truncated_.value(),
          .rx_skipped_not_udp = skipped_not_udp_.value(),
          .rx_skipped_port = skipped_port_.value(),
          .rx_skipped_fragment = skipped_fragment_.value(),
          .rx_skipped_cut = skipped_cut_.value(),
          .rx_bytes_damaged = bytes_damaged_.value(),
          .tx_dropped = tx_dropped_.value()};
}

Endpoint PcapLink::local() const { return {.scheme = "pcap", .address = 0, .port = config_.port}; }

std::string PcapLink::path() const {
  std::string pace = "as fast as its packets are taken";
  if (config_.pace == ReplayPace::original) pace = "at its own pace";
  if (config_.pace == ReplayPace::packets) pace = "at " + std::to_string(std::llround(config_.packets_per_s)) + " packets/s";
  return "pcap file " + config_.path + ", " + pace;
}

ReplaySource::Counts PcapLink::counts() const {
  return PcapSource::named({.records = records_.value(),
                            .packets = 0,
                            .skipped_not_udp = skipped_not_udp_.value(),
                            .skipped_fragment = skipped_fragment_.value(),
                            .skipped_cut = skipped_cut_.value(),
                            .bytes_damaged = bytes_damaged_.value()},
                           skipped_port_.value());
}

std::uint32_t PcapLink::add_peer(const IpAddress& peer) {
  if (ipv6_peers_.empty() || ipv6_peers_.back() != peer) ipv6_peers_.push_back(peer);
  return static_cast<std::uint32_t>(ipv6_peers_.size() - 1);
}

void PcapLink::read_next() {
  has_waiting_ = source_.next_packet(waiting_);
  if (has_waiting_) due_ns_ = pace_.due_ns(waiting_.time_ns, 0);
}

void PcapLink::publish() {
  const PcapStats& stats = source_.stats();
  records_.set(stats.records);
  skipped_not_udp_.set(stats.skipped_not_udp);
  skipped_fragment_.set(stats.skipped_fragment);
  skipped_cut_.set(stats.skipped_cut);
  bytes_damaged_.set(stats.bytes_damaged);
  skipped_port_.set(source_.skipped_port());
  if (!has_waiting_) finished_.store(true, std::memory_order_release);
}

}  // namespace nanet::link
