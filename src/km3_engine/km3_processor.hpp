// SPDX-License-Identifier: Apache-2.0
// Processor `km3`: time slices of a KM3NeT detector and its trigger.
#pragma once

#include "km3_engine/config.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/km3/detector.hpp"

namespace nanet::km3_engine {

class Km3Processor final : public engine::Processor {
 public:
  // Reads the detector file, if one is named. Throws SetupError.
  Km3Processor(const Km3Config& config, bool sends);

  void check(const engine::EngineConfig& engine) const override;
  engine::ProcessorNeeds needs() const override;
  std::unique_ptr<engine::Consumer> make_consumer(engine::LaneParts parts) override;

 private:
  Km3Config config_;
  bool sends_;
  km3::Detector detector_;
};

}  // namespace nanet::km3_engine
