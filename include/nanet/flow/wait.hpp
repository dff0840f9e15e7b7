// SPDX-License-Identifier: Apache-2.0
// Waiting of one consumer for one producer: a bounded spin, then a futex sleep. Reads no clock.
//
// Thread rules: one thread waits; any thread may wake it. wake() costs one atomic exchange while no one sleeps, and a
// system call only when someone does.
#pragma once

#include <atomic>
#include <cstdint>

namespace nanet::flow {

// Tells the core that this is a spin loop.
inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

class WaitPoint {
 public:
  // Spins up to `spins` times, then sleeps at most timeout_ns, until ready() is true; returns ready(). A signal, or a
  // wake() with nothing ready, may end the sleep early with false: the caller checks whether to stop, and waits again.
  template <typename Ready>
  bool wait(std::uint64_t timeout_ns, std::uint32_t spins, Ready&& ready) {
    for (std::uint32_t spin = 0; spin < spins; ++spin) {
      if (ready()) return true;
      cpu_relax();
    }
    if (ready()) return true;
    if (timeout_ns == 0) return false;
    // Both sides exchange the same word after their own step. Whichever exchange comes second sees the first: either the
    // sleeper sees what was published, or the waker sees the sleeper. Nothing is lost in between.
    state_.exchange(kAsleep, std::memory_order_acq_rel);
    if (!ready()) sleep(timeout_ns);
    state_.store(kAwake, std::memory_order_relaxed);
    return ready();
  }

  // Call after publishing what ready() looks for.
  void wake() {
    if (state_.exchange(kAwake, std::memory_order_acq_rel) == kAsleep) wake_sleeper();
  }

 private:
  static constexpr std::uint32_t kAwake = 0;
  static constexpr std::uint32_t kAsleep = 1;

  void sleep(std::uint64_t timeout_ns);
  void wake_sleeper();

  alignas(64) std::atomic<std::uint32_t> state_{kAwake};
};

}  // namespace nanet::flow
