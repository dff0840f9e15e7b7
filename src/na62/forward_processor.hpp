// SPDX-License-Identifier: Apache-2.0
// ForwardProcessor: builds events and sends them on whole, as M2EGP packets, to another node.
#pragma once

#include <memory>

#include "nanet/engine/processor.hpp"
#include "nanet/na62/config.hpp"

namespace nanet::na62 {

class ForwardProcessor final : public engine::Processor {
 public:
  explicit ForwardProcessor(const ForwardConfig& config) : config_(config) {}

  void check(const engine::EngineConfig& engine) const override;
  engine::ProcessorNeeds needs() const override;
  std::unique_ptr<engine::Consumer> make_consumer(engine::LaneParts parts) override;

 private:
  const ForwardConfig config_;
};

}  // namespace nanet::na62
