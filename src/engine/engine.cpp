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

constexpr std::size_t kLinksMax = 256;
constexpr std::uint32_t kTxRingCapacity = 1024;
constexpr std::uint32_t kTxSlotBytes = 1536;  // the largest MTP is 1472 B

void append(std::vector<std::string>& to, const std::vector<std::string>& from) { to.insert(to.end(), from.begin(), from.end()); }

// What the processor's kind says it sends, and what the configuration has for it.
void check_sends(const EngineConfig& config) {
  const std::optional<ForwardConfig>& forward = config.processor.forward;
  if ((config.processor.kind == ProcessorKind::forward) != forward.has_value()) {
    throw SetupError(forward ? "a destination of events, but nothing forwards them" : "no destination for the events",
                     "forward belongs to processor kind forward",
                     forward ? "set processor: {kind: forward}" : "add forward: {endpoint: udp://ADDRESS:PORT} under processor:");
  }
  if (!forward) return;
  if (config.answers) {
    throw SetupError("answers from a processor that forwards", "it finds no rings", "remove answers, or set kind: rich");
  }
  const std::size_t least_bytes = wire::kMgpHeaderBytes + wire::m2egp_event_bytes(wire::kM2egpHitsMax);
  if (forward->packet_bytes_max < least_bytes || forward->packet_bytes_max > wire::kM2egpBytesMax ||
      forward->packet_bytes_max % 2 != 0) {
    throw SetupError("forward: packet_bytes_max is " + std::to_string(forward->packet_bytes_max),
                     "it must be even and 280 to 8972, so that any event fits", "set 1472, or 8972 where the MTU is 9000");
  }
}

}  // namespace

Engine::Engine(const EngineConfig& config) : config_(config) {
  if (config.links.empty()) throw SetupError("no link", "nothing to receive from", "add one under links:");
  if (config.links.size() > kLinksMax) {
    throw SetupError(std::to_string(config.links.size()) + " links", "a completion names at most " + std::to_string(kLinksMax),
                     "let several sources share a link");
  }
  std::uint32_t buffer_total = 0;
  for (const LinkConfig& link : config.links) buffer_total += link.memory_region.buffer_count;
  completions_ = std::make_unique<flow::CompletionQueue>(std::bit_ceil(buffer_total + 1));
  for (const LinkConfig& link : config.links) add_input(link, static_cast<std::uint8_t>(inputs_.size()));
  add_processor();
}

Engine::~Engine() { stop(); }

void Engine::add_input(const LinkConfig& config, std::uint8_t clop_id) {
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

void Engine::add_transmitter(const char* name, std::span<const std::string> endpoints, std::uint32_t slot_bytes) {
  if (endpoints.size() > Transmitter::kDestinationsMax) {
    throw SetupError(std::to_string(endpoints.size()) + " destinations of " + name,
                     "a packet goes to " + std::to_string(Transmitter::kDestinationsMax) + " at the most", "list fewer copies");
  }
  link::UdpConfig config{.name = name};
  for (const std::string& endpoint : endpoints) config.destinations.push_back(link::parse_endpoint(endpoint));
  auto udp = std::make_unique<link::UdpLink>(config);
  append(notes_, udp->notes());
  answer_link_ = std::move(udp);
  tx_ring_ = std::make_unique<flow::TxRing>(flow::TxRingConfig{.capacity = kTxRingCapacity, .slot_bytes = slot_bytes});
  sent_completions_ = std::make_unique<flow::CompletionQueue>(2 * kTxRingCapacity);
  transmitter_ = std::make_unique<Transmitter>(*tx_ring_, *answer_link_, *sent_completions_,
                                               static_cast<std::uint32_t>(endpoints.size()));
}

void Engine::add_processor() {
  const ProcessorConfig& config = config_.processor;
  check_sends(config_);
  if (config.kind == ProcessorKind::count) {
    processor_ = std::make_unique<CountProcessor>();
    return;
  }
  std::vector<std::uint32_t> first_source;
  std::uint32_t source_count = 0;
  for (const Input& input : inputs_) {
    if (input.config.protocol == ProtocolKind::raw) {
      throw SetupError("link " + input.config.name + " cannot feed the processor", "its protocol is raw",
                       "set protocol: mgp or m2egp, or processor: {kind: count}");
    }
    first_source.push_back(source_count);
    source_count += static_cast<std::uint32_t>(input.config.sources.size());
  }
  if (config_.answers) {
    std::vector<std::string> endpoints{config_.answers->endpoint};
    endpoints.insert(endpoints.end(), config_.answers->copies.begin(), config_.answers->copies.end());
    add_transmitter("answers", endpoints, kTxSlotBytes);
  }
  if (config.forward) add_transmitter("forward", {&config.forward->endpoint, 1}, config.forward->packet_bytes_max);
  Transmitter* const inline_transmitter = config_.topology == Topology::run_to_completion ? transmitter_.get() : nullptr;
  if (config.forward) {
    forward_ = std::make_unique<EventWriter>(*tx_ring_, *sent_completions_, *config.forward, process_counters_, inline_transmitter);
    processor_ = std::make_unique<EventForwarder>(config, std::move(first_source), source_count, *forward_, process_counters_);
    return;
  }
  if (config_.answers) {
    answers_ = std::make_unique<AnswerWriter>(*tx_ring_, *sent_completions_, *config_.answers, process_counters_, inline_transmitter);
  }
  processor_ = std::make_unique<RichProcessor>(config, std::move(first_source), source_count, answers_.get(), process_counters_,
                                               monitor_);
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
