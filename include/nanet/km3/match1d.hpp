// SPDX-License-Identifier: Apache-2.0
// match1D: can two hits be of one muon of a given direction, that passes within R of both PMs? The condition that Jpp uses for muons (P).
//
//   z along the track, d the distance of the PMs across it,  t = |t1 - t2 - (z1 - z2) / c|:
//     accept where t <= d tan / c + extra for d <= R / 2,  t <= (R - d) tan / c + extra for d <= R;  reject beyond
//
// In double without roots, as match3b.hpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "nanet/host_device.hpp"
#include "nanet/km3/match3b.hpp"

namespace nanet::km3 {

// Of length 1: where a muon goes.
struct Direction {
  double x = 0;
  double y = 0;
  double z = 1;
};

class Match1D {
 public:
  explicit Match1D(double radius_m = 90.0, double time_extra_ns = 0.0, double index = kRefractiveIndex)
      : radius_m_(radius_m), time_extra_ns_(time_extra_ns), tangent2_(index * index - 1.0), cotangent_(1.0 / std::sqrt(tangent2_)) {}

  NANET_HD bool operator()(const Point& a, const Point& b, const Direction& along) const {
    const double dx = a.x - b.x;
    const double dy = a.y - b.y;
    const double dz = a.z - b.z;
    const double along_m = dx * along.x + dy * along.y + dz * along.z;
    const double cross_x = dy * along.z - dz * along.y;
    const double cross_y = dz * along.x - dx * along.z;
    const double cross_z = dx * along.y - dy * along.x;
    const double d2 = cross_x * cross_x + cross_y * cross_y + cross_z * cross_z;
    const double late_m = kLightSpeed * (a.time_ns - b.time_ns) - along_m;
    const double path_m = (late_m < 0 ? -late_m : late_m) - kLightSpeed * time_extra_ns_;
    if (d2 > radius_m_ * radius_m_) return false;
    if (path_m <= 0) return true;
    if (4.0 * d2 <= radius_m_ * radius_m_) return path_m * path_m <= d2 * tangent2_;
    const double most_m = radius_m_ - path_m * cotangent_;
    return most_m >= 0 && d2 <= most_m * most_m;
  }

 private:
  double radius_m_;
  double time_extra_ns_;
  double tangent2_;
  double cotangent_;
};

// Directions of the whole sphere, neighbours about `step_deg` apart: rings of equal height angle (ours). step_deg from 1 to 90.
inline std::vector<Direction> direction_grid(double step_deg) {
  constexpr double kPi = 3.14159265358979323846;
  std::vector<Direction> grid;
  const auto rings = static_cast<int>(std::ceil(180.0 / step_deg));
  for (int ring = 0; ring <= rings; ++ring) {
    const double theta = kPi * ring / rings;
    const auto places = static_cast<int>(std::ceil(360.0 * std::sin(theta) / step_deg - 1e-9));
    const int count = places < 1 ? 1 : places;
    for (int k = 0; k < count; ++k) {
      const double phi = 2.0 * kPi * k / count;
      grid.push_back({std::sin(theta) * std::cos(phi), std::sin(theta) * std::sin(phi), std::cos(theta)});
    }
  }
  return grid;
}

}  // namespace nanet::km3
