// SPDX-License-Identifier: Apache-2.0
// What can be refused in a configuration before anything in it exists.
#pragma once

#include "nanet/engine/config.hpp"

namespace nanet::engine {

// Throws SetupError for parts that do not go together.
void check(const EngineConfig& config);

// For a processor that looks at events: every link has some, and with more than one source it merges. Throws SetupError.
void require_events(const EngineConfig& config, bool merges);

}  // namespace nanet::engine
