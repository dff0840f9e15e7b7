// SPDX-License-Identifier: Apache-2.0
#include "nanet/gpu/event_processor.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "gpu/processor_base.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::gpu {
namespace {

constexpr std::uint64_t kTellTimeNs = 100'000'000;
constexpr std::uint64_t kQueryAfterNs = 10'000'000;  // without progress: ask the driver whether the GPU still lives

std::uint64_t monotonic_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

void check_config(const EventProcessorConfig& config, const ContractMemory& memory) {
  const std::uint32_t in_flight = config.gpu.buffers_in_flight;
  if (in_flight < 1 || in_flight > kBuffersInFlightMax) {
    throw SetupError("GPU: buffers_in_flight is " + std::to_string(in_flight), "it must be 1 to 16", "start with 4");
  }
  if (memory.clops.size() > kClopsMax) {
    throw SetupError("GPU: " + std::to_string(memory.clops.size()) + " links", "one GPU takes at most 16",
                     "let several sources share a link");
  }
  if (memory.payloads.size() > memory.clops.size()) {
    throw SetupError("GPU: payload memory of " + std::to_string(memory.payloads.size()) + " links",
                     "there are " + std::to_string(memory.clops.size()), "give one for each, or none");
  }
  if (memory.answers != nullptr && memory.answers->slot_bytes() < wire::kMtpBytesMax) {
    throw SetupError("GPU: too small TX slots", "an answer packet has up to 1472 bytes", "make them 1472 bytes");
  }
}

void check_merge(const EventMerge& merge, const ContractMemory& memory) {
  event::check(merge.merger);
  if (merge.first_source.size() != memory.clops.size()) {
    throw SetupError("GPU: first_source of " + std::to_string(merge.first_source.size()) + " links",
                     "there are " + std::to_string(memory.clops.size()), "give one for each");
  }
  for (const std::uint32_t source : merge.first_source) {
    if (source < merge.merger.source_count) continue;
    throw SetupError("GPU: first_source " + std::to_string(source),
                     "there are " + std::to_string(merge.merger.source_count) + " sources", "count them over all links");
  }
}

}  // namespace

std::unique_ptr<EventProcessor> EventProcessor::make(const EventProcessorConfig& asked, ContractMemory memory) {
  EventProcessorConfig config = asked;
  if (config.merge) {
    check_merge(*config.merge, memory);
    config.gpu.buffers_in_flight = 1;
  }
  check_config(config, memory);
  switch (config.gpu.runtime) {
    case Runtime::persistent:
      if (config.gpu.path == BufferPath::copied) {
        throw SetupError("GPU: persistent with copied buffers", "the host does not act between completion and doorbell",
                         "set path: mapped, or runtime: launch");
      }
      return make_persistent(config, std::move(memory));
    case Runtime::launch:
    case Runtime::graph:
      return config.merge ? make_launched_rounds(config, std::move(memory)) : make_launched(config, std::move(memory));
    case Runtime::cpu: break;
  }
  throw SetupError("GPU: runtime cpu", "it is not one of a GPU's", "let the engine judge on the host");
}

ProcessorBase::State::State(std::uint32_t group_count, const rich::Decision& host_decision)
    : groups(group_count), samples(1), conditions(&host_decision.conditions, 1), mask(&host_decision.mask, 1) {
  const DeviceSamples none{0, sample_events.device()};
  check(cudaMemcpy(samples.get(), &none, sizeof none, cudaMemcpyHostToDevice), "cudaMemcpy");
}

ProcessorBase::ProcessorBase(const EventProcessorConfig& config, ContractMemory memory)
    : config_(config), memory_(std::move(memory)) {
  select_device();
  state_ = std::make_unique<State>(config.gpu.buffers_in_flight, config.decision);
  kernels_ = rich::with_finder(config.finder.kind, [&](auto kind) {
    using Kernels = FinderKernels<decltype(kind)::value>;
    return config_.merge ? Kernels::merge_runtimes() : Kernels::runtimes();
  });
  if (std::ranges::any_of(memory_.payloads, &flow::PayloadMemory::in_place)) kernels_.persistent = kernels_.persistent_in_place;
  for (const void* kernel : {kernels_.persistent, kernels_.item}) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kernels_.shared_bytes)),
          "cudaFuncSetAttribute", "choose another finder: this one needs more shared memory than the GPU has");
  }
  register_memory();
  if (config_.merge) set_up_merging();
}

