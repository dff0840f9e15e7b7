// SPDX-License-Identifier: Apache-2.0
#include "rich/ring_cuts_config.hpp"

#include <sstream>

namespace nanet::rich {

std::optional<config::Problem> RingCutsConfig::check() const {
  if (radius_min_mm < radius_max_mm) return std::nullopt;
  std::ostringstream problem;
  problem << "radius_min_mm " << radius_min_mm << " is not below radius_max_mm " << radius_max_mm;
  return config::Problem{"radius_min_mm", problem.str(), "no ring could pass", "swap or widen them"};
}

}  // namespace nanet::rich
