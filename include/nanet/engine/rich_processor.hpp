// SPDX-License-Identifier: Apache-2.0
// RichProcessor: events of accepted packets (merged from several boards if so configured) -> rings -> primitives.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "nanet/engine/answer_writer.hpp"
#include "nanet/engine/config.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/engine/ring_monitor.hpp"
#include "nanet/event/merger.hpp"
#include "nanet/rich/math_fit.hpp"
#include "nanet/wire/mgp.hpp"

namespace nanet::engine {

class RichProcessor final : public Processor {
 public:
  // first_source[clop]: where the sources of that CLOP begin in the numbering over all links. answers may be null: then rings
  // are found and counted, and nothing is sent.
  RichProcessor(const ProcessorConfig& config, std::vector<std::uint32_t> first_source, std::uint32_t source_count,
                AnswerWriter* answers, flow::Counters& counters, RingMonitor& monitor);

  void process(const Completion& completion, flow::Clop& clop) override;
  void tick(std::uint64_t caught_up_ns) override;
  void finish() override;

  // Events of which at least one part came. 0 without merging.
  std::uint64_t events_opened() const { return merger_ ? merger_->stats().events_opened : 0; }

 private:
  static constexpr std::size_t kBatch = 256;  // events a fit; their sums stay in the first-level cache

  void gather(const wire::MgpView& packet, std::uint64_t arrival_ns);
  void merge(const wire::MgpView& packet, std::uint32_t source, std::uint64_t now_ns);
  void begin_run(std::uint32_t source);
  void judge_merged(std::uint64_t arrival_ns);
  void add_to_batch(const rich::EventHits& hits, std::uint32_t timestamp, std::uint8_t fine_time, std::uint64_t arrival_ns) {
    batch_hits_[batch_count_] = hits;
    batch_answers_[batch_count_] = {.timestamp = timestamp, .fine_time = fine_time};
    if (++batch_count_ == kBatch) judge_batch(arrival_ns);
  }
  void judge_batch(std::uint64_t arrival_ns);
  void publish_merger();

  const ProcessorConfig config_;
  const std::vector<std::uint32_t> first_source_;
  AnswerWriter* answers_;
  flow::Counters& counters_;
  RingMonitor& monitor_;
  std::unique_ptr<event::Merger> merger_;
  std::uint32_t parts_uncleared_ = 0;  // given to the merger since its ready list was cleared
  std::uint32_t parts_uncleared_max_ = 0;
  std::vector<std::uint8_t> source_has_data_;  // since the last begin_run
  std::vector<std::uint16_t> scratch_;         // unpacked hits of a batch of packed events
  std::array<rich::EventHits, kBatch> batch_hits_{};
  std::array<wire::Primitive, kBatch> batch_answers_{};
  std::array<rich::Ring, kBatch> batch_rings_{};
  std::size_t batch_count_ = 0;
};

}  // namespace nanet::engine
