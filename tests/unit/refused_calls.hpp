// SPDX-License-Identifier: Apache-2.0
// System calls that fail as they do on an older kernel, without memory to give, or without the right to: for tests of faults that no test may do to
// the machine.
#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <thread>
#include <vector>

namespace nanet::test {

// A call fails with `error` when (its argument & mask) == value; only the lower half of the argument is looked at. mask 0: always.
struct RefusedCall {
  long call;
  int error;
  unsigned argument = 0;
  std::uint32_t mask = 0;
  std::uint32_t value = 0;
};

// Does `what` in a thread of its own, for which these calls fail. A machine that does not let a thread filter its calls does not do it, and says so.
inline void with_refused(std::initializer_list<RefusedCall> calls, const std::function<void()>& what) {
  std::thread([&] {
    std::vector<sock_filter> program;
    for (const RefusedCall& refused : calls) {
      program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
      program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(refused.call), 0, 4));
      const auto at = static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * refused.argument);
      program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at));
      program.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, refused.mask));
      program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused.value, 0, 1));
      program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(refused.error)));
    }
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
      std::printf("NOT RUN: a test with refused system calls (no seccomp here: %s)\n", std::strerror(errno));
      return;
    }
    what();
  }).join();
}

}  // namespace nanet::test
