// SPDX-License-Identifier: Apache-2.0
// Apart from the other checks: a plug-in that calls this one must not pull in the links and the GPU's memory with it.
#include <string>

#include "nanet/engine/checks.hpp"
#include "nanet/engine/protocol.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {

void require_events(const EngineConfig& config) {
  for (const LinkConfig& link : config.links) {
    if (link.protocol->read != nullptr) continue;
    throw SetupError("link " + link.name + " cannot feed the processor", "its protocol is " + std::string(link.protocol->name),
                     "choose one whose packets have events, or processor: {kind: count}");
  }
}

}  // namespace nanet::engine
