// SPDX-License-Identifier: Apache-2.0
// TxSlots: the producer's side of a TX ring for whoever writes packets into it. Never drops: with no free descriptor it waits for
// one.
//
// Thread rules: one thread, the processing one; collect_sent() also from the sending thread once the other has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nanet/flow/completion_queue.hpp"
#include "nanet/flow/counters.hpp"
#include "nanet/flow/tx_ring.hpp"

namespace nanet::engine {

class Transmitter;

// The names under which packets are counted.
struct TxCounters {
  flow::Counter sent = flow::Counter::answers_sent;
  flow::Counter waited = flow::Counter::answers_waited;
};

// Takes the packet_sent completions that have come back, and counts their events as forwarded or unsent. One thread, the queue's consumer.
void collect_sent(flow::CompletionQueue& sent_queue, flow::Counters& counters, flow::Counter sent);

class TxSlots {
 public:
  // `inline_transmitter`: who empties the ring when it is full; null when another thread does.
  TxSlots(flow::TxRing& ring, flow::CompletionQueue& sent_queue, flow::Counters& counters, Transmitter* inline_transmitter,
          TxCounters names = {})
      : ring_(ring), sent_queue_(sent_queue), counters_(counters), inline_transmitter_(inline_transmitter), names_(names) {}

  // Room for the next packet. Waits while there is none.
  std::span<std::byte> acquire();

  // Describes the packet written into what acquire() gave. arrival_ns: when the oldest packet that it answers came; 0: it answers none. event_count: events that
  // are sent on in it.
  void post(std::size_t bytes, std::uint64_t arrival_ns, std::uint32_t event_count = 0) {
    ring_.post(static_cast<std::uint32_t>(bytes), 0, arrival_ns, event_count);
  }

  // Sends what is posted.
  void ring_doorbell() { ring_.ring_doorbell(); }

  // Takes the sent completions that have come back.
  void collect_sent() { engine::collect_sent(sent_queue_, counters_, names_.sent); }

 private:
  flow::TxRing& ring_;
  flow::CompletionQueue& sent_queue_;
  flow::Counters& counters_;
  Transmitter* inline_transmitter_;
  const TxCounters names_;
};

}  // namespace nanet::engine
