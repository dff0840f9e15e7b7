// SPDX-License-Identifier: Apache-2.0
#include "emulate/config.hpp"

#include <cmath>

#include "nanet/setup_error.hpp"

namespace nanet::emulate {
namespace {

void require(bool good, const std::string& problem, const char* why, const char* suggestion) {
  if (!good) throw SetupError(problem, why, suggestion);
}

void validate_layout(const EmulatorConfig& config) {
  require(config.boards == 1 || config.boards == 4, "boards is " + std::to_string(config.boards),
          "the RICH is read by four boards, or emulated as one source", "use 1 or 4");
  const bool packed = config.layout == wire::MgpLayout::packed;
  require(packed || config.layout == wire::MgpLayout::padded, "layout is unknown", "there are two", "use padded or packed");
  const std::size_t events_max = packed ? wire::kMgpPackedEventsMax : wire::kMgpEventsMax;
  require(config.events_per_packet >= 1 && config.events_per_packet <= events_max,
          "events_per_packet is " + std::to_string(config.events_per_packet), "the layout has room for fewer",
          packed ? "use 1 to 182" : "use 1 to 16");
  require(!packed || config.first_sub_id + config.boards <= wire::kBoardsMax,
          "first_sub_id is " + std::to_string(config.first_sub_id), "packed packets name the board by it, 0 to 3",
          "use 0 for four boards, 0 to 3 for one");
  require(config.first_sub_id + config.boards <= 256, "first_sub_id is " + std::to_string(config.first_sub_id),
          "sub IDs have 8 bits", "use a smaller one");
  const std::uint32_t bytes = config.packet_bytes;
  require(
      bytes == 0 || (packed && bytes % 2 == 0 && bytes <= wire::kMgpPackedBytesMax) || (!packed && bytes == wire::kMgpPaddedBytes),
      "packet_bytes is " + std::to_string(bytes), "padded packets have 1168 B, packed ones an even size up to 1472 B",
      "use 0 for the smallest that fits");
  require(config.pool_events >= 1 && config.pool_events <= (1u << 24), "pool_events is " + std::to_string(config.pool_events),
          "the pool is held in memory", "use 1 to 16777216");
}

void validate_run(const EmulatorConfig& config) {
  require(config.rate_events_per_s >= 0 && config.rate_events_per_s <= 1e9,
          "rate_events_per_s is " + std::to_string(config.rate_events_per_s), "fine times have 0.1 ns and must stay unique",
          "use 0 (as fast as possible) to 1e9");
  for (const auto& [name, value] :
       {std::pair{"duration_s", config.duration_s}, std::pair{"spill_s", config.spill_s}, std::pair{"pause_s", config.pause_s},
        std::pair{"drain_ms", config.drain_ms}, std::pair{"quiet_ms", config.quiet_ms}}) {
    require(value >= 0 && value <= 1e6, std::string(name) + " is " + std::to_string(value), "it is a time", "use 0 to 1e6");
  }
  require(config.burst_packets >= 1 && config.burst_packets <= 48, "burst_packets is " + std::to_string(config.burst_packets),
          "a burst is one message of at most 64 kB", "use 1 to 48");
  require(config.stall_ns > 0, "stall_ns is 0", "then every turn would be a stall", "use 50000");
  require(config.outstanding_events >= 65536 && config.outstanding_events <= (std::uint64_t{1} << 32),
          "outstanding_events is " + std::to_string(config.outstanding_events), "answers need time to come",
          "use 65536 to 4294967296");
}

}  // namespace

void validate(const EmulatorConfig& config) {
  validate_layout(config);
  validate_run(config);
  require(config.endpoints.size() <= 1 || config.endpoints.size() == config.boards,
          std::to_string(config.endpoints.size()) + " endpoints for " + std::to_string(config.boards) + " boards",
          "each board needs to know where to send", "give one for all, or one a board");
  require(!config.endpoints.empty() || config.answers.has_value(), "neither endpoints nor answers are given",
          "there is nothing to do", "give at least one of them");
  require(!config.xdp || config.answers.has_value(), "xdp without answers", "the answers are what comes through it",
          "give answers, or leave xdp out");
  require(!config.detectors || !config.endpoints.empty(), "detectors without boards", "they see the events that the boards send",
          "give endpoints");
  require(!config.detectors || config.rate_events_per_s > 0, "detectors, but rate_events_per_s is 0",
          "as fast as possible has no time that they could keep", "give a rate");
  require(!config.decisions || !config.endpoints.empty(), "decisions without boards", "their events are not known",
          "give endpoints");
}

}  // namespace nanet::emulate
