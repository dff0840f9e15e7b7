// SPDX-License-Identifier: Apache-2.0
// Construction of a configured pipeline, its threads' life, and what is read from outside.
#include "nanet/engine/engine.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "nanet/engine/checks.hpp"
#include "nanet/engine/event_builder.hpp"
#include "nanet/engine/event_forwarder.hpp"
#include "nanet/engine/rich_trigger.hpp"
#include "nanet/engine/set_up.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/flow/realtime.hpp"
#include "nanet/flow/thread.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/udp.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

constexpr std::uint32_t kTxRingCapacity = 1024;
constexpr std::uint32_t kTxSlotBytes = 1536;  // the largest MTP is 1472 B

// A GPU reserves descriptors for a whole buffer before it begins with it, at most one a packet. So a buffer must not hold more packets than
// the TX ring has descriptors, however short they are.
constexpr std::uint32_t kGpuBufferPacketsMax = 2048;

void append(std::vector<std::string>& to, const std::vector<std::string>& from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace

Engine::Engine(const EngineConfig& config, const GpuFactory& make_gpu)
    : config_(config), channels_(config.processor.decision.mask, config.processor.hot_channels) {
  check(config);
  if (config.realtime_priority) notes_.push_back(flow::realtime_note(flow::realtime_guard()));
  add_lanes();
  for (std::size_t k = 0; k < config.links.size(); ++k) add_input(k);
  open_answer_link();
  for (std::size_t k = 0; k < lanes_.size(); ++k) {
    if (on_gpu()) {
      add_gpu_consumer(lanes_[k], config.processor.gpu_devices[k], make_gpu);
    } else {
      add_host_consumer(lanes_[k]);
    }
  }
}

Engine::~Engine() { stop(); }

void Engine::add_lanes() {
  lanes_.resize(on_gpu() ? config_.processor.gpu_devices.size() : 1);
  std::vector<std::uint32_t> buffers(lanes_.size());
  for (std::size_t k = 0; k < config_.links.size(); ++k) buffers[k % lanes_.size()] += config_.links[k].memory_region.buffer_count;
  for (std::size_t k = 0; k < lanes_.size(); ++k) {
    lanes_[k].completions = std::make_unique<flow::CompletionQueue>(std::bit_ceil(buffers[k] + 1));
  }
}

void Engine::add_input(std::size_t index) {
  const LinkConfig& config = config_.links[index];
  Lane& lane = lanes_[index % lanes_.size()];
  Input input{.config = config};
  const std::vector<link::Endpoint> sends_to = config_.answers && config_.answers->via == config.name
                                                   ? destinations()
                                                   : std::vector<link::Endpoint>{};
  if (wants_gpu_memory(config)) input.gpu_memory = make_gpu_memory(config, config_.processor.gpu_devices[index % lanes_.size()]);
  input.link = open_link(config, sends_to, input.gpu_memory ? input.gpu_memory->span() : std::span<std::byte>{});
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
  ReceiverConfig receiver{.batch_size = config.batch_size,
                          .timeout_ns = config.timeout_ns,
                          .senders = config.senders,
                          .packet_bytes_max = config.packet_bytes_max};
  if (on_gpu()) {
    clop.index_capacity = std::min(clop.index_capacity, std::max(kGpuBufferPacketsMax, 2 * config.batch_size));
    receiver.backlog_max = event_processor_config(config_, 0).gpu.buffers_in_flight + 1;  // one waits while the others are worked on
  }
  input.clop = std::make_unique<flow::Clop>(clop);
  append(notes_, input.clop->notes());
  lane.clops.push_back(input.clop.get());
  lane.payloads.push_back(input.link->payload_memory());
  input.receiver = make_receiver(config.protocol, receiver, *input.link, *input.clop, *lane.completions,
                                 make_router(config, clop_id), source_count(config));
  inputs_.push_back(std::move(input));
}

// Where packets of answers or of events go; none when nothing is sent.
std::vector<link::Endpoint> Engine::destinations() const {
  std::vector<link::Endpoint> endpoints;
  if (forwards()) {
    endpoints.push_back(link::parse_endpoint(config_.processor.forward->endpoint));
  } else if (config_.answers && config_.processor.kind == ProcessorKind::rich) {
    endpoints.push_back(link::parse_endpoint(config_.answers->endpoint));
    for (const std::string& copy : config_.answers->copies) endpoints.push_back(link::parse_endpoint(copy));
  }
  return endpoints;
}

void Engine::open_answer_link() {
  const std::vector<link::Endpoint> endpoints = destinations();
  if (endpoints.empty()) return;
  destination_count_ = static_cast<std::uint32_t>(endpoints.size());
  if (config_.answers && !config_.answers->via.empty()) {
    const auto named = std::find_if(inputs_.begin(), inputs_.end(),
                                    [&](const Input& input) { return input.config.name == config_.answers->via; });
    answer_link_ = named->link.get();
    return;
  }
  own_answer_link_ = std::make_unique<link::UdpLink>(
      link::UdpConfig{.name = forwards() ? "forward" : "answers", .destinations = endpoints});
  append(notes_, own_answer_link_->notes());
  answer_link_ = own_answer_link_.get();
}

void Engine::add_transmitter(Lane& lane, std::uint32_t slot_bytes) {
  if (answer_link_ == nullptr) return;
  std::uint32_t capacity = kTxRingCapacity;
  if (on_gpu()) {
    for (const flow::Clop* clop : lane.clops) capacity = std::max(capacity, std::bit_ceil(clop->index_capacity()));
    // Whoever waits for the GPU's last answers, those to all open events, sends nothing meanwhile.
    const std::optional<MergeConfig>& merge = config_.processor.merge;
    if (merge) capacity = std::max(capacity, std::bit_ceil(merge->open_events_max / gpu::kMergedAnswersMax + 2));
  }
  lane.tx_ring = std::make_unique<flow::TxRing>(flow::TxRingConfig{.capacity = capacity, .slot_bytes = slot_bytes});
  lane.sent_completions = std::make_unique<flow::CompletionQueue>(2 * capacity);
  lane.transmitter = std::make_unique<Transmitter>(*lane.tx_ring, *answer_link_, *lane.sent_completions, destination_count_);
}

void Engine::add_host_consumer(Lane& lane) {
  if (config_.processor.kind == ProcessorKind::count) {
    lane.consumer = std::make_unique<CountConsumer>(*lane.completions, lane.clops);
    return;
  }
  std::vector<EventOrigin> origins;
  std::uint32_t source_total = 0;
  for (const Input& input : inputs_) {
    origins.push_back({.clop = input.clop.get(), .protocol = input.config.protocol, .first_source = source_total});
    source_total += static_cast<std::uint32_t>(input.config.sources.size());
  }
  lane.consumer = std::make_unique<EventBuilder>(*lane.completions, std::move(origins), source_total, config_.processor.merge,
                                                 make_sink(lane), lane.counters);
}

std::unique_ptr<event::EventSink> Engine::make_sink(Lane& lane) {
  const ProcessorConfig& config = config_.processor;
  add_transmitter(lane, forwards() ? config.forward->packet_bytes_max : kTxSlotBytes);
  Transmitter* const inline_transmitter = config_.topology == Topology::run_to_completion ? lane.transmitter.get() : nullptr;
  if (forwards()) {
    lane.sent = flow::Counter::packets_forwarded;
    return std::make_unique<EventForwarder>(*lane.tx_ring, *lane.sent_completions, *config.forward, lane.counters,
                                            inline_transmitter);
  }
  std::optional<AnswerWriter> answers;
  if (lane.tx_ring) answers.emplace(*lane.tx_ring, *lane.sent_completions, *config_.answers, lane.counters, inline_transmitter);
  return std::make_unique<RichTrigger>(config, std::move(answers), lane.counters, monitor_, channels_);
}

void Engine::add_gpu_consumer(Lane& lane, int device, const GpuFactory& make_gpu) {
  add_transmitter(lane, kTxSlotBytes);
  auto processor = make_gpu(event_processor_config(config_, device),
                            {*lane.completions, lane.clops, lane.tx_ring.get(), lane.payloads});
  lane.consumer = std::make_unique<GpuConsumer>(std::move(processor), config_.processor.merge.has_value(), lane.counters, monitor_,
                                                channels_);
}

void Engine::start() {
  if (!threads_.empty()) throw SetupError("engine is started already", "start was called twice", "make a new engine for a new run");
  if (config_.topology == Topology::run_to_completion) {
    spawn("nanet-run", config_.receive_core, &Engine::run_to_completion_loop);
  } else {
    spawn("nanet-receive", config_.receive_core, &Engine::receive_loop);
    if (on_gpu()) {
      spawn("nanet-process", config_.process_core, &Engine::process_and_send_loop);
    } else {
      spawn("nanet-process", config_.process_core, &Engine::process_loop);
      if (answer_link_) spawn("nanet-send", config_.send_core, &Engine::send_loop);
    }
  }
  while (threads_ready_.load(std::memory_order_acquire) < threads_.size()) std::this_thread::yield();
  if (thread_error_) {
    stopping_ = true;
    let_go();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    std::rethrow_exception(thread_error_);
  }
  start_ns_ = flow::clock_now_ns();
  running_.store(true, std::memory_order_release);
  let_go();
}

void Engine::let_go() {
  go_.store(true, std::memory_order_release);
  go_.notify_all();
}

// The thread pins itself, and takes its priority, before it says that it is ready, so that start() can refuse to run without. It sleeps until all are:
// with real-time priority it could keep who starts them from its core.
void Engine::spawn(const char* name, std::optional<int> core, void (Engine::*loop)()) {
  const bool receives = threads_.empty();  // the first
  threads_.emplace_back([this, name, core, loop, receives] {
    bool as_asked = true;
    try {
      flow::name_this_thread(name);
      if (core) flow::pin_this_thread(*core);
      if (receives && config_.realtime_priority) flow::set_realtime_priority(*config_.realtime_priority);
    } catch (...) {
      as_asked = false;
      thread_error_ = std::current_exception();
    }
    threads_ready_.fetch_add(1, std::memory_order_release);
    go_.wait(false, std::memory_order_acquire);
    if (!as_asked) return;
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
  if (own_answer_link_) add_new(*own_answer_link_);
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
  Lane& lane = lanes_.front();  // all sources of one event are in one
  const std::uint64_t opened = lane.consumer->events_opened();
  lane.counters.set(flow::Counter::events_unseen, expected > opened ? expected - opened : 0);
}

// Of a GPU that was given up only the buffers that came back are known, or not even those; what it had and did not answer is the rest. Where it
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
    if (config_.processor.merge) {
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
