// SPDX-License-Identifier: Apache-2.0
// A few threads that do the same work side by side, meet, and go on. Made once; work is handed to them without an allocation.
//
// Waiting: a bounded spin, then sleep. The caller of run() or finish() sleeps meanwhile, so that every core is left to the workers.
// Thread rules: made, used and destroyed by one thread; meet() is for the workers only, and each of them must call it equally often.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <type_traits>
#include <vector>

namespace nanet::stencil {

struct TeamConfig {
  int thread_count = 1;            // 1 to 1024; more than there are cores is slow, not wrong
  std::vector<int> cores;          // empty: not pinned; else as many as threads, thread k runs on core cores[k]
  std::uint32_t spins_max = 2000;  // before a worker sleeps: too few, and short sweeps pay for wake-ups; too many, and others' work waits
};

class Team {
 public:
  explicit Team(const TeamConfig& config);  // throws SetupError: too few, too many, or a thread that cannot be pinned
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }

  // Calls work(k) on each thread k and returns when all have returned. `work` must not throw.
  template <class Work>
  void run(Work&& work) {
    begin([](void* context, int worker) { (*static_cast<std::remove_reference_t<Work>*>(context))(worker); }, &work);
    finish();
  }

  // The same in two halves: begin() returns at once, and the caller may look whether all have returned. Nothing is in flight before.
  using Call = void (*)(void* context, int worker);
  void begin(Call call, void* context);
  bool is_done() const { return running_.load(std::memory_order_acquire) == 0; }
  void finish();  // sleeps until all have returned

  // Returns when every worker has called it. What each wrote before is seen by all after.
  void meet();

 private:
  void work(int worker, int core);
  void stop();
  void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value) const;

  std::uint32_t spins_max_;
  Call call_ = nullptr;
  void* context_ = nullptr;
  bool stopping_ = false;
  alignas(64) std::atomic<std::uint32_t> round_{0};    // goes up when there is work
  alignas(64) std::atomic<std::uint32_t> running_{0};  // workers that are not done yet
  alignas(64) std::atomic<std::uint32_t> arrived_{0};  // at the meeting
  alignas(64) std::atomic<std::uint32_t> meeting_{0};  // goes up when all are there
  std::vector<std::exception_ptr> errors_;             // of the start, one a thread
  std::vector<std::thread> threads_;
};

}  // namespace nanet::stencil
