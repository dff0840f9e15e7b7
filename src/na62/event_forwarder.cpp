// SPDX-License-Identifier: Apache-2.0
#include "na62/event_forwarder.hpp"

#include <algorithm>
#include <utility>

#include "nanet/flow/clock.hpp"

namespace nanet::na62 {
namespace {

using flow::Counter;

constexpr int kMarkerRepeats = 3;  // as the boards do

}  // namespace

EventForwarder::EventForwarder(flow::TxRing& ring, flow::CompletionQueue& sent_queue, const ForwardConfig& config,
                               flow::Counters& counters, engine::Transmitter* inline_transmitter)
    : slots_(ring, sent_queue, counters, inline_transmitter,
             {.sent = Counter::packets_forwarded, .waited = Counter::forwards_waited}),
      config_(config),
      counters_(counters) {}

void EventForwarder::take(std::span<const event::Event> events, std::uint64_t arrival_ns) {
  std::uint64_t cut = 0;
  for (const event::Event& event : events) {
    const wire::MgpEvent head{
        .timestamp = event.timestamp, .fine_time = event.fine_time, .event_number = static_cast<std::uint16_t>(next_event_number_)};
    const std::size_t hit_count = std::min<std::size_t>(event.count, wire::kM2egpHitsMax);
    cut += hit_count != event.count;
    const std::span<const std::uint16_t> hits(event.hits, hit_count);
    if (!builder_) begin(arrival_ns);
    if (!builder_->add_event(head, hits)) {
      post(config_.packet_bytes_max);
      begin(arrival_ns);
      builder_->add_event(head, hits);  // an empty packet has room for any event
    }
    ++next_event_number_;
    ++events_in_packet_;
  }
  if (cut > 0) counters_.add(Counter::events_forwarded_cut, cut);
}

void EventForwarder::flush() {
  if (builder_) post(0);
  slots_.ring_doorbell();
}

void EventForwarder::end() {
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

void EventForwarder::begin(std::uint64_t arrival_ns) {
  oldest_arrival_ns_ = arrival_ns;
  if (!in_run_) [[unlikely]] {
    post_markers({.run_start = true});
    in_run_ = true;
  }
  const std::span<std::byte> slot = slots_.acquire();
  builder_.emplace(slot.first(std::min<std::size_t>(slot.size(), config_.packet_bytes_max)));
}

void EventForwarder::post(std::size_t packet_bytes) {
  slots_.post(builder_->finish(header(), packet_bytes).size(), oldest_arrival_ns_, std::exchange(events_in_packet_, 0));
  builder_.reset();
  ++sequence_;
}

void EventForwarder::post_markers(const wire::M2egpHeader& what) {
  for (int repeat = 0; repeat < kMarkerRepeats; ++repeat) {
    wire::M2egpHeader marker = header();
    marker.run_start = what.run_start;
    marker.run_end = what.run_end;
    slots_.post(wire::make_m2egp_marker(slots_.acquire(), marker, next_event_number_).size(), 0);  // it answers no packet
  }
}

wire::M2egpHeader EventForwarder::header() const {
  return {.source_id = config_.source_id,
          .source_sub_id = config_.source_sub_id,
          .sequence = sequence_,
          .send_time_ns = static_cast<std::uint32_t>(flow::clock_now_ns())};
}

}  // namespace nanet::na62
