// SPDX-License-Identifier: Apache-2.0
#include "na62/forward_processor.hpp"

#include <string>
#include <utility>

#include "na62/event_forwarder.hpp"
#include "nanet/engine/checks.hpp"
#include "nanet/engine/event_builder.hpp"
#include "nanet/setup_error.hpp"
#include "nanet/wire/m2egp.hpp"

namespace nanet::na62 {

void ForwardProcessor::check(const engine::EngineConfig& engine) const {
  engine::require_events(engine, config_.merge.has_value());
  if (!engine.send) {
    throw SetupError("no destination for the events", "forward has no endpoint",
                     "add forward: {endpoint: udp://ADDRESS:PORT} under processor:");
  }
  constexpr std::size_t kLeastBytes = wire::kMgpHeaderBytes + wire::m2egp_event_bytes(wire::kM2egpHitsMax);
  if (config_.packet_bytes_max < kLeastBytes || config_.packet_bytes_max > wire::kM2egpBytesMax || config_.packet_bytes_max % 2 != 0) {
    throw SetupError("forward: packet_bytes_max is " + std::to_string(config_.packet_bytes_max),
                     "it must be even and 280 to 8972, so that any event fits", "set 1472, or 8972 where the MTU is 9000");
  }
}

engine::ProcessorNeeds ForwardProcessor::needs() const {
  engine::ProcessorNeeds needs;
  needs.tx_slot_bytes = config_.packet_bytes_max;
  needs.merges = config_.merge.has_value();
  needs.sent = flow::Counter::packets_forwarded;
  return needs;
}

std::unique_ptr<engine::Consumer> ForwardProcessor::make_consumer(engine::LaneParts parts) {
  auto forwarder = std::make_unique<EventForwarder>(*parts.tx_ring, *parts.sent_completions, config_, parts.counters,
                                                    parts.inline_transmitter);
  return std::make_unique<engine::EventBuilder>(parts.completions, std::move(parts.origins), parts.source_count, config_.merge,
                                                std::move(forwarder), parts.counters);
}

}  // namespace nanet::na62
