// SPDX-License-Identifier: Apache-2.0
#include "na62/rich_trigger.hpp"

#include <algorithm>
#include <utility>

#include "nanet/rich/decision.hpp"

namespace nanet::na62 {

using flow::Counter;

RichTrigger::RichTrigger(const RichConfig& config, std::optional<AnswerWriter> answers, flow::Counters& counters,
                         RingMonitor& monitor, ChannelMonitor& channels)
    : finder_(config.finder),
      decision_(config.decision),
      answers_(std::move(answers)),
      counters_(counters),
      monitor_(monitor),
      channels_(channels) {}

void RichTrigger::take(std::span<const event::Event> all, std::uint64_t arrival_ns) {
  const std::span<const event::Event> events = channels_.admit(all, arrival_ns);
  const auto rings = std::span(rings_).first(events.size());
  rich::find_rings(finder_, events, rings);
  std::uint64_t found = 0;
  std::uint64_t electrons = 0;
  std::uint64_t unmapped = 0;
  std::uint64_t over = 0;
  std::uint64_t outside = 0;
  for (std::size_t e = 0; e < events.size(); ++e) {
    const rich::Verdict verdict = rich::judge(rings[e], decision_.cuts);
    found += verdict.rings;
    electrons += verdict.electrons;
    unmapped += std::min(events[e].count, rich::kMaxHits) - rings[e].mapped_hits;
    over += rings[e].more_rings;
    outside += verdict.outside;
    primitives_[e] = {
        .timestamp = events[e].timestamp, .fine_time = events[e].fine_time, .id = rich::primitive_id(verdict, decision_.conditions)};
    monitor_.record(events[e], rings[e], verdict, primitives_[e]);
  }
  if (answers_) answers_->add(std::span(primitives_).first(events.size()), arrival_ns);
  counters_.add(Counter::rings_found, found);
  counters_.add(Counter::rings_electron, electrons);
  counters_.add(Counter::rings_over_answer, over);
  counters_.add(Counter::rings_outside, outside);
  counters_.add(Counter::hits_unmapped, unmapped);
  counters_.add(Counter::hits_masked, channels_.masked_hits());
  counters_.add(Counter::events_answered, events.size());
}

}  // namespace nanet::na62
