// SPDX-License-Identifier: Apache-2.0
// A processor consumes completions and writes answers. It is called once a completion, never once a packet.
//
// Thread rules: one thread calls all three functions.
#pragma once

#include <cstdint>

#include "nanet/contract.hpp"
#include "nanet/flow/clop.hpp"
#include "nanet/flow/counters.hpp"

namespace nanet::engine {

class Processor {
 public:
  virtual ~Processor() = default;

  // Judges everything in the buffer of `completion`. The buffer is returned to the CLOP when this returns.
  virtual void process(const Completion& completion, flow::Clop& clop) = 0;

  // Everything that had arrived at caught_up_ns has been processed: closes what has waited long enough. Called whenever that is so.
  virtual void tick(std::uint64_t caught_up_ns) = 0;

  // End of the run: closes and answers everything that is still open.
  virtual void finish() = 0;

  // Events of which at least one part came; 0 for a processor that does not build events.
  virtual std::uint64_t events_opened() const { return 0; }
};

// Takes the buffers and gives them back. The events of accepted packets are counted by the receiver already.
class CountProcessor final : public Processor {
 public:
  void process(const Completion&, flow::Clop&) override {}
  void tick(std::uint64_t) override {}
  void finish() override {}
};

}  // namespace nanet::engine
