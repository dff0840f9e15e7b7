// SPDX-License-Identifier: Apache-2.0
// RichTrigger: events -> their hits except the masked ones -> rings -> primitives.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "na62/answer_writer.hpp"
#include "na62/channel_monitor.hpp"
#include "na62/ring_monitor.hpp"
#include "nanet/event/event_sink.hpp"
#include "nanet/rich/ring.hpp"

namespace nanet::na62 {

class RichTrigger final : public event::EventSink {
 public:
  // answers: none: rings are found and counted, and nothing is sent.
  RichTrigger(const RichConfig& config, std::optional<AnswerWriter> answers, flow::Counters& counters, RingMonitor& monitor,
              ChannelMonitor& channels);

  void take(std::span<const event::Event> events, std::uint64_t arrival_ns) override;
  void flush() override {
    if (answers_) answers_->flush();
  }

 private:
  const rich::FinderConfig finder_;
  const rich::Decision decision_;
  std::optional<AnswerWriter> answers_;
  flow::Counters& counters_;
  RingMonitor& monitor_;
  ChannelMonitor& channels_;
  std::array<rich::EventRings, event::kBatchEventsMax> rings_{};
  std::array<wire::Primitive, event::kBatchEventsMax> primitives_{};
};

}  // namespace nanet::na62
