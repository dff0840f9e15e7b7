// SPDX-License-Identifier: Apache-2.0
// Processor: what an engine does with the buffers that its links fill. It says what it needs, and makes a consumer for each lane. Detectors and
// formats are its own business: the engine knows none.
//
// Thread rules: the thread that makes the engine calls everything here; consumers have rules of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nanet/engine/consumer.hpp"
#include "nanet/engine/event_builder.hpp"
#include "nanet/engine/transmitter.hpp"
#include "nanet/flow/completion_queue.hpp"
#include "nanet/flow/counters.hpp"
#include "nanet/flow/payload_memory.hpp"
#include "nanet/flow/tx_ring.hpp"

namespace nanet::engine {

struct EngineConfig;

struct ProcessorNeeds {
  std::vector<int> gpus;  // one lane for each, with a consumer that works alone; none: one lane, and the engine's own threads
  std::uint32_t buffers_in_flight = 1;               // that a consumer has at a time
  std::uint32_t buffer_packets_max = 0;              // that a consumer can take; 0: any number
  std::uint32_t tx_slot_bytes = 0;                   // of the packets that it sends; 0: none
  std::uint32_t tx_packets_max = 1024;               // that may wait to be sent
  bool merges = false;                               // events of several sources
  bool shares_nothing = false;                       // its consumers may run in different threads at a time; it sends nothing
  flow::Counter sent = flow::Counter::answers_sent;  // what its packets count as
};

// What a consumer of one lane works with.
struct LaneParts {
  std::size_t lane;
  flow::CompletionQueue& completions;
  std::vector<EventOrigin> origins;           // by Completion::clop
  std::vector<flow::PayloadMemory> payloads;  // likewise
  std::uint32_t source_count;                 // over all CLOPs
  // Null when nothing is sent.
  flow::TxRing* tx_ring;
  flow::CompletionQueue* sent_completions;
  Transmitter* inline_transmitter;  // who empties the ring when it is full; null too when another thread does
  flow::Counters& counters;         // of the thread that polls the consumer

  std::vector<flow::Clop*> clops() const {
    std::vector<flow::Clop*> all;
    for (const EventOrigin& origin : origins) all.push_back(origin.clop);
    return all;
  }
};

class Processor {
 public:
  virtual ~Processor() = default;

  // Throws SetupError if it cannot work on these links or send there. Called before anything is opened.
  virtual void check(const EngineConfig&) const {}

  virtual ProcessorNeeds needs() const { return {}; }

  virtual std::unique_ptr<Consumer> make_consumer(LaneParts parts) = 0;
};

// Counts what comes and gives the buffers back. The receiver has already counted the events of accepted packets.
class CountProcessor final : public Processor {
 public:
  ProcessorNeeds needs() const override { return {.shares_nothing = true}; }
  std::unique_ptr<Consumer> make_consumer(LaneParts parts) override {
    return std::make_unique<CountConsumer>(parts.completions, parts.clops());
  }
};

}  // namespace nanet::engine
