// SPDX-License-Identifier: Apache-2.0
// Construction of a configured pipeline, its threads' life, and what is read from outside.
#include "nanet/engine/engine.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/set_up.hpp"
#include "flow/realtime.hpp"
#include "nanet/engine/checks.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/engine/protocol.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/udp.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

void append(std::vector<std::string>& to, const std::vector<std::string>& from) { to.insert(to.end(), from.begin(), from.end()); }

const EngineConfig& checked(const EngineConfig& config) {
  check(config);
  return config;
}

}  // namespace

Engine::Engine(const EngineConfig& config) : config_(with_queues(checked(config))) {
  needs_ = config.processor->needs();
  if (config.cpu_cores.realtime_priority) {
    const flow::RealtimeGuard guard = flow::realtime_guard();
    flow::check(guard);
    notes_.push_back(flow::realtime_note(guard));
  }
  add_lanes();
  inputs_.reserve(config_.links.size());  // the lanes point to them
  for (std::size_t k = 0; k < config_.links.size(); ++k) add_input(k);
  open_send_link();
  for (std::size_t k = 0; k < lanes_.size(); ++k) add_consumer(k);
}

Engine::~Engine() { stop(); }

void Engine::add_lanes() {
  lanes_.resize(std::max<std::size_t>({needs_.gpus.size(), config_.cpu_cores.lanes.size(), 1}));
  std::vector<std::uint32_t> buffers(lanes_.size());
  for (std::size_t k = 0; k < config_.links.size(); ++k) buffers[k % lanes_.size()] += config_.links[k].memory_region.buffer_count;
  for (std::size_t k = 0; k < lanes_.size(); ++k) {
    lanes_[k].completions = std::make_unique<flow::CompletionQueue>(std::bit_ceil(buffers[k] + 1));
    lanes_[k].sent = needs_.sent;
  }
}

void Engine::add_input(std::size_t index) {
  LinkConfig config = config_.links[index];
  if (config.queue > 0) config.endpoint = link::to_string(inputs_[index - config.queue].link->local());
  Lane& lane = lanes_[index % lanes_.size()];
  Input input{.config = config};
  LinkParts parts;
  if (config_.send && config_.send->via == config.name) {
    parts.destinations = destinations();
    parts.group_sending = config_.send->group_sending;
  }
  const std::vector<link::Endpoint> sends_to = parts.destinations;
  if (wants_gpu_memory(config)) {
    input.gpu_memory = make_gpu_memory(config, needs_.gpus[index % lanes_.size()]);
    parts.gpu_memory = input.gpu_memory->span();
  }
  input.link = open_link(config, std::move(parts));
  append(notes_, input.link->notes());
  if (config.record) {
    const link::RecorderConfig recorder{
        .path = config.record->file, .max_bytes = config.record->bytes_max, .local = input.link->local(), .destinations = sends_to};
    auto recording = std::make_unique<link::Recorder>(std::move(input.link), recorder);
    input.recorder = recording.get();
    input.link = std::move(recording);
  }
  if (config.faults) {
    auto faults = std::make_unique<link::FaultInjector>(std::move(input.link), *config.faults);
    input.faults = faults.get();
    input.link = std::move(faults);
  }
  const auto clop_id = static_cast<std::uint8_t>(lane.clops.size());
  flow::ClopConfig clop = clop_config(config, clop_id, *input.link);
  const ReceiverConfig receiver = receiver_config(config, needs_.buffers_in_flight + 1);  // one waits while the others are worked on
  if (needs_.buffer_packets_max > 0) {
    clop.index_capacity = std::min(clop.index_capacity, std::max(needs_.buffer_packets_max, 2 * config.batch_size));
  }
  input.clop = std::make_unique<flow::Clop>(clop);
  append(notes_, input.clop->notes());
  lane.clops.push_back(input.clop.get());
  lane.payloads.push_back(input.link->payload_memory());
  input.receiver = config.protocol->make_receiver(receiver, {.link = *input.link,
                                                             .clop = *input.clop,
                                                             .queue = *lane.completions,
                                                             .router = make_router(config, clop_id),
                                                             .source_count = source_count(config)});
  inputs_.push_back(std::move(input));
  lane.inputs.push_back(&inputs_.back());
}

// None when nothing is sent.
std::vector<link::Endpoint> Engine::destinations() const {
  std::vector<link::Endpoint> endpoints;
  if (config_.send) {
    for (const std::string& endpoint : config_.send->endpoints) endpoints.push_back(link::parse_endpoint(endpoint));
  }
  return endpoints;
}

