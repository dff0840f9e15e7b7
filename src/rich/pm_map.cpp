// SPDX-License-Identifier: Apache-2.0
#include "nanet/rich/pm_map.hpp"

#include <cmath>

namespace nanet::rich {

std::uint16_t nearest_channel(double x_mm, double y_mm, int disk) {
  const double u = x_mm / kUnitXMm;
  const double v = y_mm / kUnitYMm;
  if (!(std::abs(u) < 64.0 && std::abs(v) < 64.0)) return kNoChannel;  // far outside, or not a number
  // A hexagon reaches 10.4 mm up and down and rows are 15.6 mm apart: the nearest PM is in the row below or above the point.
  const double below = std::floor(v);
  double best = 1e9;
  int best_i = 0;
  int best_j = 0;
  for (int row = 0; row < 2; ++row) {
    const double j = below + row;
    const double parity = std::fmod(j, 2.0) == 0.0 ? 1.0 : 0.0;  // i + j is odd
    const double i = parity + 2.0 * std::floor((u - parity) / 2.0 + 0.5);
    const double distance = (u - i) * (u - i) + 3.0 * (v - j) * (v - j);
    if (distance < best) {
      best = distance;
      best_i = static_cast<int>(i);
      best_j = static_cast<int>(j);
    }
  }
  return channel_at(best_i, best_j, disk);
}

}  // namespace nanet::rich
