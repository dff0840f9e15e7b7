// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/event_forwarder.hpp"

#include <algorithm>
#include <utility>

#include "nanet/flow/clock.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;

constexpr int kMarkerRepeats = 3;  // as the boards do

}  // namespace

EventWriter::EventWriter(flow::TxRing& ring, flow::CompletionQueue& sent_queue, const ForwardConfig& config,
                         flow::Counters& counters, Transmitter* inline_transmitter)
    : slots_(ring, sent_queue, counters, inline_transmitter,
             {.sent = Counter::packets_forwarded, .waited = Counter::forwards_waited}),
      config_(config),
      counters_(counters) {}

void EventWriter::add(std::span<const rich::EventHits> events, std::span<const wire::Primitive> times, std::uint64_t arrival_ns) {
  std::uint64_t cut = 0;
  for (std::size_t e = 0; e < events.size(); ++e) {
    const wire::MgpEvent event{.timestamp = times[e].timestamp,
                               .fine_time = times[e].fine_time,
                               .event_number = static_cast<std::uint16_t>(next_event_number_)};
    const std::size_t hit_count = std::min<std::size_t>(events[e].count, wire::kM2egpHitsMax);
    cut += hit_count != events[e].count;
    const std::span<const std::uint16_t> hits(events[e].hits, hit_count);
    if (!builder_) begin(arrival_ns);
    if (!builder_->add_event(event, hits)) {
      post(config_.packet_bytes_max);
      begin(arrival_ns);
      builder_->add_event(event, hits);  // an empty packet has room for any event
    }
    ++next_event_number_;
  }
  counters_.add(Counter::events_forwarded, events.size());
  if (cut > 0) counters_.add(Counter::events_forwarded_cut, cut);
}

void EventWriter::flush() {
  if (builder_) post(0);
  slots_.ring_doorbell();
}

void EventWriter::end_run() {
  if (!in_run_ && ever_ran_) return;
  if (builder_) post(0);
  if (!in_run_) post_markers({.run_start = true});  // a run without an event
  post_markers({.run_end = true});
  slots_.ring_doorbell();
  in_run_ = false;
  ever_ran_ = true;
  sequence_ = 0;
  next_event_number_ = 0;
}

void EventWriter::begin(std::uint64_t arrival_ns) {
  oldest_arrival_ns_ = arrival_ns;
  if (!in_run_) [[unlikely]] {
    post_markers({.run_start = true});
    in_run_ = true;
  }
  const std::span<std::byte> slot = slots_.acquire();
  builder_.emplace(slot.first(std::min<std::size_t>(slot.size(), config_.packet_bytes_max)));
}

void EventWriter::post(std::size_t packet_bytes) {
  slots_.post(builder_->finish(header(), packet_bytes).size(), oldest_arrival_ns_);
  builder_.reset();
  ++sequence_;
}

void EventWriter::post_markers(const wire::M2egpHeader& what) {
  for (int repeat = 0; repeat < kMarkerRepeats; ++repeat) {
    wire::M2egpHeader marker = header();
    marker.run_start = what.run_start;
    marker.run_end = what.run_end;
    const std::uint64_t now_ns = flow::clock_now_ns();
    slots_.post(wire::make_m2egp_marker(slots_.acquire(), marker, next_event_number_).size(), now_ns);
  }
}

wire::M2egpHeader EventWriter::header() const {
  return {.source_id = config_.source_id,
          .source_sub_id = config_.source_sub_id,
          .sequence = sequence_,
          .send_time_ns = static_cast<std::uint32_t>(flow::clock_now_ns())};
}

EventForwarder::EventForwarder(const ProcessorConfig& config, std::vector<std::uint32_t> first_source, std::uint32_t source_count,
                               EventWriter& writer, flow::Counters& counters)
    : writer_(writer), builder_(config.merge, std::move(first_source), source_count, *this, counters) {}

void EventForwarder::process(const Completion& completion, flow::Clop& clop) {
  builder_.process(completion, clop);
  writer_.flush();
}

void EventForwarder::tick(std::uint64_t caught_up_ns) {
  if (builder_.tick(caught_up_ns) > 0) writer_.flush();
}

void EventForwarder::finish() {
  builder_.finish(flow::clock_now_ns());
  writer_.end_run();
}

}  // namespace nanet::engine
