// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

#include "hwy/highway.h"

namespace {

// What the compiler's own detection says of this processor and its operating system.
TEST(HighwayTargets, AreThoseOfTheProcessor) {
  const std::int64_t found = hwy::SupportedTargets();
  EXPECT_NE(found & HWY_STATIC_TARGET, 0);
#if HWY_ARCH_X86
  EXPECT_EQ((found & HWY_SSE4) != 0,
            __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes"));
  EXPECT_EQ((found & HWY_AVX2) != 0,
            __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ((found & HWY_AVX3) != 0, __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                                         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"));
#endif
}

TEST(HighwayTargets, AreSetForATestAndBack) {
  const std::int64_t found = hwy::SupportedTargets();
  hwy::SetSupportedTargetsForTest(HWY_STATIC_TARGET);
  EXPECT_EQ(hwy::SupportedTargets(), HWY_STATIC_TARGET);
  EXPECT_FALSE(hwy::GetChosenTarget().IsInitialized());
  hwy::SetSupportedTargetsForTest(0);
  EXPECT_EQ(hwy::SupportedTargets(), found);
}

// Sets that cost compile time and bring no speed are left out (cmake/NanetHighway.cmake).
TEST(HighwayTargets, CompiledAreTheFewThatDiffer) {
  const std::int64_t generated = HWY_TARGETS;
  EXPECT_NE(generated & HWY_STATIC_TARGET, 0);
  EXPECT_LE(std::popcount(static_cast<std::uint64_t>(generated)), 4);
#if HWY_ARCH_X86
  if ((generated & (generated - 1)) != 0) {
    EXPECT_EQ(generated & ~HWY_STATIC_TARGET, HWY_SSE4 | HWY_AVX2 | HWY_AVX3);
  }
#endif
}

}  // namespace
