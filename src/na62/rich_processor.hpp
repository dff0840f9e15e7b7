// SPDX-License-Identifier: Apache-2.0
// RichProcessor: finds the rings of every event and answers with primitives, on the engine's own thread or on GPUs.
#pragma once

#include <cstddef>
#include <memory>

#include "na62/channel_monitor.hpp"
#include "na62/gpu_consumer.hpp"
#include "na62/ring_monitor.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/na62/config.hpp"

namespace nanet::na62 {

class RichProcessor final : public engine::Processor {
 public:
  // make_gpu: called once for each GPU of the configuration.
  explicit RichProcessor(const RichConfig& config, GpuFactory make_gpu = make_event_processor);

  void check(const engine::EngineConfig& engine) const override;
  engine::ProcessorNeeds needs() const override;
  std::unique_ptr<engine::Consumer> make_consumer(engine::LaneParts parts) override;

  // With a GPU, empty until the end of the run.
  const RingMonitor& rings() const { return rings_; }
  // Likewise. A channel's at_ns is of the clock of Engine::start_ns().
  const ChannelMonitor& channels() const { return channels_; }

 private:
  bool on_gpu() const { return config_.gpu.runtime != gpu::Runtime::cpu; }
  void check_gpu(const engine::EngineConfig& engine) const;
  void check_gpu_merge(const engine::EngineConfig& engine) const;
  std::unique_ptr<engine::Consumer> make_gpu_consumer(engine::LaneParts parts);

  const RichConfig config_;
  const GpuFactory make_gpu_;
  RingMonitor rings_;
  ChannelMonitor channels_;
};

}  // namespace nanet::na62
