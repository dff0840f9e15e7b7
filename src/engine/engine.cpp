// SPDX-License-Identifier: Apache-2.0
// Construction of a configured pipeline, its threads' life, and what is read from outside.
#include "nanet/engine/engine.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "nanet/engine/set_up.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/flow/thread.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/recorder.hpp"
#include "nanet/link/udp.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

constexpr std::uint32_t kTxRingCapacity = 1024;
constexpr std::uint32_t kTxSlotBytes = 1536;  // the largest MTP is 1472 B

void append(std::vector<std::string>& to, const std::vector<std::string>& from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace

Engine::Engine(const EngineConfig& config) : config_(config) {
  if (config.links.empty()) throw SetupError("no link", "nothing to receive from", "add one under links:");
  std::uint32_t buffer_total = 0;
  for (const LinkConfig& link : config.links) buffer_total += link.memory_region.buffer_count;
  completions_ = std::make_unique<flow::CompletionQueue>(std::bit_ceil(buffer_total + 1));
  for (const LinkConfig& link : config.links) add_input(link, static_cast<std::uint16_t>(inputs_.size()));
  if (config.answers) add_answers(*config.answers);
  add_processor();
}

Engine::~Engine() { stop(); }

void Engine::add_input(const LinkConfig& config, std::uint16_t clop_id) {
  Input input{.config = config};
  auto udp = std::make_unique<link::UdpLink>(udp_config(config));
  append(notes_, udp->notes());
  const link::Endpoint local = udp->local();
  input.link = std::move(udp);
  if (config.record) {
    input.link = std::make_unique<link::Recorder>(
        std::move(input.link),
        link::RecorderConfig{.path = config.record->file, .max_bytes = config.record->bytes_max, .local = local});
  }
  if (config.faults) {
    auto faults = std::make_unique<link::FaultInjector>(std::move(input.link), *config.faults);
    input.faults = faults.get();
    input.link = std::move(faults);
  }
  input.clop = std::make_unique<flow::Clop>(clop_config(config, clop_id, input.link->min_room_bytes()));
  append(notes_, input.clop->notes());
  input.receiver = make_receiver(config.protocol, {.batch_size = config.batch_size, .timeout_ns = config.timeout_ns}, *input.link,
                                 *input.clop, *completions_, make_router(config, clop_id), source_count(config));
  inputs_.push_back(std::move(input));
}

void Engine::add_answers(const AnswersConfig& config) {
  auto udp = std::make_unique<link::UdpLink>(
      link::UdpConfig{.name = "answers", .destinations = {link::parse_endpoint(config.endpoint)}});
  append(notes_, udp->notes());
  answer_link_ = std::move(udp);
  tx_ring_ = std::make_unique<flow::TxRing>(flow::TxRingConfig{.capacity = kTxRingCapacity, .slot_bytes = kTxSlotBytes});
  sent_completions_ = std::make_unique<flow::CompletionQueue>(2 * kTxRingCapacity);
  transmitter_ = std::make_unique<Transmitter>(*tx_ring_, *answer_link_, *sent_completions_);
  answers_ = std::make_unique<AnswerWriter>(*tx_ring_, *sent_completions_, config, process_counters_,
                                            config_.topology == Topology::run_to_completion ? transmitter_.get() : nullptr);
}

void Engine::add_processor() {
  if (config_.processor.kind == ProcessorKind::count) {
    processor_ = std::make_unique<CountProcessor>();
    return;
  }
  std::vector<std::uint32_t> first_source;
  std::uint32_t source_count = 0;
  for (const Input& input : inputs_) {
    if (input.config.protocol != ProtocolKind::mgp) {
      throw SetupError("link " + input.config.name + " cannot feed the rich processor", "its protocol is raw",
                       "set protocol: mgp, or processor: {kind: count}");
    }
    first_source.push_back(source_count);
    source_count += static_cast<std::uint32_t>(input.config.sources.size());
  }
  processor_ = std::make_unique<RichProcessor>(config_.processor, std::move(first_source), source_count, answers_.get(),
                                               process_counters_, monitor_);
}

void Engine::start() {
  if (!threads_.empty()) throw SetupError("engine is started already", "start was called twice", "make a new engine for a new run");
  if (config_.topology == Topology::run_to_completion) {
    spawn("nanet-run", config_.receive_core, &Engine::run_to_completion_loop);
  } else {
    spawn("nanet-receive", config_.receive_core, &Engine::receive_loop);
    spawn("nanet-process", config_.process_core, &Engine::process_loop);
    if (transmitter_) spawn("nanet-send", config_.send_core, &Engine::send_loop);
  }
  while (threads_ready_.load(std::memory_order_acquire) < threads_.size()) std::this_thread::yield();
  if (thread_error_) {
    stopping_ = true;
    go_.store(true, std::memory_order_release);
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    std::rethrow_exception(thread_error_);
  }
  start_ns_ = flow::clock_now_ns();
  running_.store(true, std::memory_order_release);
  go_.store(true, std::memory_order_release);
}

// The thread pins itself before it says that it is ready, so that start() can refuse to run unpinned.
void Engine::spawn(const char* name, std::optional<int> core, void (Engine::*loop)()) {
  threads_.emplace_back([this, name, core, loop] {
    bool pinned = true;
    try {
      flow::name_this_thread(name);
      if (core) flow::pin_this_thread(*core);
    } catch (...) {
      pinned = false;
      thread_error_ = std::current_exception();
    }
    threads_ready_.fetch_add(1, std::memory_order_release);
    while (!go_.load(std::memory_order_acquire)) std::this_thread::yield();
    if (!pinned) return;
    const std::uint64_t waited_before_ns = flow::this_thread_core_wait_ns();
    (this->*loop)();
    core_wait_ns_.fetch_add(flow::this_thread_core_wait_ns() - waited_before_ns, std::memory_order_release);
  });
  // One after the other: a failing thread writes thread_error_ alone.
  while (threads_ready_.load(std::memory_order_acquire) < threads_.size()) std::this_thread::yield();
}

void Engine::stop() {
  if (!running()) return;
  stopping_.store(true, std::memory_order_release);
  for (std::thread& thread : threads_) thread.join();
  count_unseen();
  stop_ns_.store(flow::clock_now_ns(), std::memory_order_release);
  running_.store(false, std::memory_order_release);
}

double Engine::elapsed_s() const {
  if (start_ns_ == 0) return 0.0;
  const std::uint64_t stop_ns = stop_ns_.load(std::memory_order_acquire);
  return 1e-9 * static_cast<double>((stop_ns != 0 ? stop_ns : flow::clock_now_ns()) - start_ns_);
}

std::uint64_t Engine::total(flow::Counter counter) const {
  std::uint64_t sum = process_counters_.value(counter);
  for (const Input& input : inputs_) {
    sum += input.receiver->link_counters().value(counter);
    for (std::size_t s = 0; s < source_count(input.config); ++s) {
      sum += input.receiver->source_counters(s).value(counter);
    }
  }
  return sum;
}

// Events of which every part was lost leave no trace in the merger; the sources' running numbers know of them.
void Engine::count_unseen() {
  if (!config_.processor.merge || config_.processor.kind == ProcessorKind::count) return;
  std::uint64_t expected = 0;
  for (const Input& input : inputs_) {
    for (std::size_t s = 0; s < input.config.sources.size(); ++s) {
      const flow::Counters& source = input.receiver->source_counters(s);
      expected = std::max(expected, source.value(flow::Counter::events_received) + source.value(flow::Counter::events_lost));
    }
  }
  const std::uint64_t opened = processor_->events_opened();
  process_counters_.set(flow::Counter::events_unseen, expected > opened ? expected - opened : 0);
}

}  // namespace nanet::engine