void ProcessorBase::select_device() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    throw SetupError("no GPU", error != cudaSuccess ? cudaGetErrorString(error) : "the driver shows none",
                     "set runtime: cpu, or see nanet doctor");
  }
  if (config_.gpu.device < 0 || config_.gpu.device >= count) {
    throw SetupError("GPU " + std::to_string(config_.gpu.device) + " is not there", "there are " + std::to_string(count),
                     "set device: 0 to " + std::to_string(count - 1));
  }
  check(cudaSetDevice(config_.gpu.device), "cudaSetDevice");
  check(cudaGetDeviceProperties(&properties_, config_.gpu.device), "cudaGetDeviceProperties");
}

const Registration& ProcessorBase::add_registration(std::span<std::byte> memory, const std::string& name) {
  for (const auto& known : registrations_) {
    if (known->is_of(memory)) return *known;  // links may share the memory of their payloads
  }
  registrations_.push_back(std::make_unique<Registration>(memory, name));
  return *registrations_.back();
}

void ProcessorBase::register_memory() {
  const Registration& completions = add_registration(memory_.completions.region(), "the completion queue");
  work_.completions = completions.device(memory_.completions.memory().data());
  work_.completion_mask = memory_.completions.capacity() - 1;
  work_.popped = completions.device(&memory_.completions.indexes().consumed);
  for (std::size_t c = 0; c < memory_.clops.size(); ++c) {
    const flow::Clop& clop = *memory_.clops[c];
    const Registration& registration = add_registration(clop.region(), "CLOP '" + clop.config().name + "'");
    work_.clops[c] = {registration.device(clop.memory().data()), registration.device(clop.packet_index(0).data()),
                      registration.device(&clop.indexes().consumed), clop.buffer_bytes(), clop.index_capacity()};
  }
  for (std::size_t c = 0; c < memory_.payloads.size(); ++c) {
    if (memory_.payloads[c].in_place()) place_payloads(memory_.payloads[c], memory_.clops[c]->config().name, work_.clops[c]);
  }
  if (memory_.answers != nullptr) {
    flow::TxRing& ring = *memory_.answers;
    const Registration& registration = add_registration(ring.region(), "the TX ring");
    work_.descriptors = const_cast<TxDescriptor*>(registration.device(ring.memory().data()));
    work_.slots = registration.device(ring.slots().data());
    work_.slots_host = reinterpret_cast<std::uintptr_t>(ring.slots().data());
    work_.tx_indexes = registration.device(&ring.indexes());
    work_.tx_mask = ring.capacity() - 1;
    work_.slot_stride_bytes = static_cast<std::uint32_t>(ring.slot_stride_bytes());
  }
  begin_where_others_ended();
  work_.words = state_->words.device();
  work_.report = state_->report.device();
  work_.groups = state_->groups.get();
  work_.order = state_->order.get();
  work_.totals = state_->totals.get();
  work_.spectra = state_->spectra.get();
  work_.channel_hits = state_->channel_hits.get();
  work_.mask = config_.decision.mask.empty() ? nullptr : state_->mask.get();
  work_.samples = state_->samples.get();
  work_.cuts = config_.decision.cuts;
  work_.conditions = config_.decision.conditions.count != 0 ? state_->conditions.get() : nullptr;
  work_.group_count = config_.gpu.buffers_in_flight;
  tell_time(monotonic_ns());
  work_.answer_source_id = config_.answer_source_id;
  work_.answer_source_sub_id = config_.answer_source_sub_id;
}

