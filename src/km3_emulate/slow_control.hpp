// SPDX-License-Identifier: Apache-2.0
// A floor's side of slow control (docs/formats-km3.md): requests in, answers out. A request that came before is answered again and done once.
//
// Thread rules: one thread; it allocates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>

#include "km3_emulate/units.hpp"

namespace nanet::km3_emulate {

inline constexpr std::size_t kControlBytes = 28;
using ControlPacket = std::array<std::byte, kControlBytes>;

enum class ControlStatus : std::uint8_t {
  done = 0,
  no_command = 1,
  no_parameter = 2,
  out_of_bounds = 3,
  not_now = 4,
  another_floor = 5
};

// What of the floor a request reads and changes.
struct FloorState {
  FloorSettings settings = kFloorSettings;
  std::optional<std::uint32_t> run;         // that goes on
  std::optional<std::uint32_t> tower_run;   // of its tower: a floor takes part in that or in none
  std::array<std::uint32_t, kPms> rates{};  // of the last slice, Hz
  std::uint64_t slice = 0;                  // that is now, for the instruments
};

struct ControlCounts {
  std::uint64_t requests = 0;  // answered, with those that came again
  std::uint64_t repeated = 0;  // of them
  std::uint64_t bad = 0;       // no requests: wrong length or magic word; not answered
};

class SlowControl {
 public:
  SlowControl(std::uint8_t tower, std::uint8_t floor, std::uint32_t index, const UnitMaker& units)
      : tower_(tower), floor_(floor), index_(index), units_(units) {}

  // from: who asks, as a text; sequences of different ones are different. gps_ns: the floor's time.
  std::optional<ControlPacket> answer(std::span<const std::byte> request, const std::string& from, std::uint64_t gps_ns,
                                      FloorState& state);

  const ControlCounts& counts() const { return counts_; }

 private:
  struct Done {
    std::string from;
    ControlPacket request;
    ControlPacket answer;
  };
  struct Outcome {
    ControlStatus status;
    std::int32_t value;
  };
  Outcome act(std::uint8_t command, std::uint16_t parameter, std::int32_t value, FloorState& state) const;
  Outcome get(std::uint16_t parameter, const FloorState& state) const;
  Outcome set(std::uint16_t parameter, std::int32_t value, FloorState& state) const;

  static constexpr std::size_t kRemembered = 256;  // requests, the newest

  std::uint8_t tower_;
  std::uint8_t floor_;
  std::uint32_t index_;
  const UnitMaker& units_;
  std::deque<Done> done_;
  ControlCounts counts_;
};

}  // namespace nanet::km3_emulate
