// SPDX-License-Identifier: Apache-2.0
#include "na62/gpu_consumer.hpp"

#include <algorithm>

#include "engine/merger_counters.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::na62 {
namespace {

using flow::Counter;

[[maybe_unused]] const char* runtime_name(gpu::Runtime runtime) {
  switch (runtime) {
    case gpu::Runtime::launch: return "launch";
    case gpu::Runtime::graph: return "graph";
    case gpu::Runtime::persistent: return "persistent";
    case gpu::Runtime::cpu: break;
  }
  return "cpu";
}

}  // namespace

std::unique_ptr<gpu::EventProcessor> make_event_processor(const gpu::EventProcessorConfig& config, gpu::ContractMemory memory) {
#ifdef NANET_CUDA
  return gpu::EventProcessor::make(config, std::move(memory));
#else
  static_cast<void>(memory);
  throw SetupError(std::string("processor runtime ") + runtime_name(config.gpu.runtime) + " is not in this build",
                   "it was built without CUDA", "run make cuda, or set runtime: cpu");
#endif
}

event::MergerConfig merger_config(const engine::MergeConfig& merge, std::uint32_t source_count) {
  return {.source_count = source_count,
          .window_ns = merge.window_us * 1000,
          .open_events_max = merge.open_events_max,
          .hits_max = rich::kMaxHits};
}

gpu::EventProcessorConfig event_processor_config(const RichConfig& config, const engine::LaneParts& parts) {
  gpu::EventProcessorConfig made{.gpu = config.gpu, .finder = config.finder, .decision = config.decision};
  made.gpu.device = config.gpu.devices[parts.lane];
  made.gpu.kernels = static_cast<std::uint32_t>(std::ranges::count(config.gpu.devices, made.gpu.device));
  if (config.merge) {
    gpu::EventMerge& merge = made.merge.emplace();
    merge.merger = merger_config(*config.merge, parts.source_count);
    for (const engine::EventOrigin& origin : parts.origins) merge.first_source.push_back(origin.first_source);
    merge.incomplete = config.merge->incomplete == engine::IncompletePolicy::drop ? gpu::IncompletePolicy::drop
                                                                                  : gpu::IncompletePolicy::process;
    made.gpu.buffers_in_flight = 1;  // the next buffer completes what one left open
  }
  if (config.answers) {
    made.answer_source_id = config.answers->source_id;
    made.answer_source_sub_id = config.answers->source_sub_id;
  }
  return made;
}

std::uint32_t GpuConsumer::poll(std::uint64_t caught_up_ns, std::uint64_t now_ns) {
  const std::uint32_t given_back = processor_->poll(now_ns, caught_up_ns);
  if (given_back > 0 || merges_) count();  // windows end without a buffer too
  return given_back;
}

void GpuConsumer::finish() {
  processor_->finish();
  count();
  monitor_.take(processor_->spectra(), processor_->samples());
  channels_.take(processor_->channel_hits());
}

void GpuConsumer::count() {
  const gpu::Totals totals = processor_->totals();
  counters_.set(merges_ ? Counter::parts_unjudged : Counter::events_unjudged, processor_->events_unjudged());
  // A GPU that never ended can no longer be asked.
  if (totals.events < seen_.events || totals.merger.events_opened < seen_.merger.events_opened) return;
  seen_ = totals;
  counters_.set(Counter::events_answered, totals.events);
  counters_.set(Counter::rings_found, totals.rings);
  counters_.set(Counter::rings_electron, totals.electrons);
  counters_.set(Counter::hits_unmapped, totals.hits_unmapped);
  counters_.set(Counter::hits_masked, totals.hits_masked);
  counters_.set(Counter::rings_over_answer, totals.rings_over_answer);
  counters_.set(Counter::rings_outside, totals.rings_outside);
  counters_.set(Counter::packets_bad_body, totals.packets_bad_body);
  counters_.set(Counter::events_bad_body, totals.events_bad_body);
  if (!merges_) return;
  engine::publish_merger(seen_.merger, counters_);
  counters_.set(Counter::events_discarded, seen_.events_discarded);
}

}  // namespace nanet::na62
