// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/wait.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

namespace nanet::flow {
namespace {

// The kernel compares the word itself, so it must be one.
static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kLongestSleepNs = 3600 * kSecondNs;

}  // namespace

void WaitPoint::sleep(std::uint64_t timeout_ns) {
  timeout_ns = std::min(timeout_ns, kLongestSleepNs);
  timespec timeout{};
  timeout.tv_sec = static_cast<std::time_t>(timeout_ns / kSecondNs);
  timeout.tv_nsec = static_cast<long>(timeout_ns % kSecondNs);
  syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, kAsleep, &timeout, nullptr, 0);
}

void WaitPoint::wake_sleeper() { syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

}  // namespace nanet::flow
