// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/rich_processor.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "nanet/flow/clock.hpp"
#include "nanet/rich/decision.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;

constexpr std::uint32_t kMergedHitsMax = rich::kMaxHits;

}  // namespace

RichProcessor::RichProcessor(const ProcessorConfig& config, std::vector<std::uint32_t> first_source, std::uint32_t source_count,
                             AnswerWriter* answers, flow::Counters& counters, RingMonitor& monitor)
    : config_(config),
      first_source_(std::move(first_source)),
      answers_(answers),
      counters_(counters),
      monitor_(monitor),
      source_has_data_(source_count, 0),
      scratch_(kBatch * wire::kMgpScratchHits) {
  if (config.merge) {
    merger_ = std::make_unique<event::Merger>(event::MergerConfig{.source_count = source_count,
                                                                  .window_ns = config.merge->window_ns,
                                                                  .open_events_max = config.merge->open_events_max,
                                                                  .hits_max = kMergedHitsMax});
    parts_uncleared_max_ = std::max(config.merge->open_events_max, 256u);
  } else if (source_count > 1) {
    throw SetupError("several sources but no merge", "each board sends only its part of an event",
                     "add merge: {window_us: 200} under processor:");
  }
}

void RichProcessor::process(const Completion& completion, flow::Clop& clop) {
  const std::span<const std::byte> buffer = clop.buffer(completion.buffer_index);
  const std::uint32_t first_source = first_source_[completion.clop];
  for (const PacketRef& ref : clop.packet_index(completion.buffer_index).first(completion.packet_count)) {
    const auto packet = wire::MgpView::from_checked(buffer.subspan(ref.offset, ref.bytes));
    if (merger_) {
      const std::uint32_t source = first_source + (ref.source & PacketRef::source_mask);
      if (ref.source & PacketRef::run_start) begin_run(source);
      merge(packet, source, completion.last_packet_ns);
    } else {
      gather(packet, completion.first_packet_ns);
    }
  }
  if (merger_) {
    judge_merged(completion.last_packet_ns);
    publish_merger();
  } else {
    judge_batch(completion.first_packet_ns);
  }
  if (answers_ != nullptr) answers_->flush();
}

// The window of an event runs only as far as the data has been looked at: after a pause of this thread, parts that wait in the
// socket are not late.
void RichProcessor::tick(std::uint64_t caught_up_ns) {
  if (!merger_) return;
  merger_->expire(caught_up_ns);
  if (merger_->ready().empty()) return;
  judge_merged(caught_up_ns);
  publish_merger();
  if (answers_ != nullptr) answers_->flush();
}

void RichProcessor::finish() {
  if (!merger_) return;
  const std::uint64_t now_ns = flow::clock_now_ns();
  merger_->drain(now_ns);
  judge_merged(now_ns);
  publish_merger();
  if (answers_ != nullptr) answers_->flush();
}

// One source: its packets hold whole events.
void RichProcessor::gather(const wire::MgpView& packet, std::uint64_t arrival_ns) {
  if (packet.header().layout == wire::MgpLayout::padded) {
    for (std::size_t i = 0; i < packet.header().event_count; ++i) {
      const wire::MgpEvent event = packet.event(i);
      add_to_batch({packet.slot_hits(i), event.hit_count}, event.timestamp, event.fine_time, arrival_ns);
    }
    return;
  }
  wire::MgpPackedCursor cursor(packet);
  wire::MgpEvent event;
  for (;;) {
    std::uint16_t* const channels = scratch_.data() + batch_count_ * wire::kMgpScratchHits;
    if (!cursor.next(event, channels)) return;
    add_to_batch({channels, event.hit_count}, event.timestamp, event.fine_time, arrival_ns);
  }
}

void RichProcessor::merge(const wire::MgpView& packet, std::uint32_t source, std::uint64_t now_ns) {
  source_has_data_[source] = 1;
  if (parts_uncleared_ + packet.header().event_count > parts_uncleared_max_ || merger_->ready().size() > kBatch / 2) {
    judge_merged(now_ns);
  }
  parts_uncleared_ += packet.header().event_count;
  wire::for_each_event(packet, scratch_.data(), [&](const wire::MgpEvent& event, const std::uint16_t* hits) {
    const std::uint64_t key = event::event_key(event.timestamp, event.fine_time);
    merger_->add_padded_part(source, key, hits, event.hit_count, now_ns);
  });
}

// A source began a new run: timestamps may start again. Once a run, although each source says so.
void RichProcessor::begin_run(std::uint32_t source) {
  if (!merger_ || source_has_data_[source] == 0) return;
  std::fill(source_has_data_.begin(), source_has_data_.end(), std::uint8_t{0});
  merger_->flush();
}

void RichProcessor::judge_merged(std::uint64_t arrival_ns) {
  std::uint64_t discarded = 0;
  for (const event::MergedEvent* event : merger_->ready()) {
    if (event->closed_by != event::CloseReason::complete && config_.merge->incomplete == IncompletePolicy::drop) {
      ++discarded;
      continue;
    }
    add_to_batch({event->hits, event->hit_count}, event::key_timestamp(event->key), event::key_fine_time(event->key), arrival_ns);
  }
  judge_batch(arrival_ns);  // before clear_ready: the hits are the merger's
  merger_->clear_ready();
  parts_uncleared_ = 0;
  if (discarded > 0) counters_.add(Counter::events_discarded, discarded);
}

void RichProcessor::judge_batch(std::uint64_t arrival_ns) {
  const std::size_t count = std::exchange(batch_count_, 0);
  if (count == 0) return;
  const auto events = std::span(batch_hits_).first(count);
  const auto rings = std::span(batch_rings_).first(count);
  rich::fit_rings(events, rings);
  std::uint64_t found = 0;
  std::uint64_t electrons = 0;
  std::uint64_t unmapped = 0;
  for (std::size_t e = 0; e < count; ++e) {
    const std::uint16_t id = rich::primitive_id(rings[e], config_.cuts);
    const bool ring_found = (id & rich::kPrimitiveRingFound) != 0;
    found += ring_found;
    electrons += (id & rich::kPrimitiveElectron) != 0;
    unmapped += std::min(events[e].count, rich::kMaxHits) - rings[e].hits;
    batch_answers_[e].id = id;
    monitor_.record(events[e], rings[e], batch_answers_[e], ring_found);
  }
  if (answers_ != nullptr) answers_->add(std::span(batch_answers_).first(count), arrival_ns);
  counters_.add(Counter::rings_found, found);
  counters_.add(Counter::rings_electron, electrons);
  counters_.add(Counter::hits_unmapped, unmapped);
  counters_.add(Counter::events_answered, count);
}

void RichProcessor::publish_merger() {
  const event::MergerStats& totals = merger_->stats();
  counters_.set(Counter::parts_merged, totals.parts_merged);
  counters_.set(Counter::parts_late, totals.parts_late);
  counters_.set(Counter::parts_duplicate, totals.parts_duplicate);
  counters_.set(Counter::parts_no_room, totals.parts_no_room);
  counters_.set(Counter::parts_overflow_hits, totals.parts_overflow_hits);
  counters_.set(Counter::events_complete, totals.events_complete);
  counters_.set(Counter::events_missing_parts, totals.events_missing_parts);
  counters_.set(Counter::events_overflow, totals.events_overflow);
}

}  // namespace nanet::engine
