// SPDX-License-Identifier: Apache-2.0
// Lane: a completion queue, its consumer, and the path of the answers out. An engine has one; with several GPUs, one for each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nanet/engine/consumer.hpp"
#include "nanet/engine/transmitter.hpp"
#include "nanet/engine/tx_slots.hpp"
#include "nanet/flow/clop.hpp"
#include "nanet/flow/completion_queue.hpp"
#include "nanet/flow/counters.hpp"
#include "nanet/flow/payload_memory.hpp"
#include "nanet/flow/tx_ring.hpp"

namespace nanet::engine {

struct Lane {
  std::unique_ptr<flow::CompletionQueue> completions;
  std::vector<flow::Clop*> clops;             // by Completion::clop
  std::vector<flow::PayloadMemory> payloads;  // likewise: what its link leaves in place, and where

  // Null when nothing is sent.
  std::unique_ptr<flow::TxRing> tx_ring;
  std::unique_ptr<flow::CompletionQueue> sent_completions;
  std::unique_ptr<Transmitter> transmitter;
  flow::Counter sent = flow::Counter::answers_sent;  // what its packets count as

  flow::Counters counters;  // of the consumer
  std::unique_ptr<Consumer> consumer;
  std::string fault_told;  // what the engine has published of consumer->fault()

  void collect_sent() {
    if (sent_completions) engine::collect_sent(*sent_completions, counters, sent);
  }

  // Something is in flight that will not wake a thread: a consumer that works alone has buffers, or has rung the doorbell.
  bool in_flight() const { return consumer->works_alone() && (consumer->busy() || (tx_ring && tx_ring->in_use() > 0)); }
};

}  // namespace nanet::engine
