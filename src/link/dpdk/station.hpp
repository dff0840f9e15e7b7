// SPDX-License-Identifier: Apache-2.0
// What makes the link a station of its network: answers ARP (IPv4) or neighbour solicitations (IPv6) and echo requests for its address, learns and asks where its neighbours are.
//
// Thread rules: one thread, the one that empties the device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "arp.hpp"
#include "device.hpp"
#include "ndp.hpp"
#include "neighbours.hpp"

namespace nanet::link::dpdk {

class Station {
 public:
  // Answers what comes to one queue of the device. Who has a neighbour's answer in another queue learns it there, in the same neighbours.
  Station(Device& device, Neighbours& neighbours, std::uint32_t queue)
      : device_(device), neighbours_(neighbours), queue_(static_cast<std::uint16_t>(queue)) {}

  // A frame that is not UDP. True: it was for this station.
  bool handle(std::span<const std::byte> frame);

  // Asks for the neighbours again every 30 s of now_ns, and sends what could not be sent before. Costs two comparisons otherwise.
  void tend(std::uint64_t now_ns) {
    if (now_ns >= next_asking_ns_) ask_again(now_ns);
    if (waiting_count_ != 0) flush();
  }

  // Asks for a neighbour; the answer comes through handle().
  void ask(std::size_t hop);

  // Takes what is in the device's first queues, for its answers only. For set-up, and for a link that does not listen.
  void drain(std::uint32_t queue_count = 1);

 private:
  static constexpr std::uint64_t kAskingPeriodNs = 30'000'000'000;
  static constexpr std::size_t kFrameBytesMax = 512;  // an echo request longer than that gets no answer

  struct Waiting {
    std::uint32_t bytes;
    std::array<std::byte, kFrameBytesMax> frame;
  };

  bool handle_arp(const Arp& arp);
  bool handle_ndp(const Ndp& ndp);
  void ask_again(std::uint64_t now_ns);
  std::span<std::byte> next_waiting(std::size_t bytes);
  void flush();

  Device& device_;
  Neighbours& neighbours_;
  const std::uint16_t queue_;
  std::uint64_t next_asking_ns_ = 1;  // 0 is no time: callers without a clock ask for nothing
  std::uint32_t waiting_count_ = 0;
  std::array<Waiting, 8> waiting_;  // to be sent when the transmit queue is free; a peer without a place here asks again
};

}  // namespace nanet::link::dpdk
