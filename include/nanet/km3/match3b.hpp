// SPDX-License-Identifier: Apache-2.0
// match3B: can two hits be of one muon that passes within R of both PMs? Published with R = 90 m (nlesc-km3net/KM3NeT, Apache-2.0), for pairs of hits
// whatever the muon's direction.
//
//   reject where |dt| > dmax / c + tmax,   accept where |dt| >= dmin / c - tmax,   d the distance of the PMs:
//     dmax = n d                  where d < R,        else sqrt(d^2 - Rs^2) + Rs tan
//     dmin = sqrt(d^2 - R^2) - R tan   where d > D2,  else sqrt(d^2 - 4 R^2) where d > 2 R, else 0
//     tan = sqrt(n^2 - 1),  Rs = R tan / n,  D2 = R / 2 sqrt(tan^2 + 10 + 9 / tan^2)
//
// Computed with squares in double, without roots, so that a vector loop and a GPU take it as it is, with the same bits: a pair differs from
// the formula above only where both sides agree to some 1e-15 of themselves.
#pragma once

#include <cmath>

#include "nanet/host_device.hpp"

namespace nanet::km3 {

inline constexpr double kLightSpeed = 0.299792458;        // [m/ns], in vacuum
inline constexpr double kRefractiveIndex = 1.3800851282;  // of the published condition

// Where and when. Positions in m, time in ns.
struct Point {
  double x = 0;
  double y = 0;
  double z = 0;
  double time_ns = 0;
};

// The condition for one R. 0 < radius_m, 0 <= time_extra_ns, 1 < index.
class Match3B {
 public:
  explicit Match3B(double radius_m = 90.0, double time_extra_ns = 0.0, double index = kRefractiveIndex)
      : index2_(index * index), radius2_(radius_m * radius_m), time_extra_ns_(time_extra_ns) {
    const double tangent2 = index2_ - 1.0;
    const double tangent = std::sqrt(tangent2);
    const double rs = radius_m * tangent / index;
    rs2_ = rs * rs;
    rs_tangent_ = rs * tangent;
    radius_tangent_ = radius_m * tangent;
    d1_2_ = 4.0 * radius2_;
    d2_2_ = 0.25 * radius2_ * (tangent2 + 10.0 + 9.0 / tangent2);
  }

  NANET_HD bool operator()(const Point& a, const Point& b) const {
    const double dx = a.x - b.x;
    const double dy = a.y - b.y;
    const double dz = a.z - b.z;
    const double dt_ns = a.time_ns - b.time_ns;
    return accept(dx * dx + dy * dy + dz * dz, dt_ns < 0 ? -dt_ns : dt_ns);
  }

  // Of the square of the distance and |dt|.
  NANET_HD bool accept(double d2, double dt_ns) const {
    const bool near = d2 < radius2_;
    const double most = kLightSpeed * (dt_ns - time_extra_ns_) - (near ? 0.0 : rs_tangent_);
    const double most2 = near ? index2_ * d2 : d2 - rs2_;
    const bool far = d2 > d2_2_;
    const double least = kLightSpeed * (dt_ns + time_extra_ns_) + (far ? radius_tangent_ : 0.0);
    const double least2 = d2 - (far ? radius2_ : d1_2_);
    // Below 2 R, least2 is negative and any time is late enough. The operators without branches are meant.
    return ((most <= 0.0) | (most * most <= most2)) & (least * least >= least2);
  }

  double rs2() const { return rs2_; }
  double rs_tangent() const { return rs_tangent_; }
  double radius_tangent() const { return radius_tangent_; }
  double d2_squared() const { return d2_2_; }

 private:
  double index2_;
  double radius2_;
  double time_extra_ns_;
  double rs2_;
  double rs_tangent_;
  double radius_tangent_;
  double d1_2_;
  double d2_2_;
};

}  // namespace nanet::km3
