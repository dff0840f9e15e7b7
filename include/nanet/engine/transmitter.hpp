// SPDX-License-Identifier: Apache-2.0
// Transmitter: takes descriptors up to the doorbell, gives them to the link as one batch, and writes the sent completions.
//
// Thread rules: one thread calls poll. The tag of a descriptor is the arrival time [ns] of the oldest packet it answers.
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
  // sent_queue must be twice as long as the ring: the processor collects before it posts, so it is never full.
  Transmitter(flow::TxRing& ring, link::Link& link, flow::CompletionQueue& sent_queue)
      : ring_(ring), link_(link), sent_queue_(sent_queue) {}

  // Returns the number of packets given to the link.
  std::uint32_t poll(std::uint64_t now_ns);

  // From the arrival of the oldest packet of an answer to the return of the send call, an entry an answer packet.
  const flow::LatencyHistogram& residence_ns() const { return residence_ns_; }

 private:
  static constexpr std::uint32_t kBatch = 32;

  flow::TxRing& ring_;
  link::Link& link_;
  flow::CompletionQueue& sent_queue_;
  flow::LatencyHistogram residence_ns_;
  std::array<const TxDescriptor*, kBatch> descriptors_{};
  std::array<link::TxPacket, kBatch> packets_{};
};

}  // namespace nanet::engine
