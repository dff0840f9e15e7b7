// SPDX-License-Identifier: Apache-2.0
#include "flow/realtime.hpp"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "nanet/setup_error.hpp"

namespace nanet::flow {
namespace {

std::int64_t number_in(const char* path, std::int64_t otherwise) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? number : otherwise;
}

}  // namespace

RealtimeGuard realtime_guard() {
  return {
      .runtime_us = number_in("/proc/sys/kernel/sched_rt_runtime_us", -1),
      .period_us = number_in("/proc/sys/kernel/sched_rt_period_us", 0),
      .core_count = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
  };
}

void check(const RealtimeGuard& guard) {
  if (guard.core_count < 2) {
    throw SetupError("no real-time priority", "this machine has one core, which a thread that spins would take from everything else",
                     "remove cpu_cores.realtime_priority, or use a machine with two cores");
  }
  if (guard.runtime_us < 0 || guard.runtime_us >= guard.period_us) {
    throw SetupError("no real-time priority",
                     "the kernel's guard is off (sched_rt_runtime_us), so a thread that spins may hang the whole machine",
                     "sudo sysctl -w kernel.sched_rt_runtime_us=950000, or remove cpu_cores.realtime_priority");
  }
}

std::string realtime_note(const RealtimeGuard& guard) {
  const std::int64_t stopped_ms = (guard.period_us - guard.runtime_us) / 1000;
  return "real-time priority: the kernel's guard stops a receiving thread that spins for up to " + std::to_string(stopped_ms) +
         " ms of each " + std::to_string(guard.period_us / 1000) +
         " ms (whenever an ordinary thread wants its core; before Linux 6.12, or with CONFIG_RT_GROUP_SCHED, always)";
}

void set_realtime_priority(int priority) {
  check(realtime_guard());
  const std::string problem = "the thread cannot have real-time priority " + std::to_string(priority);
  if (priority < sched_get_priority_min(SCHED_FIFO) || priority > sched_get_priority_max(SCHED_FIFO)) {
    throw SetupError(problem, "SCHED_FIFO knows 1 to 99", "choose one of these");
  }
  const sched_param wanted{.sched_priority = priority};
  if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &wanted) != 0) {
    throw SetupError(
        problem, std::strerror(errno),
        "start as root or with CAP_SYS_NICE, or raise the limit (ulimit -r); with CONFIG_RT_GROUP_SCHED the cgroup needs "
        "cpu.rt_runtime_us above 0");
  }
  // Some sandboxes accept the call and do nothing.
  if ((sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) != SCHED_FIFO) {
    throw SetupError(problem, "the kernel did not take it", "run where threads can have it, or without");
  }
}

}  // namespace nanet::flow
