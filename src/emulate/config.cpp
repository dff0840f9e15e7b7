// SPDX-License-Identifier: Apache-2.0
#include "emulate/config.hpp"

#include <algorithm>

namespace nanet::emulate {
namespace {

std::string named(const char* key, std::uint64_t value) { return std::string(key) + " " + std::to_string(value); }

// Both are the same port; with port 0 the kernel chooses another for each.
bool collide(const std::optional<std::string>& one, const std::string& other) { return one == other && !other.ends_with(":0"); }

}  // namespace

std::optional<config::Problem> XdpPath::check() const {
  return config::power_of_two("frame_count", frame_count, "the kernel's rings have such sizes");
}

std::optional<config::Problem> EmulatorConfig::check() const {
  const std::string count = std::to_string(boards);
  const bool to_self = std::ranges::any_of(destinations, [&](const std::string& one) { return collide(answers, one); });
  if (auto broken = config::first_broken({
          {destinations.empty() && !answers,
           {"destinations", "there are neither destinations nor answers", "there would be nothing to do", "give one of them"}},
          {destinations.size() > 1 && destinations.size() != boards,
           {"destinations", std::to_string(destinations.size()) + " destinations for " + count + " board(s)",
            "there is one for all boards, or one for each", "give 1 or " + count}},
          {pause_s > 0 && spill_s == 0,
           {"pause_s", "pause_s is set but spill_s is 0", "a pause separates spills", "set spill_s, or pause_s to 0"}},
          {xdp && !answers, {"xdp", "xdp without answers", "answers are what it receives", "give answers, or remove xdp"}},
          {to_self,
           {"answers", "answers and a destination are both " + answers.value_or(""), "one port cannot be both", "change one"}},
          {stall_ns == 0, {"stall_ns", "stall_ns is 0", "then every turn would be a stall", "use 50000"}},
          {outstanding_events < 65536 || outstanding_events > std::uint64_t{1} << 32,
           {"outstanding_events", named("outstanding_events", outstanding_events), "answers need time to come",
            "use 65536 to 4294967296"}},
      })) {
    return broken;
  }
  if (auto broken = check_layout()) return broken;
  return check_l0tp();
}

std::optional<config::Problem> EmulatorConfig::check_layout() const {
  const bool packed = layout == wire::MgpLayout::packed;
  return config::first_broken({
      {first_sub_id + boards > 256,
       {"first_sub_id", named("first_sub_id", first_sub_id) + " leaves no room", "a sub-ID has 8 bits", "choose 252 or less"}},
      {packed && first_sub_id + boards > wire::kBoardsMax,
       {"first_sub_id", named("first_sub_id", first_sub_id) + " does not fit the packed layout",
        "its packets name the board by the sub-ID, 0 to 3", "choose 0 for four boards, 0 to 3 for one, or layout: padded"}},
      {packed && packet_bytes % 2 != 0,
       {"packet_bytes", named("packet_bytes", packet_bytes) + " is odd", "the checksum covers 16-bit words", "choose an even size"}},
      {!packed && events_per_packet > wire::kMgpEventsMax,
       {"events_per_packet", named("events_per_packet", events_per_packet) + " does not fit the padded layout",
        "it has 16 slots of 72 bytes", "choose 16 or less, or layout: packed"}},
      {!packed && packet_bytes != 0 && packet_bytes != wire::kMgpPaddedBytes,
       {"packet_bytes", named("packet_bytes", packet_bytes) + " does not fit the padded layout", "a padded packet has 1168 bytes",
        "set 0 or 1168"}},
      {!packed && boards == 1 && monte_carlo.hits_max > wire::kMgpHitsMax,
       {"monte_carlo", named("monte_carlo.hits_max", monte_carlo.hits_max) + " does not fit the padded layout",
        "an event has 32 hit slots", "choose 32 or less, or layout: packed"}},
  });
}

std::optional<config::Problem> EmulatorConfig::check_l0tp() const {
  const bool shared = decisions &&
                      (collide(answers, *decisions) || std::ranges::find(destinations, *decisions) != destinations.end());
  return config::first_broken({
      {(detectors || decisions) && destinations.empty(),
       {"destinations", "detectors or decisions without destinations", "they are those of the events sent", "give destinations"}},
      {detectors && rate_events_per_s == 0,
       {"rate_events_per_s", "detectors, but rate_events_per_s is 0", "as fast as possible has no timing to follow", "give a rate"}},
      {shared,
       {"decisions", "decisions and another endpoint are both " + decisions.value_or(""), "one port cannot be both", "change one"}},
  });
}

}  // namespace nanet::emulate
