// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/event_builder.hpp"

#include <algorithm>
#include <utility>

#include "nanet/engine/merger_counters.hpp"
#include "nanet/flow/payload_memory.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;

constexpr std::uint32_t kMergedHitsMax = rich::kMaxHits;

}  // namespace

EventBuilder::EventBuilder(const std::optional<MergeConfig>& merge, std::vector<std::uint32_t> first_source,
                           std::uint32_t source_count, EventSink& sink, flow::Counters& counters)
    : merge_(merge),
      first_source_(std::move(first_source)),
      sink_(sink),
      counters_(counters),
      source_has_data_(source_count, 0),
      scratch_(kBatch * wire::kMgpScratchHits) {
  if (merge) {
    merger_ = std::make_unique<event::Merger>(event::MergerConfig{.source_count = source_count,
                                                                  .window_ns = merge->window_ns,
                                                                  .open_events_max = merge->open_events_max,
                                                                  .hits_max = kMergedHitsMax});
    parts_uncleared_max_ = std::max(merge->open_events_max, 256u);
  } else if (source_count > 1) {
    throw SetupError("several sources but no merge", "each board sends only its part of an event",
                     "add merge: {window_us: 200} under processor:");
  }
}

void EventBuilder::process(const Completion& completion, flow::Clop& clop) {
  const std::span<const std::byte> buffer = clop.buffer(completion.buffer_index);
  const std::uint32_t first_source = first_source_[completion.clop];
  const std::uint64_t arrival_ns = merger_ ? completion.last_packet_ns : completion.first_packet_ns;
  for (const PacketRef& ref : clop.packet_index(completion.buffer_index).first(completion.packet_count)) {
    const auto payload = flow::payload_of(completion, buffer, ref);
    const std::uint32_t source = first_source + (ref.source & PacketRef::source_mask);
    // Once a run, although each source says so.
    if ((ref.source & PacketRef::run_start) != 0 && source_has_data_[source] != 0) begin_run(arrival_ns);
    source_has_data_[source] = 1;
    if (merger_) {
      merge(payload, source, arrival_ns);
    } else {
      gather(payload, arrival_ns);
    }
  }
  if (merger_) {
    give_merged(arrival_ns);
    publish_merger(merger_->stats(), counters_);
  } else {
    give_batch(arrival_ns);
  }
}

// The window of an event runs only as far as the data has been looked at: after a pause of this thread, parts that wait in the
// socket are not late.
std::size_t EventBuilder::tick(std::uint64_t caught_up_ns) {
  if (!merger_) return 0;
  merger_->expire(caught_up_ns);
  const std::size_t closed = merger_->ready().size();
  if (closed == 0) return 0;
  give_merged(caught_up_ns);
  publish_merger(merger_->stats(), counters_);
  return closed;
}

void EventBuilder::finish(std::uint64_t now_ns) {
  if (!merger_) return;
  merger_->drain(now_ns);
  give_merged(now_ns);
  publish_merger(merger_->stats(), counters_);
}

// One source: its packets hold whole events.
void EventBuilder::gather(std::span<const std::byte> payload, std::uint64_t arrival_ns) {
  if (!wire::is_m2egp(payload)) return gather_mgp(wire::MgpView::from_checked(payload), arrival_ns);
  wire::for_each_event(wire::M2egpView::from_checked(payload), [&](const wire::MgpEvent& event, const std::uint16_t* hits) {
    add_to_batch({hits, event.hit_count}, event.timestamp, event.fine_time, arrival_ns);
  });
}

void EventBuilder::gather_mgp(const wire::MgpView& packet, std::uint64_t arrival_ns) {
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

void EventBuilder::merge(std::span<const std::byte> payload, std::uint32_t source, std::uint64_t now_ns) {
  if (wire::is_m2egp(payload)) [[unlikely]] {
    const auto packet = wire::M2egpView::from_checked(payload);
    make_room(packet.header().event_count, now_ns);
    wire::for_each_event(packet, [&](const wire::MgpEvent& event, const std::uint16_t* hits) {
      merger_->add_part(source, event::event_key(event.timestamp, event.fine_time), hits, event.hit_count, now_ns);
    });
    return;
  }
  const auto packet = wire::MgpView::from_checked(payload);
  make_room(packet.header().event_count, now_ns);
  wire::for_each_event(packet, scratch_.data(), [&](const wire::MgpEvent& event, const std::uint16_t* hits) {
    const std::uint64_t key = event::event_key(event.timestamp, event.fine_time);
    merger_->add_padded_part(source, key, hits, event.hit_count, now_ns);
  });
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
  sink_.begin_run();
}

void EventBuilder::give_merged(std::uint64_t arrival_ns) {
  std::uint64_t discarded = 0;
  for (const event::MergedEvent* event : merger_->ready()) {
    if (event->closed_by != event::CloseReason::complete && merge_->incomplete == IncompletePolicy::drop) {
      ++discarded;
      continue;
    }
    add_to_batch({event->hits, event->hit_count}, event::key_timestamp(event->key), event::key_fine_time(event->key), arrival_ns);
  }
  give_batch(arrival_ns);  // before clear_ready: the hits are the merger's
  merger_->clear_ready();
  parts_uncleared_ = 0;
  if (discarded > 0) counters_.add(Counter::events_discarded, discarded);
}

void EventBuilder::give_batch(std::uint64_t arrival_ns) {
  const std::size_t count = std::exchange(batch_count_, 0);
  if (count > 0) sink_.take(std::span(batch_hits_).first(count), std::span(batch_answers_).first(count), arrival_ns);
}

}  // namespace nanet::engine
