// SPDX-License-Identifier: Apache-2.0
// Lane: links, the completion queue that they fill, its consumer, and the path of the answers out. An engine has one; with several GPUs, or with
// several threads that share nothing, one for each.
#pragma once

#include <atomic>
#include <cstdint>
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

struct Input;

struct Lane {
  std::vector<Input*> inputs;
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
  std::atomic<std::uint64_t> drained_ns{0};  // when nothing was waiting any more, in links or partly filled buffers
  std::uint32_t flushes_done = 0;
  std::string fault_told;  // what the engine has published of consumer->fault()

  void collect_sent() {
    if (sent_completions) engine::collect_sent(*sent_completions, counters, sent);
  }

  // Something is in flight that will not wake a thread: a consumer that works alone has buffers, or has rung the doorbell.
  bool in_flight() const { return consumer->works_alone() && (consumer->busy() || (tx_ring && tx_ring->in_use() > 0)); }
};

}  // namespace nanet::engine
