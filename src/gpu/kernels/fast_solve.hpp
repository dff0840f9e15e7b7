// SPDX-License-Identifier: Apache-2.0
// rich::solve_ring for a GPU: the same bits with half of the operations.
//
// Integers do what in double is exact anyway: the moments (rich/ring_sums.hpp: all but that of z z fit an int32) and, by fused multiply-add, products and
// their differences below 2^53. Every operation that rounds is the one of solve_ring.
// Host and device.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/record_fit.hpp"
#include "nanet/host_device.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/math_fit.hpp"
#include "rich/normal_numbers.hpp"
#include "rich/ring_sums.hpp"

namespace nanet::gpu {

// An integer as double. A GPU converts one in eight steps; a number whose mantissa holds the integer's bits takes one subtraction.
NANET_HD inline double exact(std::int32_t value) {
#ifdef __CUDA_ARCH__
  return __hiloint2double(0x43300000, value ^ static_cast<std::int32_t>(0x80000000)) - 4503601774854144.0;  // 2^52 + 2^31
#else
  return value;
#endif
}
// 0 to 2^52 - 1.
NANET_HD inline double exact_unsigned(std::int64_t value) {
#ifdef __CUDA_ARCH__
  return __hiloint2double(0x43300000 | static_cast<std::int32_t>(value >> 32), static_cast<std::int32_t>(value)) - 4503599627370496.0;
#else
  return static_cast<double>(value);
#endif
}

// 1 / n and 1 / n^2 as solve_ring computes them; 0 for no hits.
struct InverseCount {
  double n, n2;
};
NANET_HD inline InverseCount inverse_count(std::int32_t hits) {
  if (hits == 0) return {0.0, 0.0};
  const double inverse = rich::reciprocal(exact(hits));
  return {inverse, inverse * inverse};
}

// The circle of the sums of `hits` hits; all 0, and false, where there is none.
NANET_HD inline bool fast_solve(const rich::RingSums& s, std::int32_t hits, const InverseCount& inverse, FittedCircle& circle) {
  const std::int32_t si = rich::sum_i(s);
  const std::int32_t sj = s.j;
  const std::int32_t sz = s.ii + 3 * s.jj;
  const std::int32_t a_sum = hits * s.ii - si * si;
  const std::int32_t c_sum = hits * s.jj - sj * sj;
  const double a = exact(a_sum);
  const double b = exact(hits * s.ij - si * sj);
  const double c = exact(c_sum);
  const double p = exact(hits * s.zi - sz * si);
  const double q = exact(hits * s.zj - sz * sj);
  const double w = exact_unsigned(std::int64_t{hits} * s.zz - std::int64_t{sz} * sz);  // a variance
  const double det = std::fma(a, c, -(b * b));
  circle = {0, 0, 0, 0};
  if (!(det > 0.0)) return false;

  const double inverse_det = rich::reciprocal(det);
  const double two_a = std::fma(p, c, -(q * b)) * inverse_det;
  const double two_b = std::fma(a, q, -(b * p)) * inverse_det;
  const double center_j = (1.0 / 6.0) * two_b;
  const double di = std::fma(0.5, two_a, -(exact(si) * inverse.n));  // a half of a number is exact
  const double dj = center_j - exact(sj) * inverse.n;
  const double radius2 = (di * di + 3.0 * (dj * dj)) + exact(a_sum + 3 * c_sum) * inverse.n2;
  const double residual = (w - (two_a * p + two_b * q)) * inverse.n2;
  const double residual2 = residual > 0.0 ? residual : 0.0;
  circle.x_mm = static_cast<float>(4.5 * two_a);
  circle.y_mm = static_cast<float>(15.588457268119894 * center_j);
  circle.radius_mm = static_cast<float>(9.0 * rich::square_root(radius2));
  circle.rms_mm = static_cast<float>(4.5 * rich::square_root(rich::quotient(residual2, radius2)));
  return true;
}

// As rich::solve_ring.
NANET_HD inline rich::Ring fast_solve_ring(const rich::RingSums& sums) {
  const std::int32_t hits = rich::hit_count(sums);
  FittedCircle circle;
  rich::Ring ring;
  ring.hits = static_cast<std::uint16_t>(hits);
  if (!fast_solve(sums, hits, inverse_count(hits), circle)) return ring;
  ring.x_mm = circle.x_mm;
  ring.y_mm = circle.y_mm;
  ring.radius_mm = circle.radius_mm;
  ring.rms_mm = circle.rms_mm;
  ring.status = rich::RingStatus::ring;
  return ring;
}

}  // namespace nanet::gpu
