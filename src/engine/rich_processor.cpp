// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/rich_processor.hpp"

#include <algorithm>
#include <utility>

#include "nanet/flow/clock.hpp"
#include "nanet/rich/decision.hpp"

namespace nanet::engine {

using flow::Counter;

RichProcessor::RichProcessor(const ProcessorConfig& config, std::vector<std::uint32_t> first_source, std::uint32_t source_count,
                             AnswerWriter* answers, flow::Counters& counters, RingMonitor& monitor, ChannelMonitor& channels)
    : config_(config),
      answers_(answers),
      counters_(counters),
      monitor_(monitor),
      channels_(channels),
      builder_(config.merge, std::move(first_source), source_count, *this, counters) {}

void RichProcessor::process(const Completion& completion, flow::Clop& clop) {
  builder_.process(completion, clop);
  if (answers_ != nullptr) answers_->flush();
}

void RichProcessor::tick(std::uint64_t caught_up_ns) {
  if (builder_.tick(caught_up_ns) > 0 && answers_ != nullptr) answers_->flush();
}

void RichProcessor::finish() {
  builder_.finish(flow::clock_now_ns());
  if (answers_ != nullptr) answers_->flush();
}

void RichProcessor::judge_batch(std::span<const rich::EventHits> all_hits, std::span<wire::Primitive> answers,
                                std::uint64_t arrival_ns) {
  const std::span<const rich::EventHits> events = channels_.admit(all_hits, arrival_ns);
  const auto rings = std::span(batch_rings_).first(events.size());
  rich::find_rings(config_.finder, events, rings);
  std::uint64_t found = 0;
  std::uint64_t electrons = 0;
  std::uint64_t unmapped = 0;
  std::uint64_t over = 0;
  std::uint64_t outside = 0;
  for (std::size_t e = 0; e < events.size(); ++e) {
    const rich::Verdict verdict = rich::judge(rings[e], config_.decision.cuts);
    found += verdict.rings;
    electrons += verdict.electrons;
    unmapped += std::min(events[e].count, rich::kMaxHits) - rings[e].mapped_hits;
    over += rings[e].more_rings;
    outside += verdict.outside;
    answers[e].id = rich::primitive_id(verdict, config_.decision.conditions);
    monitor_.record(events[e], rings[e], verdict, answers[e]);
  }
  if (answers_ != nullptr) answers_->add(answers, arrival_ns);
  counters_.add(Counter::rings_found, found);
  counters_.add(Counter::rings_electron, electrons);
  counters_.add(Counter::rings_over_answer, over);
  counters_.add(Counter::rings_outside, outside);
  counters_.add(Counter::hits_unmapped, unmapped);
  counters_.add(Counter::hits_masked, channels_.masked_hits());
  counters_.add(Counter::events_answered, events.size());
}

}  // namespace nanet::engine