// Payloads stay where the link's NIC writes them: in the host's memory, which the GPU has to see, or in its own.
void ProcessorBase::place_payloads(const flow::PayloadMemory& payloads, const std::string& clop, DeviceClop& placed) {
  const std::string name = "the payload memory of CLOP '" + clop + "'";
  placed.in_place = true;
  work_.bodies = state_->bodies.get();
  std::byte* const host = payloads.memory.data();
  if (payloads.kind != MemoryKind::device) {
    const Registration& registration = add_registration(payloads.memory, name);
    placed.payload_to_device = reinterpret_cast<std::uintptr_t>(registration.device(host)) - reinterpret_cast<std::uintptr_t>(host);
    return;
  }
  cudaPointerAttributes found{};
  check(cudaPointerGetAttributes(&found, host), "cudaPointerGetAttributes");
  if (found.type != cudaMemoryTypeDevice || found.device != config_.gpu.device) {
    throw SetupError("GPU " + std::to_string(config_.gpu.device) + ": " + name + " is not in this GPU's memory",
                     found.type == cudaMemoryTypeDevice ? "it is in that of GPU " + std::to_string(found.device)
                                                        : "no GPU has memory at its address",
                     "let the link take its memory from the GPU that is given its packets");
  }
}

// Queue and rings may have been in use before.
void ProcessorBase::begin_where_others_ended() {
  Order order{};
  consumed_seen_ = consumed();
  work_.first_number = order.planned = order.finished = consumed_seen_;
  for (std::size_t c = 0; c < memory_.clops.size(); ++c) order.released[c] = memory_.clops[c]->indexes().consumed;
  if (memory_.answers != nullptr) order.tx_first = memory_.answers->indexes().produced;
  check(cudaMemcpy(state_->order.get(), &order, sizeof order, cudaMemcpyHostToDevice), "cudaMemcpy");
}

// What the GPU completes the low half of an arrival with: now and then is enough.
void ProcessorBase::tell_time(std::uint64_t now_ns) {
  if (config_.merge) return;
  if (now_ns - told_ns_ < kTellTimeNs) return;
  told_ns_ = now_ns;
  for (std::uint32_t group = 0; group < work_.group_count; ++group) {
    std::atomic_ref(state_->words.host()[group].now_ns).store(now_ns, std::memory_order_relaxed);
  }
}

std::uint32_t ProcessorBase::poll(std::uint64_t now_ns, std::uint64_t caught_up_ns) {
  if (!fault_.empty()) return discard();
  if (config_.merge && caught_up_ns > caught_up_ns_) {
    caught_up_ns_ = caught_up_ns;
    std::atomic_ref(state_->words.host()->now_ns).store(caught_up_ns, std::memory_order_release);
  }
  tell_time(now_ns);
  const cudaError_t error = dispatch();
  if (error != cudaSuccess) give_up(cudaGetErrorString(error));
  const std::uint64_t now_consumed = consumed();
  const auto given_back = static_cast<std::uint32_t>(now_consumed - consumed_seen_);
  consumed_seen_ = now_consumed;
  const bool was_busy = std::exchange(busy_, busy());
  if (given_back > 0 || !was_busy || !busy_) {
    progress_ns_ = now_ns;
    return given_back;
  }
  const std::uint64_t stalled_ns = now_ns - progress_ns_;
  if (stalled_ns < kQueryAfterNs) return 0;
  if (const cudaError_t state = query(); state != cudaSuccess && state != cudaErrorNotReady) {
    give_up(cudaGetErrorString(state));
  } else if (stalled_ns > config_.gpu.watchdog_ns()) {
    give_up("no buffer was given back for " + std::to_string(stalled_ns / 1'000'000) + " ms");
  }
  return 0;
}

// The host takes the buffers again when nothing on the GPU can do so any more.
void ProcessorBase::give_up(const std::string& why) {
  fault_ = std::string("GPU ") + properties_.name + " was given up (" + why +
           ") see nvidia-smi and the kernel's log, then start again";
  tell(Stop::now);
}

