// SPDX-License-Identifier: Apache-2.0
// A broken rule (setting.hpp) as the error of set-up code.
#pragma once

#include <optional>

#include "nanet/config/setting.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::config {

// Throws SetupError if there is one.
inline void refuse_broken(const std::optional<Problem>& broken) {
  if (broken) throw SetupError(broken->problem, broken->why, broken->suggestion);
}

}  // namespace nanet::config
