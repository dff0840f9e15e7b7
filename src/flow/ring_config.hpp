// SPDX-License-Identifier: Apache-2.0
// The check that both rings make of their capacity.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::flow {

inline std::uint32_t checked_capacity(const std::string& name, std::uint32_t capacity) {
  if (!std::has_single_bit(capacity) || capacity < 2 || capacity > (1u << 20)) {
    throw SetupError("'" + name + "' cannot be made", "its capacity is " + std::to_string(capacity),
                     "use a power of two from 2 to 1048576");
  }
  return capacity;
}

}  // namespace nanet::flow