void Engine::open_send_link() {
  const std::vector<link::Endpoint> endpoints = destinations();
  if (endpoints.empty()) return;
  destination_count_ = static_cast<std::uint32_t>(endpoints.size());
  if (!config_.send->via.empty()) {
    const auto named = std::find_if(inputs_.begin(), inputs_.end(),
                                    [&](const Input& input) { return input.config.name == config_.send->via; });
    send_link_ = named->link.get();
    return;
  }
  if (config_.send->torus) {
    own_send_link_ = link::open_torus(link::torus_sender(*config_.send->torus, config_.send->name, endpoints, needs_.tx_slot_bytes));
  } else {
    own_send_link_ = std::make_unique<link::UdpLink>(
        link::UdpConfig{.name = config_.send->name, .destinations = endpoints, .group_sending = config_.send->group_sending});
  }
  append(notes_, own_send_link_->notes());
  send_link_ = own_send_link_.get();
}

void Engine::add_transmitter(Lane& lane) {
  if (send_link_ == nullptr || needs_.tx_slot_bytes == 0) return;
  std::uint32_t capacity = std::bit_ceil(needs_.tx_packets_max);
  if (needs_.buffer_packets_max > 0) {  // it reserves a descriptor for each packet of a buffer before it begins with it
    for (const flow::Clop* clop : lane.clops) capacity = std::max(capacity, std::bit_ceil(clop->index_capacity()));
  }
  lane.tx_ring = std::make_unique<flow::TxRing>(flow::TxRingConfig{.capacity = capacity, .slot_bytes = needs_.tx_slot_bytes});
  lane.sent_completions = std::make_unique<flow::CompletionQueue>(2 * capacity);
  lane.transmitter = std::make_unique<Transmitter>(*lane.tx_ring, *send_link_, *lane.sent_completions, destination_count_);
}

void Engine::add_consumer(std::size_t index) {
  Lane& lane = lanes_[index];
  add_transmitter(lane);
  LaneParts parts{.lane = index,
                  .completions = *lane.completions,
                  .origins = {},
                  .payloads = lane.payloads,
                  .source_count = 0,
                  .tx_ring = lane.tx_ring.get(),
                  .sent_completions = lane.sent_completions.get(),
                  .inline_transmitter = config_.topology == Topology::run_to_completion ? lane.transmitter.get() : nullptr,
                  .counters = lane.counters};
  for (const Input* input : lane.inputs) {
    parts.origins.push_back({.clop = input->clop.get(), .protocol = input->config.protocol, .first_source = parts.source_count});
    parts.source_count += static_cast<std::uint32_t>(source_count(input->config));
  }
  lane.consumer = config_.processor->make_consumer(std::move(parts));
}

void Engine::start() {
  if (!threads_.empty()) throw SetupError("engine is started already", "start was called twice", "make a new engine for a new run");
  try {
    start_threads();
  } catch (...) {  // the threads before it wait for their release
    stopping_ = true;
    let_go();
    for (flow::Thread& thread : threads_) thread.join();
    threads_.clear();
    throw;
  }
  start_ns_ = flow::clock_now_ns();
  running_.store(true, std::memory_order_release);
  let_go();
}

void Engine::start_threads() {
  const CoresConfig& cores = config_.cpu_cores;
  if (!cores.lanes.empty()) {
    for (std::size_t k = 0; k < lanes_.size(); ++k) {
      spawn("nanet-lane" + std::to_string(k), cores.lanes[k], {k, k + 1}, &Engine::run_to_completion_loop);
    }
  } else if (config_.topology == Topology::run_to_completion) {
    spawn("nanet-run", cores.receive, all_lanes(), &Engine::run_to_completion_loop);
  } else {
    spawn("nanet-receive", cores.receive, all_lanes(), &Engine::receive_loop);
    if (works_alone()) {
      spawn("nanet-process", cores.process, all_lanes(), &Engine::process_and_send_loop);
    } else {
      spawn("nanet-process", cores.process, all_lanes(), &Engine::process_loop);
      if (send_link_) spawn("nanet-send", cores.send, all_lanes(), &Engine::send_loop);
    }
  }
}

void Engine::let_go() {
  go_.store(true, std::memory_order_release);
  go_.notify_all();
}

// The thread sleeps until all are there: with real-time priority it could keep the starting thread from its core.
void Engine::spawn(const std::string& name, std::optional<int> core, Share share, void (Engine::*loop)(Share)) {
  const bool receives = threads_.empty() || !config_.cpu_cores.lanes.empty();
  const auto prepare = [this, name, core, receives] {
    flow::name_this_thread(name.c_str());
    if (core) flow::pin_this_thread(*core);
    if (receives && config_.cpu_cores.realtime_priority) flow::set_realtime_priority(*config_.cpu_cores.realtime_priority);
  };
  const auto run = [this, share, loop] {
    go_.wait(false, std::memory_order_acquire);
    const std::uint64_t waited_before_ns = flow::this_thread_core_wait_ns();
    (this->*loop)(share);
    core_wait_ns_.fetch_add(flow::this_thread_core_wait_ns() - waited_before_ns, std::memory_order_release);
  };
  flow::Thread thread;
  thread.start(prepare, run);
  threads_.push_back(std::move(thread));
}

