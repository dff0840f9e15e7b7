// SPDX-License-Identifier: Apache-2.0
// The trigger: an event with enough pixels is bright, and is answered with its timestamp. Where answers go nowhere, events are only counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "nanet/engine/checks.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/engine/tx_slots.hpp"
#include "nanet/event/event_sink.hpp"

namespace camera {

using namespace nanet;

constexpr std::size_t kAnswersMax = 256;  // in a packet
static_assert(event::kBatchEventsMax <= kAnswersMax);

struct BrightConfig {
  std::uint32_t bright_pixels = 3;  // of an event, at least
  bool answers = true;
};

class BrightTrigger final : public event::EventSink {
 public:
  BrightTrigger(const BrightConfig& config, const engine::LaneParts& parts) : config_(config), counters_(parts.counters) {
    if (config.answers) slots_.emplace(*parts.tx_ring, *parts.sent_completions, parts.counters, parts.inline_transmitter);
  }

  void take(std::span<const event::Event> events, std::uint64_t arrival_ns) override {
    counters_.add(flow::Counter::events_answered, events.size());  // dark ones by silence
    if (!slots_) return;
    const std::span<std::byte> slot = slots_->acquire();
    std::size_t answers = 0;
    for (const event::Event& event : events) {
      if (event.count < config_.bright_pixels) continue;
      std::memcpy(slot.data() + answers++ * sizeof event.timestamp, &event.timestamp, sizeof event.timestamp);
    }
    if (answers > 0) slots_->post(answers * sizeof(std::uint32_t), arrival_ns);
  }
  void flush() override {
    if (slots_) slots_->ring_doorbell();
  }

 private:
  const BrightConfig config_;
  std::optional<engine::TxSlots> slots_;
  flow::Counters& counters_;
};

class BrightProcessor final : public engine::Processor {
 public:
  explicit BrightProcessor(const BrightConfig& config) : config_(config) {}

  void check(const engine::EngineConfig& config) const override { engine::require_events(config, false); }
  engine::ProcessorNeeds needs() const override {
    engine::ProcessorNeeds needs;
    if (config_.answers) needs.tx_slot_bytes = kAnswersMax * sizeof(std::uint32_t);
    return needs;
  }
  std::unique_ptr<engine::Consumer> make_consumer(engine::LaneParts parts) override {
    auto trigger = std::make_unique<BrightTrigger>(config_, parts);
    return std::make_unique<engine::EventBuilder>(parts.completions, std::move(parts.origins), parts.source_count, std::nullopt,
                                                  std::move(trigger), parts.counters);
  }

 private:
  const BrightConfig config_;
};

}  // namespace camera
