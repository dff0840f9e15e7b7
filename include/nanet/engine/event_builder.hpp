// SPDX-License-Identifier: Apache-2.0
// EventBuilder: completions in, whole events out, in batches: unpacks packed packets and merges the parts that several sources
// send of one event. What both the ring processor and the forwarder do first. Packets are of MGP or M2EGP; each says which.
//
// An event's hits are not copied where that can be helped: they lie in the packet, in the builder's scratch memory or in the
// merger, and are valid until EventSink::take returns.
//
// Books (docs/design/books.md 4 and 5): parts_* and events_* of event building are the builder's; every event that the merger
// closes is given to the sink or counted as events_discarded.
//
// Thread rules: one thread calls process, tick and finish. Nothing is allocated after the constructor.
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
#include "nanet/event/merger.hpp"
#include "nanet/flow/clop.hpp"
#include "nanet/flow/counters.hpp"
#include "nanet/rich/math_fit.hpp"
#include "nanet/wire/m2egp.hpp"
#include "nanet/wire/mgp.hpp"
#include "nanet/wire/mtp.hpp"

namespace nanet::engine {

// Who takes the events. Called once a batch, never once an event.
class EventSink {
 public:
  // events[e] is what the detector saw at answers[e].timestamp and .fine_time; answers[e].id is not set yet: that is the sink's
  // to write, if it answers. At least one event. arrival_ns: when the packets came that these events are from.
  virtual void take(std::span<const rich::EventHits> events, std::span<wire::Primitive> answers, std::uint64_t arrival_ns) = 0;

  // The sources began a new run, whose timestamps may start again; every event of the run before has been taken.
  virtual void begin_run() {}

 protected:
  ~EventSink() = default;
};

class EventBuilder {
 public:
  static constexpr std::size_t kBatch = 256;  // events a take(); a ring fit's sums stay in the first-level cache

  // first_source[clop]: where the sources of that CLOP begin in the numbering over all links. Several sources need `merge`
  // (SetupError).
  EventBuilder(const std::optional<MergeConfig>& merge, std::vector<std::uint32_t> first_source, std::uint32_t source_count,
               EventSink& sink, flow::Counters& counters);

  // Gives the sink every event that the buffer of `completion` completes.
  void process(const Completion& completion, flow::Clop& clop);

  // Everything that had arrived at caught_up_ns has been processed: gives the events whose window is over. Returns their number.
  std::size_t tick(std::uint64_t caught_up_ns);

  // End of the run: gives everything that is still open.
  void finish(std::uint64_t now_ns);

  // Events of which at least one part came. 0 without merging.
  std::uint64_t events_opened() const { return merger_ ? merger_->stats().events_opened : 0; }

 private:
  void gather(std::span<const std::byte> payload, std::uint64_t arrival_ns);
  void gather_mgp(const wire::MgpView& packet, std::uint64_t arrival_ns);
  void merge(std::span<const std::byte> payload, std::uint32_t source, std::uint64_t now_ns);
  void make_room(std::size_t parts, std::uint64_t now_ns);
  void begin_run(std::uint64_t arrival_ns);
  void give_merged(std::uint64_t arrival_ns);
  void add_to_batch(const rich::EventHits& hits, std::uint32_t timestamp, std::uint8_t fine_time, std::uint64_t arrival_ns) {
    batch_hits_[batch_count_] = hits;
    batch_answers_[batch_count_] = {.timestamp = timestamp, .fine_time = fine_time};
    if (++batch_count_ == kBatch) give_batch(arrival_ns);
  }
  void give_batch(std::uint64_t arrival_ns);

  const std::optional<MergeConfig> merge_;
  const std::vector<std::uint32_t> first_source_;
  EventSink& sink_;
  flow::Counters& counters_;
  std::unique_ptr<event::Merger> merger_;
  std::uint32_t parts_uncleared_ = 0;  // given to the merger since its ready list was cleared
  std::uint32_t parts_uncleared_max_ = 0;
  std::vector<std::uint8_t> source_has_data_;  // since the last begin_run
  std::vector<std::uint16_t> scratch_;         // unpacked hits of a batch of packed events
  std::array<rich::EventHits, kBatch> batch_hits_{};
  std::array<wire::Primitive, kBatch> batch_answers_{};
  std::size_t batch_count_ = 0;
};

}  // namespace nanet::engine
