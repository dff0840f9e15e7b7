// SPDX-License-Identifier: Apache-2.0
// Reciprocal, quotient and square root in double, correctly rounded, for numbers that are far from the ends of double's range (1e-290 to 1e290) or 0
// where it says so.
//
// On a CPU these are 1 / x, a / b and std::sqrt. On a GPU the compiler makes each of those a call after a branch, for the ends of the range, and what
// comes before and after cannot overlap; these are the same iterations without it. P. Markstein, IBM J. Res. Dev. 34 (1990) 111: a quotient or root
// within one unit of the last place becomes the correctly rounded one by one more step with its exact remainder (x's mantissa must not be all ones).
#pragma once

#include <cmath>

#include "nanet/host_device.hpp"

namespace nanet::rich {

#ifdef __CUDA_ARCH__
// x not 0.
__device__ inline double reciprocal(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));  // to 20 bits
  const double miss = fma(-x, y, 1.0);
  y = fma(fma(miss, miss, miss), y, y);
  return fma(fma(-x, y, 1.0), y, y);
}

// a may be 0, b not.
__device__ inline double quotient(double a, double b) {
  const double inverse = reciprocal(b);
  const double q = a * inverse;
  return fma(fma(-b, q, a), inverse, q);
}

// x >= 0.
__device__ inline double square_root(double x) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));  // to 20 bits
  const double miss = fma(x, -(y * y), 1.0);
  y = fma(fma(miss, 0.375, 0.5), y * miss, y);
  const double root = x * y;
  const double better = fma(fma(-root, root, x), 0.5 * y, root);
  return x > 0.0 ? better : 0.0;
}
#else
NANET_HD inline double reciprocal(double x) { return 1.0 / x; }
NANET_HD inline double quotient(double a, double b) { return a / b; }
NANET_HD inline double square_root(double x) { return std::sqrt(x); }
#endif

}  // namespace nanet::rich
