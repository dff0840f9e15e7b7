// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/tx_slots.hpp"

#include "nanet/engine/transmitter.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/flow/wait.hpp"

namespace nanet::engine {

std::span<std::byte> TxSlots::acquire() {
  collect_sent();
  std::span<std::byte> slot = ring_.slot();
  if (slot.empty()) [[unlikely]] {
    counters_.add(names_.waited);
    ring_.ring_doorbell();
    while ((slot = ring_.slot()).empty()) {
      collect_sent();
      if (inline_transmitter_ != nullptr) {
        inline_transmitter_->poll(flow::clock_now_ns());
      } else {
        flow::cpu_relax();
      }
    }
  }
  return slot;
}

void collect_sent(flow::CompletionQueue& sent_queue, flow::Counters& counters, flow::Counter sent) {
  std::uint64_t count = 0, events = 0, events_unsent = 0;
  for (; const Completion* completion = sent_queue.peek(); sent_queue.pop()) {
    ++count;
    ((completion->status & status::error) == 0 ? events : events_unsent) += completion->event_count;
  }
  if (count > 0) counters.add(sent, count);
  if (events > 0) counters.add(flow::Counter::events_forwarded, events);
  if (events_unsent > 0) counters.add(flow::Counter::events_unsent, events_unsent);
}

}  // namespace nanet::engine
