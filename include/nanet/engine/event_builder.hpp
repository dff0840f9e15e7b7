// SPDX-License-Identifier: Apache-2.0
// EventBuilder: completions in, whole events out, in batches, to one sink: unpacks packets and merges the parts of an event that several
// sources send. The CLOP of a packet determines its protocol.
//
// An event's hits are not copied if that can be avoided: they lie in the packet, in the builder's scratch memory or in the
// merger, and are valid until EventSink::take returns.
//
// Books (docs/design/books.md 4 and 5): parts_* and events_* of event building are the builder's; every event that the merger
// closes is given to the sink or counted as events_discarded.
//
// Thread rules: as Consumer. Nothing is allocated after the constructor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nanet/contract.hpp"
#include "nanet/engine/config.hpp"
#include "nanet/engine/consumer.hpp"
#include "nanet/engine/protocol.hpp"
#include "nanet/event/event_sink.hpp"
#include "nanet/event/merger.hpp"
#include "nanet/event/parts.hpp"
#include "nanet/flow/clop.hpp"
#include "nanet/flow/completion_queue.hpp"
#include "nanet/flow/counters.hpp"
#include "nanet/flow/payload_memory.hpp"

namespace nanet::engine {

// What fills a CLOP.
struct EventOrigin {
  flow::Clop* clop;
  const Protocol* protocol;
  std::uint32_t first_source;  // where its sources begin in the numbering over all CLOPs
};

class EventBuilder final : public Consumer {
 public:
  static constexpr std::size_t kBatch = event::kBatchEventsMax;

  // origins: by Completion::clop. Several sources need `merge`; a protocol without events is refused (SetupError).
  EventBuilder(flow::CompletionQueue& completions, std::vector<EventOrigin> origins, std::uint32_t source_count,
               const std::optional<MergeConfig>& merge, std::unique_ptr<event::EventSink> sink, flow::Counters& counters);

  std::uint32_t poll(std::uint64_t caught_up_ns, std::uint64_t now_ns) override;
  void finish() override;
  std::uint64_t events_opened() const override { return merger_ ? merger_->stats().events_opened : 0; }

  // Takes every event of a buffer whose packets are of this type. Protocol::read calls it.
  template <class Type>
  void read(const Type& type, const Completion& completion, flow::Clop& clop, std::uint32_t first_source);

 private:
  template <class Type>
  void gather(const Type& type, std::span<const std::byte> payload, std::uint64_t arrival_ns);
  template <class Type>
  void merge(const Type& type, std::span<const std::byte> payload, std::uint32_t source, std::uint64_t now_ns);
  void process(const Completion& completion);
  void tick(std::uint64_t caught_up_ns);
  void make_room(std::size_t parts, std::uint64_t now_ns);
  void begin_run(std::uint64_t arrival_ns);
  void give_merged(std::uint64_t arrival_ns);
  void add_to_batch(const event::Event& event, std::uint64_t arrival_ns) {
    batch_[batch_count_] = event;
    if (++batch_count_ == kBatch) give_batch(arrival_ns);
  }
  void give_batch(std::uint64_t arrival_ns);

  flow::CompletionQueue& completions_;
  const std::vector<EventOrigin> origins_;
  const std::optional<MergeConfig> merge_;
  const std::unique_ptr<event::EventSink> sink_;
  flow::Counters& counters_;
  std::unique_ptr<event::Merger> merger_;
  std::uint32_t parts_uncleared_ = 0;  // given to the merger since its ready list was cleared
  std::uint32_t parts_uncleared_max_ = 0;
  std::vector<std::uint8_t> source_has_data_;  // since the last begin_run
  std::vector<std::uint16_t> scratch_;         // unpacked hits of a batch
  std::array<event::Event, kBatch> batch_{};
  std::size_t batch_count_ = 0;
};

template <class Type>
void EventBuilder::read(const Type& type, const Completion& completion, flow::Clop& clop, std::uint32_t first_source) {
  const std::span<const std::byte> buffer = clop.buffer(completion.buffer_index);
  const std::uint64_t arrival_ns = merger_ ? completion.last_packet_ns : completion.first_packet_ns;
  for (const PacketRef& ref : clop.packet_index(completion.buffer_index).first(completion.packet_count)) {
    const auto payload = flow::payload_of(completion, buffer, ref);
    const std::uint32_t source = first_source + (ref.source & PacketRef::source_mask);
    // Once per run, although each source says so.
    if ((ref.source & PacketRef::run_start) != 0 && source_has_data_[source] != 0) begin_run(arrival_ns);
    source_has_data_[source] = 1;
    if (merger_) {
      merge(type, payload, source, arrival_ns);
    } else {
      gather(type, payload, arrival_ns);
    }
  }
}

// One source: its packets hold whole events.
template <class Type>
void EventBuilder::gather(const Type& type, std::span<const std::byte> payload, std::uint64_t arrival_ns) {
  const auto room = [this] { return scratch_.data() + batch_count_ * Type::kScratchHits; };
  type.for_each_event(type.open(payload), room, [&](const event::Event& event) { add_to_batch(event, arrival_ns); });
}

template <class Type>
void EventBuilder::merge(const Type& type, std::span<const std::byte> payload, std::uint32_t source, std::uint64_t now_ns) {
  const auto packet = type.open(payload);
  make_room(type.event_count(packet), now_ns);
  const auto room = [this] { return scratch_.data(); };
  type.for_each_event(packet, room, [&](const event::Event& event) {
    const std::uint64_t key = event::event_key(event.timestamp, event.fine_time);
    if constexpr (Type::kHitsPadded) {
      merger_->add_padded_part(source, key, event.hits, event.count, now_ns);
    } else {
      merger_->add_part(source, key, event.hits, event.count, now_ns);
    }
  });
}

}  // namespace nanet::engine
