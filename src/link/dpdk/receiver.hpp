// SPDX-License-Identifier: Apache-2.0
// The receiving half of the DPDK link: bursts of frames out of the device, their payloads into the caller's room; or payloads are lent where they
// are, and the buffers freed when they are given back.
//
// Frames that do not fit into the caller's room or entries wait in their burst for the next call.
// Thread rules: one thread; add_stats(): any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device.hpp"
#include "frame.hpp"
#include "link/rx_room.hpp"
#include "link/tally.hpp"
#include "nanet/link/link.hpp"
#include "station.hpp"

namespace nanet::link::dpdk {

class Receiver {
 public:
  // payloads: where payloads stay, if they do. Of kind device: each frame comes in two buffers, headers and 24 bytes of the payload in the first, and
  // what is in that memory is never looked at.
  Receiver(Device& device, Station& station, const Endpoint& listen, std::uint32_t queue, const flow::PayloadMemory& payloads);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // The senders of the packets of the last receive(), over IPv6.
  std::span<const IpAddress> peers() const { return ipv6_peers_; }
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns);
  void give_back(std::span<const PlacedPacket> packets);
  // Polls without a pause for 50 us, then 50 us after each poll.
  void wait(std::uint64_t timeout_ns);
  void add_stats(LinkStats& stats) const;

 private:
  static constexpr std::uint32_t kBurst = 64;

  void poll();
  template <typename Address>
  bool take(RxRoom& out, rte_mbuf*& frame, const Address& own);
  template <typename Address>
  FrameError find(const rte_mbuf& frame, PartOf<Address>& part) const;
  template <typename Address>
  bool put(RxRoom& out, const rte_mbuf& frame, const PartOf<Address>& part);
  template <typename Address>
  bool lend(RxRoom& out, rte_mbuf*& frame, const PartOf<Address>& part);
  static std::uint32_t peer_of(std::uint32_t address) { return address; }
  std::uint32_t peer_of(const IpAddress& address);
  bool on_device() const { return payloads_.kind == MemoryKind::device; }
  void refuse(const rte_mbuf& buffers, FrameError error);
  bool is_empty() const { return begin_ == end_; }

  Device& device_;
  Station& station_;
  const IpAddress address_;  // without a scope
  const bool is_ipv6_;
  const std::uint32_t ipv4_;
  const std::uint16_t port_;
  const std::uint16_t queue_;
  const FirstHeader first_header_;
  const flow::PayloadMemory payloads_;
  std::uint32_t begin_ = 0;  // of what is left of the burst
  std::uint32_t end_ = 0;
  std::array<rte_mbuf*, kBurst> burst_{};
  std::vector<IpAddress> ipv6_peers_;  // reserved for a burst
  std::vector<std::byte> joined_;      // a frame that came in several buffers and has to be looked at as a whole

  Tally packets_, bytes_, calls_, batches_, copied_bytes_, truncated_, foreign_, malformed_;
};

}  // namespace nanet::link::dpdk
