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

std::uint32_t Engine::receive_once(Share share, std::uint64_t now_ns) {
  std::uint32_t packets = 0;
  for (std::size_t k = share.first; k < share.last; ++k) packets += receive_into(lanes_[k], now_ns);
  return packets;
}

std::uint32_t Engine::receive_into(Lane& lane, std::uint64_t now_ns) {
  std::uint32_t packets = 0;
  for (Input* input : lane.inputs) packets += input->receiver->poll(now_ns);
  const std::uint32_t requests = flush_requests_.load(std::memory_order_relaxed);
  if (requests != lane.flushes_done) {
    lane.flushes_done = requests;
    for (Input* input : lane.inputs) input->receiver->flush();
  }
  if (packets > 0) return packets;
  const auto holds_packets = [](const Input* input) { return input->receiver->holds_packets(); };
  if (std::none_of(lane.inputs.begin(), lane.inputs.end(), holds_packets)) lane.drained_ns.store(now_ns, std::memory_order_release);
  return 0;
}

std::uint32_t Engine::process_once(Share share, std::uint64_t now_ns) {
  std::uint32_t done = 0;
  for (std::size_t k = share.first; k < share.last; ++k) {
    Lane& lane = lanes_[k];
    // Read before the queue: what was handed over before that moment is then in the queue or done.
    const std::uint64_t drained_ns = lane.drained_ns.load(std::memory_order_acquire);
    done += lane.consumer->poll(drained_ns, now_ns);
    lane.collect_sent();
    if (!lane.consumer->fault().empty()) [[unlikely]]
      publish_fault(lane);
  }
  return done;
}

std::uint32_t Engine::send_once(Share share, std::uint64_t now_ns) {
  std::uint32_t sent = 0;
  for (std::size_t k = share.first; k < share.last; ++k) {
    if (lanes_[k].transmitter) sent += lanes_[k].transmitter->poll(now_ns);
  }
  return sent;
}

bool Engine::in_flight(Share share) const {
  for (std::size_t k = share.first; k < share.last; ++k) {
    if (lanes_[k].in_flight()) return true;
  }
  return false;
}

// With several links the sleep on the first is cut short, so that the others are polled in time.
void Engine::sleep_on_link(Share share) {
  std::size_t links = 0;
  for (std::size_t k = share.first; k < share.last; ++k) links += lanes_[k].inputs.size();
  lanes_[share.first].inputs.front()->link->wait(sleep_ns() / links);
}

void Engine::publish_fault(Lane& lane) {
  if (lane.fault_told == lane.consumer->fault()) return;
  const std::lock_guard lock(fault_mutex_);
  lane.fault_told = lane.consumer->fault();
  faulted_.store(true, std::memory_order_release);
}

void Engine::run_to_completion_loop(Share share) {
  Idle idle(config_.waiting.spin);
  while (!stopping_.load(std::memory_order_relaxed)) {
    const std::uint64_t now_ns = flow::clock_now_ns();
    const std::uint32_t work = receive_once(share, now_ns) + process_once(share, now_ns) + send_once(share, now_ns);
    if (idle.should_sleep(work > 0 || in_flight(share))) sleep_on_link(share);
  }
  receive_rest(share);
  process_rest(share);
}

void Engine::receive_loop(Share share) {
  Idle idle(config_.waiting.spin);
  while (!stopping_.load(std::memory_order_relaxed)) {
    const std::uint32_t packets = receive_once(share, flow::clock_now_ns());
    if (idle.should_sleep(packets > 0 || in_flight(share))) sleep_on_link(share);
  }
  receive_rest(share);
  receive_done_.store(true, std::memory_order_release);
}

void Engine::process_loop(Share share) {
  const auto spins = static_cast<std::uint32_t>(std::clamp<std::int64_t>(config_.waiting.spin, 0, UINT32_MAX));
  flow::CompletionQueue& completions = *lanes_.front().completions;
  while (!receive_done_.load(std::memory_order_acquire)) {
    if (process_once(share, flow::clock_now_ns()) == 0) completions.wait(sleep_ns(), spins);
  }
  process_rest(share);
  process_done_.store(true, std::memory_order_release);
}

// With a GPU: the process thread only launches or watches, so it sends too. A completion ends its sleep.
void Engine::process_and_send_loop(Share share) {
  Idle idle(config_.waiting.spin);
  flow::CompletionQueue& completions = *lanes_.front().completions;
  while (!receive_done_.load(std::memory_order_acquire)) {
    const std::uint64_t now_ns = flow::clock_now_ns();
    const std::uint32_t work = process_once(share, now_ns) + send_once(share, now_ns);
    if (idle.should_sleep(work > 0 || in_flight(share))) completions.wait(sleep_ns() / lanes_.size(), 0);
  }
  process_rest(share);
}

void Engine::send_loop(Share share) {
  const auto spins = static_cast<std::uint32_t>(std::clamp<std::int64_t>(config_.waiting.spin, 0, UINT32_MAX));
  flow::TxRing& ring = *lanes_.front().tx_ring;
  while (!process_done_.load(std::memory_order_acquire)) {
    if (send_once(share, flow::clock_now_ns()) == 0) ring.wait(sleep_ns(), spins);
  }
  send_rest(share);  // the processing thread has ended: its part is done here
}

// Takes what had arrived when the engine was stopped, and hands over the last buffers.
void Engine::receive_rest(Share share) {
  const std::uint64_t stop_ns = flow::clock_now_ns();
  std::uint64_t quiet_since_ns = stop_ns;
  for (;;) {
    const std::uint64_t now_ns = flow::clock_now_ns();
    const bool quiet = receive_once(share, now_ns) == 0;
    if (!quiet) quiet_since_ns = now_ns;
    if (config_.topology == Topology::run_to_completion) {
      process_once(share, now_ns);
      send_once(share, now_ns);
    }
    // Only after a poll that found nothing: this thread may have been stopped for longer than the quiet lasts.
    if ((quiet && now_ns - quiet_since_ns >= kDrainQuietNs) || now_ns - stop_ns >= kDrainLongestNs) break;
  }
  for (std::size_t k = share.first; k < share.last; ++k) {
    for (Input* input : lanes_[k].inputs) input->receiver->flush();
  }
}

// Ends when everything is answered, or the consumer that has the rest was given up.
void Engine::process_rest(Share share) {
  const bool sends = config_.topology == Topology::run_to_completion || works_alone();
  for (;;) {
    const std::uint64_t now_ns = flow::clock_now_ns();
    const std::uint32_t work = process_once(share, now_ns) + (sends ? send_once(share, now_ns) : 0);
    if (work == 0 && (!in_flight(share) || faulted_.load(std::memory_order_relaxed))) break;
  }
  for (std::size_t k = share.first; k < share.last; ++k) {
    lanes_[k].consumer->finish();
    publish_fault(lanes_[k]);
  }
  if (sends) send_rest(share);
}

void Engine::send_rest(Share share) {
  const auto collect = [this, share] {
    for (std::size_t k = share.first; k < share.last; ++k) lanes_[k].collect_sent();
  };
  while (send_once(share, flow::clock_now_ns()) > 0) collect();
  collect();  // also of what was sent before
}

}  // namespace nanet::engine
