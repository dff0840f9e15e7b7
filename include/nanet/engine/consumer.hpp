// SPDX-License-Identifier: Apache-2.0
// Consumer: whoever takes the completions of a queue, judges what is in the buffers, and gives them back. There is one for each queue:
// the engine's own thread (EventBuilder with a sink, or CountConsumer), or a GPU (GpuConsumer).
//
// A consumer that works alone does so while no one calls it: it takes completions, fills the TX ring, rings the doorbell and gives buffers
// back by writing into memory, and cannot wake a thread that sleeps. Hence no thread sleeps while it is busy.
//
// Thread rules: one thread calls poll, finish and fault; busy from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nanet/flow/clop.hpp"
#include "nanet/flow/completion_queue.hpp"

namespace nanet::engine {

class Consumer {
 public:
  static constexpr std::uint32_t kCompletionsATurn = 16;  // of the engine's own thread, so that answers leave and packets are fetched in between

  virtual ~Consumer() = default;

  // One turn. Returns the number of buffers given back since the last call. caught_up_ns: everything that had arrived by then has been handed
  // over, so what has waited long enough at that time can be closed.
  virtual std::uint32_t poll(std::uint64_t caught_up_ns, std::uint64_t now_ns) = 0;

  // End of the run, when no completion is left: closes and answers everything that is still open.
  virtual void finish() = 0;

  virtual bool works_alone() const { return false; }

  // Whether it has buffers that it has not given back. Always false for one that does not work alone: between its polls nothing happens.
  virtual bool busy() const { return false; }

  // Why it was given up; empty while all is well. From then on it gives buffers back unjudged.
  virtual std::string_view fault() const { return {}; }

  // Events of which at least one part came; 0 for one that does not build events.
  virtual std::uint64_t events_opened() const { return 0; }

  // What it runs on; empty for the engine's own thread.
  virtual std::string device_name() const { return {}; }
};

// Gives the buffers back. The receiver has already counted the events of accepted packets.
class CountConsumer final : public Consumer {
 public:
  // clops: by Completion::clop.
  CountConsumer(flow::CompletionQueue& completions, std::vector<flow::Clop*> clops)
      : completions_(completions), clops_(std::move(clops)) {}

  std::uint32_t poll(std::uint64_t caught_up_ns, std::uint64_t now_ns) override;
  void finish() override {}

 private:
  flow::CompletionQueue& completions_;
  const std::vector<flow::Clop*> clops_;
};

}  // namespace nanet::engine
