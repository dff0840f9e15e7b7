// SPDX-License-Identifier: Apache-2.0
// The one clock of engine, emulator and UDP link: CLOCK_MONOTONIC nanoseconds, the same in every process of a machine.
#pragma once

#include <time.h>

#include <cstdint>

namespace nanet::flow {

inline std::uint64_t clock_now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace nanet::flow