std::uint32_t ProcessorBase::discard() {
  if (!ended_) {
    if (query() == cudaErrorNotReady) return 0;
    ended_ = true;
  }
  std::uint32_t count = 0;
  for (const Completion* completion; (completion = memory_.completions.peek()) != nullptr; ++count) {
    events_unjudged_ += completion->event_count;
    memory_.clops[completion->clop]->release();
    memory_.completions.pop();
  }
  consumed_seen_ = consumed();
  return count;
}

bool ProcessorBase::wait_until_ended(std::uint64_t timeout_ns) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
  while (query() == cudaErrorNotReady) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

void ProcessorBase::finish() {
  if (state_ == nullptr) return;
  while (busy() && fault_.empty()) poll(monotonic_ns(), caught_up_ns_);
  if (fault_.empty() && config_.merge) {
    if (const cudaError_t error = drain(); error != cudaSuccess) give_up(cudaGetErrorString(error));
  }
  if (fault_.empty()) tell(Stop::when_idle);
  bool ended = wait_until_ended(config_.gpu.watchdog_ns());
  if (!ended) {
    tell(Stop::now);
    ended = wait_until_ended(config_.gpu.watchdog_ns());
    if (fault_.empty())
      fault_ = std::string("GPU ") + properties_.name +
               " did not end by itself (it was still at work) see nvidia-smi and the kernel's log";
  }
  if (!ended) {
    // Whatever is freed or unregistered now would wait for the kernel.
    static_cast<void>(state_.release());
    for (auto& registration : registrations_) static_cast<void>(registration.release());
    fault_ = std::string("GPU ") + properties_.name + " does not end (a kernel hangs) end this process";
    return;
  }
  discard();
  collect();
}

void ProcessorBase::collect() {
  if (query() != cudaSuccess) return;  // after an error nothing can be read any more
  check(cudaMemcpy(&spectra_, state_->spectra.get(), sizeof spectra_, cudaMemcpyDeviceToHost), "cudaMemcpy");
  check(cudaMemcpy(channel_hits_.data(), state_->channel_hits.get(), sizeof channel_hits_, cudaMemcpyDeviceToHost), "cudaMemcpy");
  Report& report = *state_->report.host();
  check(cudaMemcpy(&report.totals, state_->totals.get(), sizeof report.totals, cudaMemcpyDeviceToHost), "cudaMemcpy");
  check(cudaMemcpy(&report.bodies, state_->bodies.get(), sizeof report.bodies, cudaMemcpyDeviceToHost), "cudaMemcpy");
  if (config_.merge) {
    check(cudaMemcpy(report.merger, merge_.table.state->totals, sizeof report.merger, cudaMemcpyDeviceToHost), "cudaMemcpy");
    check(cudaMemcpy(&report.discarded, &merge_.state->discarded, sizeof report.discarded, cudaMemcpyDeviceToHost), "cudaMemcpy");
  }
  DeviceSamples samples{};
  check(cudaMemcpy(&samples, state_->samples.get(), sizeof samples, cudaMemcpyDeviceToHost), "cudaMemcpy");
  const rich::EventSample* const first = state_->sample_events.host();
  samples_.assign(first, first + std::min<std::size_t>(samples.taken, rich::kSamples));
}

Totals ProcessorBase::totals() const {
  if (state_ == nullptr) return {};
  Report& shared = *state_->report.host();
  const auto load = [](std::uint64_t& word) { return std::atomic_ref(word).load(std::memory_order_relaxed); };
  event::PartTableState merger{};
  for (std::uint32_t k = 0; k < event::kPartCounts; ++k) merger.totals[k] = load(shared.merger[k]);
  return {.events = load(shared.totals.events),
          .rings = load(shared.totals.rings),
          .electrons = load(shared.totals.electrons),
          .hits_unmapped = load(shared.totals.hits_unmapped),
          .hits_masked = load(shared.totals.hits_masked),
          .rings_over_answer = load(shared.totals.rings_over_answer),
          .rings_outside = load(shared.totals.rings_outside),
          .merger = event::merger_stats(merger),
          .events_discarded = load(shared.discarded),
          .packets_bad_body = load(shared.bodies.packets_bad),
          .events_bad_body = load(shared.bodies.events_bad)};
}

}  // namespace nanet::gpu
