// SPDX-License-Identifier: Apache-2.0
// GpuConsumer: a GPU as one of the engine's consumers. The work is gpu::EventProcessor's; this counts it, watches over it, and takes
// its spectra at the end.
//
// Thread rules: as Consumer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "na62/channel_monitor.hpp"
#include "na62/ring_monitor.hpp"
#include "nanet/engine/consumer.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/event/parts.hpp"
#include "nanet/flow/counters.hpp"
#include "nanet/gpu/event_processor.hpp"
#include "nanet/na62/config.hpp"

namespace nanet::na62 {

// Makes what works on a GPU; a test gives the engine another one.
using GpuFactory = std::function<std::unique_ptr<gpu::EventProcessor>(const gpu::EventProcessorConfig&, gpu::ContractMemory)>;

// gpu::EventProcessor::make; in a build without CUDA throws SetupError.
std::unique_ptr<gpu::EventProcessor> make_event_processor(const gpu::EventProcessorConfig& config, gpu::ContractMemory memory);

event::MergerConfig merger_config(const engine::MergeConfig& merge, std::uint32_t source_count);

// The configuration of a lane's GPU.
gpu::EventProcessorConfig event_processor_config(const RichConfig& config, const engine::LaneParts& parts);

class GpuConsumer final : public engine::Consumer {
 public:
  // merges: it builds events. counters, monitor and channels: of the thread that calls poll.
  GpuConsumer(std::unique_ptr<gpu::EventProcessor> processor, bool merges, flow::Counters& counters, RingMonitor& monitor,
              ChannelMonitor& channels)
      : processor_(std::move(processor)), merges_(merges), counters_(counters), monitor_(monitor), channels_(channels) {}

  std::uint32_t poll(std::uint64_t caught_up_ns, std::uint64_t now_ns) override;
  void finish() override;
  bool works_alone() const override { return true; }
  bool busy() const override { return processor_->busy(); }
  std::string_view fault() const override { return processor_->fault(); }
  std::uint64_t events_opened() const override { return seen_.merger.events_opened; }
  std::string device_name() const override { return processor_->device_name(); }

 private:
  void count();

  const std::unique_ptr<gpu::EventProcessor> processor_;
  const bool merges_;
  gpu::Totals seen_;  // what the GPU said last
  flow::Counters& counters_;
  RingMonitor& monitor_;
  ChannelMonitor& channels_;
};

}  // namespace nanet::na62
