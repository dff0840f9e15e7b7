// SPDX-License-Identifier: Apache-2.0
// EventForwarder: events of accepted packets (unpacked, merged if so configured) -> M2EGP packets for another node. "Build and
// forward": the node that gets them has whole events of one source and needs no merging.
//
// What it sends is a source like any other: sequence numbers, running event numbers, run markers (three of each, as one may be
// lost), so that the next node's books balance against events_forwarded. The first packet of a run follows its start markers;
// a new run of the boards is a new run here; finish() ends the run.
//
// Full packets all have the same length (zeros fill the rest), so that a link with segmentation offload sends a batch of them as
// one message. A packet leaves when it is full or at the end of a completion's events.
//
// Books: what the merger closed (without merging: events received) = events_forwarded + events_discarded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nanet/engine/config.hpp"
#include "nanet/engine/event_builder.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/engine/tx_slots.hpp"
#include "nanet/wire/m2egp.hpp"

namespace nanet::engine {

// M2EGP packets into TX slots.
class EventWriter {
 public:
  EventWriter(flow::TxRing& ring, flow::CompletionQueue& sent_queue, const ForwardConfig& config, flow::Counters& counters,
              Transmitter* inline_transmitter);

  // arrival_ns: when the packets came that these events are from.
  void add(std::span<const rich::EventHits> events, std::span<const wire::Primitive> times, std::uint64_t arrival_ns);

  // Posts the open packet and rings the doorbell.
  void flush();

  // The run is over: flushes, and sends end markers. What comes then is of a new run. Without an event in between only once.
  void end_run();

  void collect_sent() { slots_.collect_sent(); }

 private:
  void begin(std::uint64_t arrival_ns);
  void post(std::size_t packet_bytes);
  void post_markers(const wire::M2egpHeader& what);
  wire::M2egpHeader header() const;

  TxSlots slots_;
  const ForwardConfig config_;
  flow::Counters& counters_;
  std::optional<wire::M2egpBuilder> builder_;  // on the slot being written, if one is
  std::uint64_t oldest_arrival_ns_ = 0;
  std::uint64_t next_event_number_ = 0;  // of this run
  std::uint32_t sequence_ = 0;
  bool in_run_ = false;  // start markers are sent, end markers are not
  bool ever_ran_ = false;
};

class EventForwarder final : public Processor, private EventSink {
 public:
  // first_source and source_count as RichProcessor's.
  EventForwarder(const ProcessorConfig& config, std::vector<std::uint32_t> first_source, std::uint32_t source_count,
                 EventWriter& writer, flow::Counters& counters);

  void process(const Completion& completion, flow::Clop& clop) override;
  void tick(std::uint64_t caught_up_ns) override;
  void finish() override;
  std::uint64_t events_opened() const override { return builder_.events_opened(); }

 private:
  void take(std::span<const rich::EventHits> events, std::span<wire::Primitive> answers, std::uint64_t arrival_ns) override {
    writer_.add(events, answers, arrival_ns);
  }
  void begin_run() override { writer_.end_run(); }

  EventWriter& writer_;
  EventBuilder builder_;
};

}  // namespace nanet::engine
