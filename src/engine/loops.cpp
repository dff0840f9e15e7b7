// SPDX-License-Identifier: Apache-2.0
// The threads of an engine: one loop for run to completion, one per stage when pipelined, and the order in which they end.
//
// No thread sleeps while something is in_flight(): what a GPU finishes wakes no one.
#include <algorithm>

#include "nanet/engine/engine.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/flow/wait.hpp"

namespace nanet::engine {
namespace {

constexpr std::uint64_t kDrainQuietNs = 20'000'000;       // nothing came for this long: the rest has arrived
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

std::uint32_t Engine::process_once(std::uint64_t now_ns) {
  // Read before the queues: what was handed over before that moment is then in a queue or done.
  const std::uint64_t drained_ns = drained_ns_.load(std::memory_order_acquire);
  std::uint32_t done = 0;
  for (Lane& lane : lanes_) {
    done += lane.consumer->poll(drained_ns, now_ns);
    lane.collect_sent();
    if (!lane.consumer->fault().empty()) [[unlikely]]
      publish_fault(lane);
  }
  return done;
}

std::uint32_t Engine::send_once(std::uint64_t now_ns) {
  std::uint32_t sent = 0;
  for (Lane& lane : lanes_) {
    if (lane.transmitter) sent += lane.transmitter->poll(now_ns);
  }
  return sent;
}

bool Engine::in_flight() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.in_flight(); });
}

// With several links the sleep on the first is cut short, so that the others are polled in time.
void Engine::sleep_on_link() { inputs_.front().link->wait(sleep_ns() / inputs_.size()); }

void Engine::publish_fault(Lane& lane) {
  if (lane.fault_told == lane.consumer->fault()) return;
  const std::lock_guard lock(fault_mutex_);
  lane.fault_told = lane.consumer->fault();
  faulted_.store(true, std::memory_order_release);
}

void Engine::run_to_completion_loop() {
  Idle idle(config_.waiting.spin);
  while (!stopping_.load(std::memory_order_relaxed)) {
    const std::uint64_t now_ns = flow::clock_now_ns();
    const std::uint32_t work = receive_once(now_ns) + process_once(now_ns) + send_once(now_ns);
    if (idle.should_sleep(work > 0 || in_flight())) sleep_on_link();
  }
  receive_rest();
  process_rest();
}

void Engine::receive_loop() {
  Idle idle(config_.waiting.spin);
  while (!stopping_.load(std::memory_order_relaxed)) {
    const std::uint32_t packets = receive_once(flow::clock_now_ns());
    if (idle.should_sleep(packets > 0 || in_flight())) sleep_on_link();
  }
  receive_rest();
  receive_done_.store(true, std::memory_order_release);
}

void Engine::process_loop() {
  const auto spins = static_cast<std::uint32_t>(std::clamp<std::int64_t>(config_.waiting.spin, 0, UINT32_MAX));
  flow::CompletionQueue& completions = *lanes_.front().completions;
  while (!receive_done_.load(std::memory_order_acquire)) {
    if (process_once(flow::clock_now_ns()) == 0) completions.wait(sleep_ns(), spins);
  }
  process_rest();
  process_done_.store(true, std::memory_order_release);
}

// With a GPU: the process thread only launches or watches, so it sends too. A completion ends its sleep.
void Engine::process_and_send_loop() {
  Idle idle(config_.waiting.spin);
  flow::CompletionQueue& completions = *lanes_.front().completions;
  while (!receive_done_.load(std::memory_order_acquire)) {
    const std::uint64_t now_ns = flow::clock_now_ns();
    const std::uint32_t work = process_once(now_ns) + send_once(now_ns);
    if (idle.should_sleep(work > 0 || in_flight())) completions.wait(sleep_ns() / lanes_.size(), 0);
  }
  process_rest();
}

void Engine::send_loop() {
  const auto spins = static_cast<std::uint32_t>(std::clamp<std::int64_t>(config_.waiting.spin, 0, UINT32_MAX));
  flow::TxRing& ring = *lanes_.front().tx_ring;
  while (!process_done_.load(std::memory_order_acquire)) {
    if (send_once(flow::clock_now_ns()) == 0) ring.wait(sleep_ns(), spins);
  }
  send_rest();  // the processing thread has ended: its part is done here
}

// Takes what had arrived when the engine was stopped, and hands over the last buffers.
void Engine::receive_rest() {
  const std::uint64_t stop_ns = flow::clock_now_ns();
  std::uint64_t quiet_since_ns = stop_ns;
  for (;;) {
    const std::uint64_t now_ns = flow::clock_now_ns();
    const bool quiet = receive_once(now_ns) == 0;
    if (!quiet) quiet_since_ns = now_ns;
    if (config_.topology == Topology::run_to_completion) {
      process_once(now_ns);
      send_once(now_ns);
    }
    // Only after a poll that found nothing: this thread may have been stopped for longer than the quiet lasts.
    if ((quiet && now_ns - quiet_since_ns >= kDrainQuietNs) || now_ns - stop_ns >= kDrainLongestNs) break;
  }
  for (Input& input : inputs_) input.receiver->flush();
}

// Ends when everything is answered, or the consumer that has the rest was given up.
void Engine::process_rest() {
  const bool sends = config_.topology == Topology::run_to_completion || works_alone();
  for (;;) {
    const std::uint64_t now_ns = flow::clock_now_ns();
    const std::uint32_t work = process_once(now_ns) + (sends ? send_once(now_ns) : 0);
    if (work == 0 && (!in_flight() || faulted_.load(std::memory_order_relaxed))) break;
  }
  for (Lane& lane : lanes_) {
    lane.consumer->finish();
    publish_fault(lane);
  }
  if (sends) send_rest();
}

void Engine::send_rest() {
  const auto collect = [this] {
    for (Lane& lane : lanes_) lane.collect_sent();
  };
  while (send_once(flow::clock_now_ns()) > 0) collect();
  collect();  // also of what was sent before
}

}  // namespace nanet::engine
