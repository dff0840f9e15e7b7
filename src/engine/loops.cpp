// SPDX-License-Identifier: Apache-2.0
// The threads of an engine: one loop for run to completion, one a stage when pipelined, and the order in which they end.
#include <algorithm>

#include "nanet/engine/engine.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/flow/wait.hpp"

namespace nanet::engine {
namespace {

constexpr std::uint32_t kCompletionsATurn = 16;           // so that answers leave and packets are fetched in between
constexpr std::uint64_t kDrainQuietNs = 20'000'000;       // nothing came for so long: the rest has arrived
constexpr std::uint64_t kDrainLongestNs = 1'000'000'000;  // a sender that does not stop is not waited for

// Idle turns: spins a bounded number of times, then says that it is time to sleep.
class Idle {
 public:
  explicit Idle(std::int64_t spins) : spins_(spins) {}
  bool should_sleep(bool busy) {
    if (busy || spins_ < 0) {
      idle_turns_ = 0;
    } else if (idle_turns_ < spins_) {
      ++idle_turns_;
    } else {
      return true;
    }
    if (!busy) flow::cpu_relax();
    return false;
  }

 private:
  const std::int64_t spins_;
  std::int64_t idle_turns_ = 0;
};

}  // namespace

std::uint32_t Engine::receive_once(std::uint64_t now_ns) {
  std::uint32_t packets = 0;
  for (Input& input : inputs_) packets += input.receiver->poll(now_ns);
  const std::uint32_t requests = flush_requests_.load(std::memory_order_relaxed);
  if (requests != flushes_done_) {
    flushes_done_ = requests;
    for (Input& input : inputs_) input.receiver->flush();
  }
  const bool holds_packets = std::any_of(inputs_.begin(), inputs_.end(), [](const Input& i) { return i.receiver->holds_packets(); });
  if (packets == 0 && !holds_packets) drained_ns_.store(now_ns, std::memory_order_release);
  return packets;
}

std::uint32_t Engine::process_once() {
  // Read before the queue: what was handed over before that moment is then in the queue or done.
  const std::uint64_t drained_ns = drained_ns_.load(std::memory_order_acquire);
  std::uint32_t done = 0;
  for (; done < kCompletionsATurn; ++done) {
    const Completion* completion = completions_->peek();
    if (completion == nullptr) break;
    flow::Clop& clop = *inputs_[completion->clop].clop;
    processor_->process(*completion, clop);
    clop.release();
    completions_->pop();
  }
  if (done < kCompletionsATurn) processor_->tick(drained_ns);
  collect_sent();
  return done;
}

void Engine::collect_sent() {
  if (answers_) answers_->collect_sent();
  if (forward_) forward_->collect_sent();
}

std::uint32_t Engine::send_once(std::uint64_t now_ns) { return transmitter_ ? transmitter_->poll(now_ns) : 0; }

void Engine::run_to_completion_loop() {
  Idle idle(config_.waiting.spins);
  while (!stopping_.load(std::memory_order_relaxed)) {
    const std::uint64_t now_ns = flow::clock_now_ns();
    const std::uint32_t work = receive_once(now_ns) + process_once() + send_once(now_ns);
    // With several links the sleep on the first is cut short, so that the others are looked at in time.
    if (idle.should_sleep(work > 0)) inputs_.front().link->wait(config_.waiting.sleep_ns / inputs_.size());
  }
  receive_rest();
  process_rest();
}

void Engine::receive_loop() {
  Idle idle(config_.waiting.spins);
  while (!stopping_.load(std::memory_order_relaxed)) {
    const std::uint32_t packets = receive_once(flow::clock_now_ns());
    if (idle.should_sleep(packets > 0)) inputs_.front().link->wait(config_.waiting.sleep_ns / inputs_.size());
  }
  receive_rest();
  receive_done_.store(true, std::memory_order_release);
}

void Engine::process_loop() {
  const auto spins = static_cast<std::uint32_t>(std::clamp<std::int64_t>(config_.waiting.spins, 0, UINT32_MAX));
  while (!receive_done_.load(std::memory_order_acquire)) {
    if (process_once() == 0) completions_->wait(config_.waiting.sleep_ns, spins);
  }
  process_rest();
  process_done_.store(true, std::memory_order_release);
}

void Engine::send_loop() {
  const auto spins = static_cast<std::uint32_t>(std::clamp<std::int64_t>(config_.waiting.spins, 0, UINT32_MAX));
  while (!process_done_.load(std::memory_order_acquire)) {
    if (send_once(flow::clock_now_ns()) == 0) tx_ring_->wait(config_.waiting.sleep_ns, spins);
  }
  while (send_once(flow::clock_now_ns()) > 0) collect_sent();  // the processing thread has ended: its part is done here
  collect_sent();                                              // also of what was sent before that was seen
}

// Takes what had arrived when the engine was stopped, and hands over the last buffers.
void Engine::receive_rest() {
  const std::uint64_t stop_ns = flow::clock_now_ns();
  std::uint64_t quiet_since_ns = stop_ns;
  for (std::uint64_t now_ns = stop_ns; now_ns - quiet_since_ns < kDrainQuietNs && now_ns - stop_ns < kDrainLongestNs;
       now_ns = flow::clock_now_ns()) {
    if (receive_once(now_ns) > 0) quiet_since_ns = now_ns;
    if (config_.topology == Topology::run_to_completion) {
      process_once();
      send_once(now_ns);
    }
  }
  for (Input& input : inputs_) input.receiver->flush();
}

void Engine::process_rest() {
  while (process_once() > 0) {
  }
  processor_->finish();
  if (config_.topology == Topology::run_to_completion) {
    while (send_once(flow::clock_now_ns()) > 0) collect_sent();
  }
}

}  // namespace nanet::engine
