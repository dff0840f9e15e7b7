// SPDX-License-Identifier: Apache-2.0
// What NA62 adds to the kinds that an engine can be built from: protocols mgp and m2egp, processors rich and forward.
#pragma once

#include <functional>

#include "nanet/engine/kinds.hpp"
#include "nanet/na62/config.hpp"

namespace nanet::na62 {

// Where its processors' configurations come from, each of which has a section of its own: called when such a processor is made.
struct ProcessorConfigs {
  std::function<RichConfig()> rich;
  std::function<ForwardConfig()> forward;
};

void add_kinds(engine::Kinds& kinds, ProcessorConfigs configs);

}  // namespace nanet::na62
