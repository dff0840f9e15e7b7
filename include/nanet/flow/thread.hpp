// SPDX-License-Identifier: Apache-2.0
// Where a thread runs and what it is called, and how it is started.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>

namespace nanet::flow {

// Ties the calling thread to one core and checks that it is so. Throws SetupError when it cannot: a thread that was asked to be
// pinned does not go on unpinned.
void pin_this_thread(int core);

// The name that top, perf and a debugger show; the kernel keeps the first 15 bytes.
void name_this_thread(std::string_view name);

// Asks the kernel to run the calling thread in turns as short as it can (0.1 ms instead of some ms), which lets it run soon after it wakes up on
// a core that another thread keeps busy. Does nothing where the kernel does not support that (before Linux 6.12).
void ask_for_short_turns();

// Nanoseconds for which the calling thread was ready to run but something else had its core, since it began; 0 where the kernel does not
// say. Reads a file: not for the hot path. What a hypervisor takes away is not included.
std::uint64_t this_thread_core_wait_ns();

// A thread with preparations that can fail (a core, a priority) before it begins.
//
// Thread rules: one thread calls start() and join().
class Thread {
 public:
  Thread() = default;

  // Runs prepare(), then run(), in a new thread, and returns when prepare() has ended. What it throws is rethrown here, and then there is no thread.
  // Precondition: !joinable().
  void start(std::function<void()> prepare, std::function<void()> run);

  bool joinable() const { return thread_.joinable(); }
  void join() { thread_.join(); }

 private:
  std::thread thread_;
};

}  // namespace nanet::flow
