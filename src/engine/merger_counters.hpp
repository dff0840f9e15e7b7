// SPDX-License-Identifier: Apache-2.0
// The counts of event building as the engine's counters: the same for the engine's own merger and for a GPU's.
#pragma once

#include "nanet/event/parts.hpp"
#include "nanet/flow/counters.hpp"

namespace nanet::engine {

inline void publish_merger(const event::MergerStats& totals, flow::Counters& counters) {
  using flow::Counter;
  counters.set(Counter::parts_merged, totals.parts_merged);
  counters.set(Counter::parts_late, totals.parts_late);
  counters.set(Counter::parts_duplicate, totals.parts_duplicate);
  counters.set(Counter::parts_no_room, totals.parts_no_room);
  counters.set(Counter::parts_overflow_hits, totals.parts_overflow_hits);
  counters.set(Counter::events_complete, totals.events_complete);
  counters.set(Counter::events_missing_parts, totals.events_missing_parts);
  counters.set(Counter::events_overflow, totals.events_overflow);
}

}  // namespace nanet::engine
