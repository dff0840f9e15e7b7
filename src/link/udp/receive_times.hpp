// SPDX-License-Identifier: Apache-2.0
// How long messages took from the kernel, which stamps them (SO_TIMESTAMPING), to this program, from the NIC, where that stamps them too, to the
// kernel, and from the sender to the first of these: docs/design/receive-times.md. A coalesced message has one stamp and counts once, with its first packet's time of sending.
//
// Thread rules: the receiving thread records, any thread reads.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "link/socket.hpp"
#include "link/udp/nic_clock.hpp"
#include "nanet/flow/latency_histogram.hpp"
#include "nanet/link/nic_times.hpp"

namespace nanet::link {

// Of one message; 0: it has none.
struct Stamps {
  std::uint64_t kernel_ns = 0;  // CLOCK_REALTIME
  std::uint64_t nic_ns = 0;     // of the NIC's clock
};
Stamps stamps_of(const msghdr& header);

class ReceiveTimes {
 public:
  // Asks for the stamps. Throws SetupError.
  ReceiveTimes(const Socket& socket, const UdpConfig& config, std::vector<std::string>& notes);

  // For stamps that do not come from a socket. nic: there are some of a NIC, whose clock was read once.
  ReceiveTimes(const std::optional<SentConfig>& sent, const std::optional<ClockReading>& nic);

  // After each call that received messages.
  void read_clocks();

  // One of these messages: the control data that came with it, and its first packet, which may be cut.
  void record(const msghdr& header, std::span<const std::byte> payload);

  NicTimes times() const;

 private:
  void read_nic();
  void record_sent(std::uint64_t stamp_ns, std::span<const std::byte> payload);

  const std::optional<SentConfig> sent_;
  std::uint64_t realtime_ns_ = 0;      // of the last read_clocks()
  std::uint64_t sender_ahead_ns_ = 0;  // by which the sender's clock is more than CLOCK_REALTIME, modulo 2^64
  const bool has_nic_;
  std::unique_ptr<NicClock> nic_clock_;
  NicToRealtime nic_time_;
  std::uint64_t nic_read_ns_ = 0;
  flow::LatencyHistogram sender_to_stamp_ns_;
  flow::LatencyHistogram stamp_before_sender_ns_;
  flow::LatencyHistogram nic_to_kernel_ns_;
  flow::LatencyHistogram kernel_to_user_ns_;
};

}  // namespace nanet::link
