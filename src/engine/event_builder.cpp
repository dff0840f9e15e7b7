// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/event_builder.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/merger_counters.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;

std::size_t scratch_hits(const std::vector<EventOrigin>& origins) {
  std::size_t most = 0;
  for (const EventOrigin& origin : origins) most = std::max(most, origin.protocol->scratch_hits);
  return most;
}

}  // namespace

EventBuilder::EventBuilder(flow::CompletionQueue& completions, std::vector<EventOrigin> origins, std::uint32_t source_count,
                           const std::optional<MergeConfig>& merge, std::unique_ptr<event::EventSink> sink, flow::Counters& counters)
    : completions_(completions),
      origins_(std::move(origins)),
      merge_(merge),
      sink_(std::move(sink)),
      counters_(counters),
      source_has_data_(source_count, 0),
      scratch_(kBatch * scratch_hits(origins_)) {
  for (const EventOrigin& origin : origins_) {
    if (origin.protocol->read != nullptr) continue;
    throw SetupError("no events in packets of protocol " + std::string(origin.protocol->name),
                     "nothing is known of what is in them", "choose another protocol, or processor: {kind: count}");
  }
  if (merge) {
    merger_ = std::make_unique<event::Merger>(event::MergerConfig{.source_count = source_count,
                                                                  .window_ns = merge->window_us * 1000,
                                                                  .open_events_max = merge->open_events_max,
                                                                  .hits_max = event::kHitsMax});
    parts_uncleared_max_ = std::max(merge->open_events_max, 256u);
  } else if (source_count > 1) {
    throw SetupError("several sources but no merge", "each board sends only its part of an event",
                     "add merge: {window_us: 200} under processor:");
  }
}

std::uint32_t EventBuilder::poll(std::uint64_t caught_up_ns, std::uint64_t) {
  std::uint32_t done = 0;
  for (; done < kCompletionsATurn; ++done) {
    const Completion* completion = completions_.peek();
    if (completion == nullptr) break;
    process(*completion);
    origins_[completion->clop].clop->release();
    completions_.pop();
  }
  if (done < kCompletionsATurn) tick(caught_up_ns);
  return done;
}

void EventBuilder::process(const Completion& completion) {
  const EventOrigin& origin = origins_[completion.clop];
  origin.protocol->read(*origin.protocol, *this, completion, *origin.clop, origin.first_source);
  if (merger_) {
    give_merged(completion.last_packet_ns);
    publish_merger(merger_->stats(), counters_);
  } else {
    give_batch(completion.first_packet_ns);
  }
  sink_->flush();
}

// The window of an event runs only as far as the data has been looked at: after a pause of this thread, parts that wait in the
// socket are not late.
void EventBuilder::tick(std::uint64_t caught_up_ns) {
  if (!merger_) return;
  merger_->expire(caught_up_ns);
  if (merger_->ready().empty()) return;
  give_merged(caught_up_ns);
  publish_merger(merger_->stats(), counters_);
  sink_->flush();
}

void EventBuilder::finish() {
  if (merger_) {
    const std::uint64_t now_ns = flow::clock_now_ns();
    merger_->drain(now_ns);
    give_merged(now_ns);
    publish_merger(merger_->stats(), counters_);
  }
  sink_->end();
}

// So that the merger never runs out of events for `parts` more parts.
void EventBuilder::make_room(std::size_t parts, std::uint64_t now_ns) {
  if (parts_uncleared_ + parts > parts_uncleared_max_ || merger_->ready().size() > kBatch / 2) give_merged(now_ns);
  parts_uncleared_ += static_cast<std::uint32_t>(parts);
}

void EventBuilder::begin_run(std::uint64_t arrival_ns) {
  std::fill(source_has_data_.begin(), source_has_data_.end(), std::uint8_t{0});
  if (merger_) {
    merger_->flush();
    give_merged(arrival_ns);
  } else {
    give_batch(arrival_ns);
  }
  sink_->begin_run();
}

void EventBuilder::give_merged(std::uint64_t arrival_ns) {
  std::uint64_t discarded = 0;
  for (const event::MergedEvent* merged : merger_->ready()) {
    if (merged->closed_by != event::CloseReason::complete && merge_->incomplete == IncompletePolicy::drop) {
      ++discarded;
      continue;
    }
    add_to_batch({.hits = merged->hits,
                  .count = merged->hit_count,
                  .timestamp = event::key_timestamp(merged->key),
                  .fine_time = event::key_fine_time(merged->key)},
                 arrival_ns);
  }
  give_batch(arrival_ns);  // before clear_ready: the hits are the merger's
  merger_->clear_ready();
  parts_uncleared_ = 0;
  if (discarded > 0) counters_.add(Counter::events_discarded, discarded);
}

void EventBuilder::give_batch(std::uint64_t arrival_ns) {
  const std::size_t count = std::exchange(batch_count_, 0);
  if (count > 0) sink_->take(std::span(batch_).first(count), arrival_ns);
}

}  // namespace nanet::engine
