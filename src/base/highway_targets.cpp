// SPDX-License-Identifier: Apache-2.0
// What Highway's headers need at run time: which instruction sets this processor has, and which of them was chosen. These are the functions
// of libhwy, of which vector code needs no others; so nanet needs Highway's headers only, and ships without that library. They are weak: in a
// program that is linked to libhwy too, that one's count.
#include "hwy/highway.h"

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace {

constexpr std::int64_t kAlways = HWY_STATIC_TARGET | HWY_SCALAR | HWY_EMU128;

#if HWY_ARCH_X86

constexpr bool has_all(unsigned found, unsigned wanted) { return (found & wanted) == wanted; }

// The registers that the operating system keeps for each thread.
bool keeps_registers(unsigned wanted) {
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return has_all(low, wanted);
}

// The sets that are compiled (cmake/NanetHighway.cmake): those between are chosen as the next lower one.
std::int64_t detect() {
  constexpr unsigned kSse4 = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_PCLMUL | bit_AES | bit_POPCNT;
  constexpr unsigned kAvx = bit_AVX | bit_FMA | bit_F16C | bit_OSXSAVE;
  constexpr unsigned kAvx2 = bit_AVX2 | bit_BMI | bit_BMI2;
  constexpr unsigned kAvx512 = bit_AVX512F | bit_AVX512CD | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  constexpr unsigned kYmm = 0x06;
  constexpr unsigned kZmm = 0xE6;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || !has_all(ecx, kSse4)) return kAlways;
  std::int64_t targets = kAlways | HWY_SSE4;
  if (!has_all(ecx, kAvx) || !keeps_registers(kYmm)) return targets;
  if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) == 0 || !has_all(ecx, bit_LZCNT)) return targets;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || !has_all(ebx, kAvx2)) return targets;
  targets |= HWY_AVX2;
  if (has_all(ebx, kAvx512) && keeps_registers(kZmm)) targets |= HWY_AVX3;
  return targets;
}

#else

std::int64_t detect() { return kAlways; }  // one set is compiled

#endif

std::int64_t for_test = 0;  // 0: what was detected

}  // namespace

namespace hwy {

[[gnu::weak]] std::int64_t SupportedTargets() {
  static const std::int64_t detected = detect();
  return for_test != 0 ? for_test : detected;
}

[[gnu::weak]] ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

[[gnu::weak]] void SetSupportedTargetsForTest(std::int64_t targets) {
  for_test = targets;
  GetChosenTarget().DeInit();
}

// A failed HWY_ASSERT, of debug and sanitizer builds.
[[gnu::weak]] void Abort(const char* file, int line, const char* format, ...) {
  std::fprintf(stderr, "%s:%d: ", file, line);
  std::va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::abort();
}

}  // namespace hwy
