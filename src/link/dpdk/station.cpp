// SPDX-License-Identifier: Apache-2.0
#include "station.hpp"

#include <algorithm>
#include <cstring>

namespace nanet::link::dpdk {

bool Station::handle(std::span<const std::byte> frame) {
  if (!device_.has_ethernet()) return false;
  Arp arp;
  if (read_arp(frame, arp)) {
    neighbours_.learn(arp.from_address, arp.from_mac);
    if (arp.to_address != neighbours_.own_address()) return false;
    if (arp.kind == ArpKind::request) {
      if (const std::span<std::byte> out = next_waiting(kArpFrameBytes); !out.empty()) {
        write_arp(out.data(), {ArpKind::reply, device_.mac(), neighbours_.own_address(), arp.from_address}, arp.from_mac);
        flush();
      }
    }
    return true;
  }
  if (!is_echo_request(frame, neighbours_.own_address())) return false;
  if (const std::span<std::byte> out = next_waiting(frame.size()); !out.empty()) {
    std::memcpy(out.data(), frame.data(), frame.size());
    answer_echo(out);
    flush();
  }
  return true;
}

void Station::ask(std::size_t hop) {
  if (const std::span<std::byte> out = next_waiting(kArpFrameBytes); !out.empty()) {
    write_arp(out.data(), {ArpKind::request, device_.mac(), neighbours_.own_address(), neighbours_.hop_address(hop)}, {});
    flush();
  }
}

void Station::ask_again(std::uint64_t now_ns) {
  // The first time is right after set-up, which has asked already.
  for (std::size_t hop = 0; next_asking_ns_ != 1 && hop < neighbours_.hop_count(); ++hop) {
    if (neighbours_.hop_address(hop) != neighbours_.own_address()) ask(hop);
  }
  next_asking_ns_ = now_ns + kAskingPeriodNs;
}

// Room for one more frame to send; none when it is too long or too many wait.
std::span<std::byte> Station::next_waiting(std::size_t bytes) {
  if (waiting_count_ == waiting_.size() || bytes > kFrameBytesMax) return {};
  Waiting& next = waiting_[waiting_count_++];
  next.bytes = static_cast<std::uint32_t>(bytes);
  return std::span(next.frame).first(bytes);
}

void Station::flush() {
  TxQueue& queue = device_.answer_queue();
  if (!queue.try_take()) return;
  std::uint32_t sent = 0;
  for (; sent < waiting_count_; ++sent) {
    const Waiting& next = waiting_[sent];
    rte_mbuf* frame = rte_pktmbuf_alloc(device_.tx_pool());
    if (frame == nullptr) break;
    const std::uint32_t padded = std::max<std::uint32_t>(next.bytes, kFrameBytesMin);
    auto* out = reinterpret_cast<std::byte*>(rte_pktmbuf_append(frame, static_cast<std::uint16_t>(padded)));
    std::memcpy(out, next.frame.data(), next.bytes);
    std::fill_n(out + next.bytes, padded - next.bytes, std::byte{0});
    if (device_.transmit(queue, {&frame, 1}) == 0) {
      rte_pktmbuf_free(frame);
      break;
    }
  }
  queue.give_back();
  std::move(waiting_.begin() + sent, waiting_.begin() + waiting_count_, waiting_.begin());
  waiting_count_ -= sent;
}

void Station::drain() {
  std::array<rte_mbuf*, 64> frames;
  const std::uint32_t count = device_.receive(frames);
  for (std::uint32_t i = 0; i < count; ++i) {
    handle({rte_pktmbuf_mtod(frames[i], const std::byte*), rte_pktmbuf_data_len(frames[i])});
  }
  rte_pktmbuf_free_bulk(frames.data(), count);
}

}  // namespace nanet::link::dpdk