void Engine::stop() {
  if (!running()) return;
  stopping_.store(true, std::memory_order_release);
  for (flow::Thread& thread : threads_) thread.join();
  for (const Input& input : inputs_) {
    if (input.recorder != nullptr) input.recorder->flush();  // now, so that the result says whether the disk took the rest
  }
  count_unseen();
  count_unjudged();
  stop_ns_.store(flow::clock_now_ns(), std::memory_order_release);
  running_.store(false, std::memory_order_release);
}

double Engine::elapsed_s() const {
  if (start_ns_ == 0) return 0.0;
  const std::uint64_t stop_ns = stop_ns_.load(std::memory_order_acquire);
  return 1e-9 * static_cast<double>((stop_ns != 0 ? stop_ns : flow::clock_now_ns()) - start_ns_);
}

bool Engine::inputs_finished() const {
  return std::all_of(inputs_.begin(), inputs_.end(), [](const Input& input) { return input.link->finished(); });
}

std::vector<std::string> Engine::notes() const {
  std::vector<std::string> notes = notes_;
  const auto add_new = [&](const link::Link& link) {
    for (std::string& note : link.notes()) {
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
    }
  };
  for (const Input& input : inputs_) add_new(*input.link);
  if (own_send_link_) add_new(*own_send_link_);
  return notes;
}

std::uint64_t Engine::total(flow::Counter counter) const {
  std::uint64_t sum = 0;
  for (const Lane& lane : lanes_) sum += lane.counters.value(counter);
  for (const Input& input : inputs_) {
    sum += input.receiver->link_counters().value(counter);
    for (std::size_t s = 0; s < source_count(input.config); ++s) {
      sum += input.receiver->source_counters(s).value(counter);
    }
  }
  return sum;
}

flow::LatencyHistogram Engine::residence_ns() const {
  flow::LatencyHistogram all;
  for (const Lane& lane : lanes_) {
    if (lane.transmitter) all.add(lane.transmitter->residence_ns());
  }
  return all;
}

std::vector<std::string> Engine::device_names() const {
  std::vector<std::string> names;
  for (const Lane& lane : lanes_) {
    if (std::string name = lane.consumer->device_name(); !name.empty()) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> Engine::faults() const {
  std::vector<std::string> found;
  if (!faulted_.load(std::memory_order_acquire)) return found;
  const std::lock_guard lock(fault_mutex_);
  for (const Lane& lane : lanes_) {
    if (!lane.fault_told.empty()) found.push_back(lane.fault_told);
  }
  return found;
}

// Events of which every part was lost leave no trace in the merger; the sources' running numbers show them.
void Engine::count_unseen() {
  if (!needs_.merges) return;
  std::uint64_t expected = 0;
  for (const Input& input : inputs_) {
    for (std::size_t s = 0; s < input.config.sources.size(); ++s) {
      const flow::Counters& source = input.receiver->source_counters(s);
      expected = std::max(expected, source.value(flow::Counter::events_received) + source.value(flow::Counter::events_lost));
    }
  }
  Lane& lane = lanes_.front();  // all sources of one event are in one
  const std::uint64_t opened = lane.consumer->events_opened();
  lane.counters.set(flow::Counter::events_unseen, expected > opened ? expected - opened : 0);
}

// Of a GPU that was given up, only the buffers that came back are known, or not even those; the rest is what it did not answer. Where it
// merges, it had parts, some of them in events that it had opened.
void Engine::count_unjudged() {
  for (std::size_t k = 0; k < lanes_.size(); ++k) {
    Lane& lane = lanes_[k];
    if (lane.fault_told.empty()) continue;
    std::uint64_t received = 0;
    for (std::size_t i = k; i < inputs_.size(); i += lanes_.size()) {
      for (std::size_t s = 0; s < source_count(inputs_[i].config); ++s) {
        received += inputs_[i].receiver->source_counters(s).value(flow::Counter::events_received);
      }
    }
    const auto value = [&](flow::Counter counter) { return lane.counters.value(counter); };
    const auto set_rest = [&](flow::Counter rest, std::uint64_t all, std::uint64_t known) {
      lane.counters.set(rest, all - std::min(all, known));
    };
    using flow::Counter;
    if (needs_.merges) {
      set_rest(Counter::parts_unjudged, received,
               value(Counter::parts_merged) + value(Counter::parts_late) + value(Counter::parts_duplicate) +
                   value(Counter::parts_no_room) + value(Counter::events_bad_body));
      set_rest(Counter::events_unjudged, lane.consumer->events_opened(),
               value(Counter::events_answered) + value(Counter::events_discarded));
    } else {
      set_rest(Counter::events_unjudged, received, value(Counter::events_answered) + value(Counter::events_bad_body));
    }
  }
}

}  // namespace nanet::engine
