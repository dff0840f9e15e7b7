// SPDX-License-Identifier: Apache-2.0
#include "stencil/team.hpp"

#include <string>
#include <system_error>

#include "nanet/flow/thread.hpp"
#include "nanet/flow/wait.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::stencil {
namespace {

constexpr int kThreadsMax = 1024;

void check(const TeamConfig& config) {
  if (config.thread_count < 1 || config.thread_count > kThreadsMax) {
    throw SetupError(std::to_string(config.thread_count) + " threads cannot be had",
                     "a team has 1 to " + std::to_string(kThreadsMax), "give the number of cores");
  }
  if (!config.cores.empty() && config.cores.size() != static_cast<std::size_t>(config.thread_count)) {
    throw SetupError("the team cannot be pinned",
                     std::to_string(config.cores.size()) + " cores for " + std::to_string(config.thread_count) + " threads",
                     "name one core for each thread, or none");
  }
}

}  // namespace

Team::Team(const TeamConfig& config) : spins_max_(config.spins_max) {
  check(config);
  const auto count = static_cast<std::size_t>(config.thread_count);
  errors_.resize(count);
  threads_.reserve(count);
  running_.store(static_cast<std::uint32_t>(count));
  for (int worker = 0; worker < config.thread_count; ++worker) {
    const int core = config.cores.empty() ? -1 : config.cores[static_cast<std::size_t>(worker)];
    try {
      threads_.emplace_back(&Team::work, this, worker, core);
    } catch (const std::system_error& error) {
      stop();
      throw SetupError("thread " + std::to_string(worker) + " of " + std::to_string(count) + " cannot be started", error.what(),
                       "give fewer threads");
    }
  }
  finish();
  for (const std::exception_ptr& error : errors_) {
    if (!error) continue;
    stop();
    std::rethrow_exception(error);
  }
}

Team::~Team() { stop(); }

void Team::stop() {
  stopping_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Team::begin(Call call, void* context) {
  call_ = call;
  context_ = context;
  running_.store(static_cast<std::uint32_t>(threads_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
}

void Team::finish() {
  for (std::uint32_t left = running_.load(std::memory_order_acquire); left != 0; left = running_.load(std::memory_order_acquire)) {
    running_.wait(left, std::memory_order_acquire);
  }
}

void Team::work(int worker, int core) {
  try {
    if (core >= 0) flow::pin_this_thread(core);
    flow::name_this_thread("stencil-" + std::to_string(worker));
  } catch (...) {
    errors_[static_cast<std::size_t>(worker)] = std::current_exception();
  }
  for (std::uint32_t seen = 0;; ++seen) {
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
    wait_while(round_, seen);
    if (stopping_) return;
    call_(context_, worker);
  }
}

void Team::meet() {
  const std::uint32_t meeting = meeting_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_.size()) {
    arrived_.store(0, std::memory_order_relaxed);
    meeting_.fetch_add(1, std::memory_order_release);
    meeting_.notify_all();
  } else {
    wait_while(meeting_, meeting);
  }
}

void Team::wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value) const {
  for (std::uint32_t spin = 0; spin < spins_max_; ++spin) {
    if (word.load(std::memory_order_acquire) != value) return;
    flow::cpu_relax();
  }
  while (word.load(std::memory_order_acquire) == value) word.wait(value, std::memory_order_acquire);
}

}  // namespace nanet::stencil
