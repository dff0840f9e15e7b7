// SPDX-License-Identifier: Apache-2.0
#include "km3_engine/km3_processor.hpp"

#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "km3_engine/slice_builder.hpp"
#include "nanet/config/read.hpp"
#include "nanet/engine/config.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::km3_engine {
namespace {

km3::Detector make_detector(const Km3Config& config) {
  config::require(config, "km3");
  if (config.detector.empty()) return km3::make_towers({.towers = config.towers, .floors = config.floors});
  const std::ifstream file(config.detector);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || !text)
    throw SetupError("cannot read detector '" + config.detector + "'", "there is no such file", "give a file .detx");
  return km3::read_detx(text.str());
}

}  // namespace

Km3Processor::Km3Processor(const Km3Config& config, bool sends)
    : config_(config), sends_(sends), detector_(make_detector(config_)) {
  for (const km3::Floor& floor : detector_.floors()) {
    if (floor.pm_count == 0 || (floor.tower >= 0 && floor.tower <= 255 && floor.number >= 1 && floor.number <= 255)) continue;
    throw SetupError("the detector has floor " + std::to_string(floor.number) + " of tower " + std::to_string(floor.tower),
                     "a packet names towers 0 to 255 and floors 1 to 255", "give a detector with such numbers");
  }
}

void Km3Processor::check(const engine::EngineConfig& engine) const {
  for (const engine::LinkConfig& link : engine.links) {
    if (link.protocol->has_units) continue;
    throw SetupError("link '" + link.name + "' gives packets", "km3 takes units, what a floor sends in a slice",
                     "set protocol: km3-floor for it");
  }
}

engine::ProcessorNeeds Km3Processor::needs() const {
  engine::ProcessorNeeds needs;
  if (sends_) needs.tx_slot_bytes = config_.event_packet_bytes;
  return needs;
}

std::unique_ptr<engine::Consumer> Km3Processor::make_consumer(engine::LaneParts parts) {
  return std::make_unique<SliceBuilder>(config_, detector_, std::move(parts));
}

}  // namespace nanet::km3_engine
