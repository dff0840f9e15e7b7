// SPDX-License-Identifier: Apache-2.0
// EventSink: takes whole events: a trigger that answers them, a writer that forwards them, a program that looks at them.
//
// Called once per batch, never once per event. Between two batches no code of the sink runs.
//
// Thread rules: one thread calls all four functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nanet/event/event.hpp"

namespace nanet::event {

inline constexpr std::size_t kBatchEventsMax = 256;  // of a take(); what a finder keeps of them stays in the first-level cache

class EventSink {
 public:
  virtual ~EventSink() = default;

  // The sources began a new run, whose timestamps may start again; every event of the previous run has been taken.
  virtual void begin_run() {}

  // At least one event, at most kBatchEventsMax. Their hits are valid until this returns. arrival_ns: when the packets they are from came.
  virtual void take(std::span<const Event> events, std::uint64_t arrival_ns) = 0;

  // Everything that came has been taken: what can leave should leave now.
  virtual void flush() {}

  // End of the run; every event has been taken.
  virtual void end() { flush(); }
};

}  // namespace nanet::event
