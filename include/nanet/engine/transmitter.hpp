// SPDX-License-Identifier: Apache-2.0
// Transmitter: takes descriptors up to the doorbell, gives them to the link as one batch, and writes the sent completions. With several
// destinations each packet goes to all of them, from the same memory. A completion has the events of its packet, and status::error if the
// link dropped the packet for any destination.
//
// Thread rules: one thread calls poll. The tag of a descriptor is the arrival time [ns] of the oldest packet it answers; 0: it answers none, as a
// marker, and is not timed.
#pragma once

#include <array>
#include <cstdint>

#include "nanet/flow/completion_queue.hpp"
#include "nanet/flow/latency_histogram.hpp"
#include "nanet/flow/tx_ring.hpp"
#include "nanet/link/link.hpp"

namespace nanet::engine {

class Transmitter {
 public:
  static constexpr std::uint32_t kDestinationsMax = 4;

  // sent_queue must be twice as long as the ring: the processor collects before it posts, so it is never full.
  // destination_count: 1..kDestinationsMax, of the link's table.
  Transmitter(flow::TxRing& ring, link::Link& link, flow::CompletionQueue& sent_queue, std::uint32_t destination_count = 1)
      : ring_(ring), link_(link), sent_queue_(sent_queue), destination_count_(destination_count) {}

  // Returns the number of descriptors sent.
  std::uint32_t poll(std::uint64_t now_ns);

  // From the arrival of the oldest packet of an answer to the return of the send call, one entry per answer packet.
  const flow::LatencyHistogram& residence_ns() const { return residence_ns_; }

 private:
  static constexpr std::uint32_t kBatch = 32;

  flow::TxRing& ring_;
  link::Link& link_;
  flow::CompletionQueue& sent_queue_;
  const std::uint32_t destination_count_;
  flow::LatencyHistogram residence_ns_;
  std::array<const TxDescriptor*, kBatch> descriptors_{};
  std::array<link::TxPacket, kBatch * kDestinationsMax> packets_{};
  std::array<bool, kBatch> dropped_{};
};

}  // namespace nanet::engine
