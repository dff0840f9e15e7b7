// SPDX-License-Identifier: Apache-2.0
// Division and square root of ordinary numbers in float (in double: normal_numbers.hpp): the same bits as / and std::sqrt, which is what they are on
// a CPU. On a GPU they are the few instructions that the compiler also emits for the usual case, without the branch for numbers near the ends
// of the range. So a caller must know that there are none. A quotient of 0 is fine.
// Host and device.
#pragma once

#include <cmath>

#include "nanet/host_device.hpp"

namespace nanet::rich {

// 1 / x for 2^-100 <= x <= 2^100.
NANET_HD inline float ordinary_inverse(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return __fmaf_rn(y, __fmaf_rn(-x, y, 1.0F), y);
#else
  return 1.0F / x;
#endif
}

// a / b for 2^-60 <= |b| <= 2^60 and |a| in the same range or 0.
NANET_HD inline float ordinary_quotient(float a, float b) {
#ifdef __CUDA_ARCH__
  const float y = ordinary_inverse(b);
  const float q = a * y;
  return __fmaf_rn(y, __fmaf_rn(-b, q, a), q);
#else
  return a / b;
#endif
}

// sqrt(x) for 2^-100 <= x <= 2^100 and for 0. For x between, something from 0 to 2^-50.
NANET_HD inline float ordinary_root(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(fmaxf(x, 0x1p-100F)));
  const float root = x * y;
  return __fmaf_rn(__fmaf_rn(-root, root, x), y * 0.5F, root);
#else
  return std::sqrt(x);
#endif
}

#ifdef __CUDA_ARCH__
__device__ [[gnu::noinline]] inline float quotient_of_any(float a, float b) { return a / b; }
#endif

// part / whole for 0 <= part and 2^-21 <= whole, where the part may be next to nothing.
NANET_HD inline float share_of(float part, float whole) {
#ifdef __CUDA_ARCH__
  if ((part >= 0x1p-115F || part == 0.0F) && whole < 0x1p10F) return ordinary_quotient(part * 0x1p64F, whole) * 0x1p-64F;
  return quotient_of_any(part, whole);
#else
  return part / whole;
#endif
}

}  // namespace nanet::rich
