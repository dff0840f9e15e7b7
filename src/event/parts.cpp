// SPDX-License-Identifier: Apache-2.0
#include "nanet/event/parts.hpp"

#include <bit>
#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::event {

void check(const MergerConfig& config) {
  const auto refuse = [](const char* name, std::uint64_t value, const std::string& why, const char* suggestion) {
    throw SetupError("merger: " + std::string(name) + " is " + std::to_string(value), why, suggestion);
  };
  if (config.source_count < 1 || config.source_count > kSourcesMax) {
    refuse("source_count", config.source_count, "it must be 1 to 8", "merge more sources in two steps");
  }
  if (config.window_ns < 1'000 || config.window_ns > 10'000'000'000) {
    refuse("window_ns", config.window_ns, "it must be 1 us to 10 s", "start with 200000 (200 us)");
  }
  if (!std::has_single_bit(config.open_events_max) || config.open_events_max > 1u << 20) {
    refuse("open_events_max", config.open_events_max, "it must be a power of two up to 1048576", "start with 8192");
  }
  if (config.hits_max < 1 || config.hits_max > kHitsMax) {
    refuse("hits_max", config.hits_max, "it must be 1 to 128", "leave it at 128");
  }
}

}  // namespace nanet::event
