// SPDX-License-Identifier: Apache-2.0
// Apart from the other checks: a plug-in that calls this one must not pull in the links and the GPU's memory with it.
#include <string>

#include "nanet/engine/checks.hpp"
#include "nanet/engine/protocol.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {

void require_events(const EngineConfig& config, bool merges) {
  std::size_t source_count = 0;
  for (const LinkConfig& link : config.links) {
    source_count += link.sources.size();
    if (link.protocol->read != nullptr) continue;
    throw SetupError("the processor cannot read link '" + link.name + "'", "its protocol is " + std::string(link.protocol->name),
                     "choose one whose packets have events, or processor: {kind: count}");
  }
  if (source_count > 1 && !merges) {
    throw SetupError(std::to_string(source_count) + " sources but no merge", "their parts of an event have to be merged",
                     "add processor.merge: {window_us: 200}");
  }
}

}  // namespace nanet::engine
