// SPDX-License-Identifier: Apache-2.0
// EventForwarder: events of accepted packets (unpacked, merged if so configured) -> M2EGP packets for another node. "Build and
// forward": the node that gets them has whole events of one source and needs no merging.
//
// What it sends is a source like any other: sequence numbers, running event numbers, run markers (three of each, as one may be
// lost), so that the next node's books balance against events_forwarded + events_unsent. The first packet of a run follows its start markers;
// a new run of the boards is a new run here; end() ends the run.
//
// Full packets all have the same length (zeros fill the rest), so that a link with segmentation offload sends a batch of them as
// one message. A packet leaves when it is full or at the end of a completion's events.
//
// Books: what the merger closed (without merging: events received) = events_forwarded + events_unsent + events_discarded. The first two are
// counted when the link has had their packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nanet/engine/tx_slots.hpp"
#include "nanet/event/event_sink.hpp"
#include "nanet/na62/config.hpp"
#include "nanet/wire/m2egp.hpp"

namespace nanet::na62 {

class EventForwarder final : public event::EventSink {
 public:
  // inline_transmitter: as TxSlots.
  EventForwarder(flow::TxRing& ring, flow::CompletionQueue& sent_queue, const ForwardConfig& config, flow::Counters& counters,
                 engine::Transmitter* inline_transmitter);

  void begin_run() override { end(); }
  void take(std::span<const event::Event> events, std::uint64_t arrival_ns) override;
  void flush() override;

  // Sends end markers. What comes next belongs to a new run. Without an event in between, only once.
  void end() override;

 private:
  void begin(std::uint64_t arrival_ns);
  void post(std::size_t packet_bytes);
  void post_markers(const wire::M2egpHeader& what);
  wire::M2egpHeader header() const;

  engine::TxSlots slots_;
  const ForwardConfig config_;
  flow::Counters& counters_;
  std::optional<wire::M2egpBuilder> builder_;  // on the slot being written, if one is
  std::uint64_t oldest_arrival_ns_ = 0;
  std::uint64_t next_event_number_ = 0;  // of this run
  std::uint32_t events_in_packet_ = 0;   // of builder_
  std::uint32_t sequence_ = 0;
  bool in_run_ = false;  // start markers are sent, end markers are not
  bool ever_ran_ = false;
};

}  // namespace nanet::na62
