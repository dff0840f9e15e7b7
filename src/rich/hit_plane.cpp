// SPDX-License-Identifier: Apache-2.0
#include "rich/hit_plane.hpp"

#include "nanet/rich/pm_map.hpp"

namespace nanet::rich {
namespace {

constexpr std::array<PmPoint, kPmPointRows> make_points() {
  std::array<PmPoint, kPmPointRows> points{};
  for (std::size_t channel = 0; channel < kPmPointRows; ++channel) {
    const Pm& pm = kPmMap[channel];
    if (pm.mapped) points[channel] = {static_cast<float>(pm.x_mm()), static_cast<float>(pm.y_mm()), pm.i, pm.j, 1};
  }
  return points;
}

}  // namespace

alignas(64) constinit const std::array<PmPoint, kPmPointRows> kPmPoints = make_points();

}  // namespace nanet::rich
