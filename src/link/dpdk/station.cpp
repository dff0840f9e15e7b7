// SPDX-License-Identifier: Apache-2.0
#include "station.hpp"

#include <algorithm>
#include <cstring>

namespace nanet::link::dpdk {

bool Station::handle(std::span<const std::byte> frame) {
  if (!device_.has_ethernet()) return false;
  const IpAddress& own = neighbours_.own_address();
  const bool is_ipv6 = own.is_ipv6();
  if (Ndp ndp; is_ipv6 && read_ndp(frame, ndp)) return handle_ndp(ndp);
  if (Arp arp; !is_ipv6 && read_arp(frame, arp)) return handle_arp(arp);
  if (!(is_ipv6 ? is_echo_request(frame, own) : is_echo_request(frame, own.ipv4()))) return false;
  if (const std::span<std::byte> out = next_waiting(frame.size()); !out.empty()) {
    std::memcpy(out.data(), frame.data(), frame.size());
    if (is_ipv6) {
      answer_ipv6_echo(out);
    } else {
      answer_echo(out);
    }
    flush();
  }
  return true;
}

bool Station::handle_arp(const Arp& arp) {
  const std::uint32_t own = neighbours_.own_address().ipv4();
  neighbours_.learn(arp.from_address, arp.from_mac);
  if (arp.to_address != own) return false;
  if (arp.kind == ArpKind::request) {
    if (const std::span<std::byte> out = next_waiting(kArpFrameBytes); !out.empty()) {
      write_arp(out.data(), {ArpKind::reply, device_.mac(), own, arp.from_address}, arp.from_mac);
      flush();
    }
  }
  return true;
}

bool Station::handle_ndp(const Ndp& ndp) {
  const bool asks = ndp.kind == NdpKind::solicitation;
  const IpAddress& teller = asks ? ndp.from_address : ndp.target;
  if (ndp.mac) neighbours_.learn(teller, *ndp.mac);
  if (!asks) return true;
  if (ndp.target != neighbours_.own_address()) return false;
  if (const std::span<std::byte> out = next_waiting(kNdpFrameBytes); !out.empty()) {
    write_advertisement(out.data(), device_.mac(), ndp.target, ndp.from_address, ndp.mac.value_or(ndp.frame_mac));
    flush();
  }
  return true;
}

void Station::ask(std::size_t hop) {
  const IpAddress& own = neighbours_.own_address();
  const IpAddress& target = neighbours_.hop_address(hop);
  const std::span<std::byte> out = next_waiting(own.is_ipv6() ? kNdpFrameBytes : kArpFrameBytes);
  if (out.empty()) return;
  if (own.is_ipv6()) {
    write_solicitation(out.data(), device_.mac(), own, target);
  } else {
    write_arp(out.data(), {ArpKind::request, device_.mac(), own.ipv4(), target.ipv4()}, {});
  }
  flush();
}

void Station::ask_again(std::uint64_t now_ns) {
  // The first time is right after set-up, which has asked already.
  for (std::size_t hop = 0; queue_ == 0 && next_asking_ns_ != 1 && hop < neighbours_.hop_count(); ++hop) {
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

void Station::drain(std::uint32_t queue_count) {
  for (std::uint16_t queue = 0; queue < queue_count; ++queue) {
    std::array<rte_mbuf*, 64> frames;
    const std::uint32_t count = device_.receive(queue, frames);
    for (std::uint32_t i = 0; i < count; ++i) {
      handle({rte_pktmbuf_mtod(frames[i], const std::byte*), rte_pktmbuf_data_len(frames[i])});
    }
    rte_pktmbuf_free_bulk(frames.data(), count);
  }
}

}  // namespace nanet::link::dpdk
