// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/thread.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "nanet/setup_error.hpp"

namespace nanet::flow {

void pin_this_thread(int core) {
  const std::string problem = "the thread cannot be pinned to core " + std::to_string(core);
  const long core_count = sysconf(_SC_NPROCESSORS_CONF);
  if (core < 0 || core >= CPU_SETSIZE || core >= core_count) {
    throw SetupError(problem, "this machine has cores 0 to " + std::to_string(core_count - 1), "name one of these");
  }
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  CPU_SET(static_cast<std::size_t>(core), &wanted);
  const int error = pthread_setaffinity_np(pthread_self(), sizeof wanted, &wanted);
  if (error != 0) {
    throw SetupError(problem, std::strerror(error), "name a core that is online and in this process's cpuset");
  }
  // Some sandboxes accept the call and do nothing.
  cpu_set_t got;
  CPU_ZERO(&got);
  if (pthread_getaffinity_np(pthread_self(), sizeof got, &got) != 0 || !CPU_EQUAL(&wanted, &got)) {
    throw SetupError(problem, "the kernel did not take the core", "run where threads can be pinned, or without a core");
  }
}

void name_this_thread(std::string_view name) {
  const std::string kept(name.substr(0, 15));
  pthread_setname_np(pthread_self(), kept.c_str());
}

void ask_for_short_turns() {
  struct {  // sched_attr of sched_setattr(2), for which there is no wrapper
    std::uint32_t size = 48;
    std::uint32_t policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 100'000;
    std::uint64_t deadline_ns = 0;
    std::uint64_t period_ns = 0;
  } wanted;
  static_assert(sizeof wanted == 48);
  wanted.nice = getpriority(PRIO_PROCESS, 0);
  syscall(SYS_sched_setattr, 0, &wanted, 0);
}

std::uint64_t this_thread_core_wait_ns() {
  std::ifstream file("/proc/thread-self/schedstat");  // time on the core, time waiting for it, time slices
  std::uint64_t running_ns = 0;
  std::uint64_t waiting_ns = 0;
  return file >> running_ns >> waiting_ns ? waiting_ns : 0;
}

void Thread::start(std::function<void()> prepare, std::function<void()> run) {
  struct Outcome {
    std::atomic<bool> known{false};
    std::exception_ptr error;
  };
  const auto outcome = std::make_shared<Outcome>();  // the thread still notifies when start() may have returned
  thread_ = std::thread([outcome, prepare = std::move(prepare), run = std::move(run)] {
    try {
      prepare();
    } catch (...) {
      outcome->error = std::current_exception();
    }
    const bool prepared = outcome->error == nullptr;
    outcome->known.store(true, std::memory_order_release);
    outcome->known.notify_one();
    if (prepared) run();
  });
  outcome->known.wait(false, std::memory_order_acquire);
  if (outcome->error) {
    thread_.join();
    std::rethrow_exception(std::exchange(outcome->error, nullptr));
  }
}

}  // namespace nanet::flow
