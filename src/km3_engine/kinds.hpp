// SPDX-License-Identifier: Apache-2.0
// What KM3NeT adds to the kinds that an engine can be built from: processor km3. Its packet formats are declared.
#pragma once

#include <functional>

#include "km3_engine/config.hpp"
#include "nanet/engine/kinds.hpp"

namespace nanet::km3_engine {

// config: called when such a processor is made.
void add_kinds(engine::Kinds& kinds, std::function<Km3Config()> config);

}  // namespace nanet::km3_engine
