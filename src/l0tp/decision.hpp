// SPDX-License-Identifier: Apache-2.0
// What the L0 trigger processor says about one reference primitive, or about one calibration primitive.
#pragma once

#include <cstdint>

namespace nanet::l0tp {

enum class DecisionKind : std::uint8_t { physics = 0, calibration = 1 };

struct Decision {
  std::uint32_t timestamp = 0;  // of the primitive that was decided on, 24.951059536 ns
  std::uint8_t fine_time = 0;   // 1/256 of it
  DecisionKind kind = DecisionKind::physics;
  std::uint8_t matched_inputs = 0;  // bit i: input i has a primitive in it, the deciding one included
  std::uint8_t reserved = 0;
  std::uint16_t trigger_word = 0;    // physics: bit i, mask i fired. calibration: the primitive ID
  std::uint64_t trigger_number = 0;  // triggers before this decision, since construction
  std::uint64_t arrived_ns = 0;      // now_ns of the packet that brought the primitive

  // Calibration, or at least one mask fired. Only these are sent on.
  bool is_trigger() const { return trigger_word != 0; }

  friend bool operator==(const Decision&, const Decision&) = default;
};

}  // namespace nanet::l0tp
