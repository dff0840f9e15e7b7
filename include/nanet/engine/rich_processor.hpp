// SPDX-License-Identifier: Apache-2.0
// RichProcessor: events of accepted packets (merged from several boards if so configured) -> their hits but the masked ones -> rings -> primitives.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "nanet/engine/answer_writer.hpp"
#include "nanet/engine/channel_monitor.hpp"
#include "nanet/engine/config.hpp"
#include "nanet/engine/event_builder.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/engine/ring_monitor.hpp"
#include "nanet/rich/ring.hpp"

namespace nanet::engine {

class RichProcessor final : public Processor, private EventSink {
 public:
  // first_source[clop]: where the sources of that CLOP begin in the numbering over all links. answers may be null: then rings
  // are found and counted, and nothing is sent.
  RichProcessor(const ProcessorConfig& config, std::vector<std::uint32_t> first_source, std::uint32_t source_count,
                AnswerWriter* answers, flow::Counters& counters, RingMonitor& monitor, ChannelMonitor& channels);

  void process(const Completion& completion, flow::Clop& clop) override;
  void tick(std::uint64_t caught_up_ns) override;
  void finish() override;

  std::uint64_t events_opened() const override { return builder_.events_opened(); }

 private:
  void take(std::span<const rich::EventHits> events, std::span<wire::Primitive> answers, std::uint64_t arrival_ns) override {
    judge_batch(events, answers, arrival_ns);
  }
  void judge_batch(std::span<const rich::EventHits> all_hits, std::span<wire::Primitive> answers, std::uint64_t arrival_ns);

  const ProcessorConfig config_;
  AnswerWriter* answers_;
  flow::Counters& counters_;
  RingMonitor& monitor_;
  ChannelMonitor& channels_;
  std::array<rich::EventRings, EventBuilder::kBatch> batch_rings_{};
  EventBuilder builder_;
};

}  // namespace nanet::engine
