// SPDX-License-Identifier: Apache-2.0
#include "km3_engine/kinds.hpp"

#include <memory>
#include <utility>

#include "km3_engine/km3_processor.hpp"

namespace nanet::km3_engine {

void add_kinds(engine::Kinds& kinds, std::function<Km3Config()> config) {
  kinds.add(engine::ProcessorKind{.name = "km3",
                                  .make =
                                      [config = std::move(config)](const engine::ProcessorSettings& settings) {
                                        return std::make_shared<Km3Processor>(config(), settings.has_destination);
                                      },
                                  .sends = true,
                                  .done = std::nullopt,
                                  .help = "put time slices of a KM3NeT detector together and find its events"});
}

}  // namespace nanet::km3_engine
