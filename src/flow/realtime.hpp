// SPDX-License-Identifier: Apache-2.0
// Real-time priority (SCHED_FIFO) for a thread, and the kernel's guard without which it is refused.
//
// A SCHED_FIFO thread goes before every ordinary one, so one that spins would take its core for ever. The guard is what the kernel keeps of each
// period for ordinary threads: sched_rt_runtime_us of every sched_rt_period_us is all that real-time threads get, 950 of 1000 ms by default.
#pragma once

#include <cstdint>
#include <string>

namespace nanet::flow {

struct RealtimeGuard {
  std::int64_t runtime_us = -1;  // negative: off, or not readable
  std::int64_t period_us = 0;
  int core_count = 0;  // online
};

// As this machine has it.
RealtimeGuard realtime_guard();

// Throws SetupError when a thread that spins could lock up the machine: without the guard, or with a single core.
void check(const RealtimeGuard& guard);

// What the guard does to a thread that spins, in words.
std::string realtime_note(const RealtimeGuard& guard);

// Puts the calling thread under SCHED_FIFO with a priority from 1 to 99, and checks that it is so; threads that it starts are ordinary ones. Throws
// SetupError when check() does, or when the kernel does not allow it.
void set_realtime_priority(int priority);

}  // namespace nanet::flow
