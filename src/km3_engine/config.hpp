// SPDX-License-Identifier: Apache-2.0
// What the trigger of a KM3NeT detector is made from, as a processor of an engine.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "nanet/config/setting.hpp"
#include "nanet/km3/trigger.hpp"

namespace nanet::km3_engine {

enum class Data : std::uint8_t { hits = 1, sampled = 2 };  // kinds of docs/formats-km3.md

constexpr auto choices(Data) { return std::array{config::Choice{"hits", Data::hits}, config::Choice{"sampled", Data::sampled}}; }

struct Km3Config {
  static constexpr config::Component component{
      "Km3", "Slices of a KM3NeT detector put together from units of its floors, and its trigger, whose events go to `answers`."};

  std::string detector;
  std::uint32_t towers = 1;
  std::uint32_t floors = 14;
  Data data = Data::hits;
  std::uint32_t timeout_ms = 1000;
  std::uint32_t slices_open = 2;
  std::uint32_t event_packet_bytes = 1472;
  km3::TriggerConfig trigger;

  template <class Visit>
  void visit(Visit&& v) {
    v("detector", detector,
      {.help = "Detector file (.detx): its floors are expected in every slice; null: a block of standard towers", .nullable = true});
    v("towers", towers, {.help = "Towers of such a block", .unit = "towers", .least = 1, .most = 255});
    v("floors", floors, {.help = "Floors of each", .unit = "floors", .least = 1, .most = 31});
    v("data", data, {.help = "Which units have the hits: short ones, or those with samples; others are passed over"});
    v("timeout_ms", timeout_ms,
      {.help = "A slice is closed so long after its first unit came, whatever is missing",
       .unit = "ms",
       .least = 1,
       .most = 60'000,
       .too_small = "units that come are units_too_late",
       .too_big = "buffers: those of newer slices wait meanwhile"});
    v("slices_open", slices_open,
      {.help = "A slice is closed, whatever is missing, once half of the floors have sent a unit of the slice so many after it",
       .unit = "slices",
       .least = 1,
       .most = 64,
       .too_small = "units that come are units_too_late",
       .too_big = "buffers: those of newer slices wait meanwhile"});
    v("event_packet_bytes", event_packet_bytes,
      {.help = "Longest packet of an event; 1472 fits a 1500-byte MTU, 8972 a 9000-byte one",
       .unit = "bytes",
       .least = 128,
       .most = 8972,
       .too_big = "packets that the network fragments or drops"});
    v("trigger", trigger, {.help = "The trigger"});
  }
};

}  // namespace nanet::km3_engine
