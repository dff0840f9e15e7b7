// SPDX-License-Identifier: Apache-2.0
#include "na62/rich_processor.hpp"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "na62/rich_trigger.hpp"
#include "nanet/engine/checks.hpp"
#include "nanet/engine/event_builder.hpp"
#include "nanet/gpu/event_processor.hpp"
#include "nanet/setup_error.hpp"
#include "nanet/wire/mgp.hpp"
#include "nanet/wire/mtp.hpp"

namespace nanet::na62 {
namespace {

constexpr std::uint32_t kTxSlotBytes = 1536;  // the largest MTP is 1472 B

// A GPU reserves descriptors for a whole buffer before it begins with it, at most one a packet. So a buffer must not hold more packets than
// the TX ring has descriptors, however short they are.
constexpr std::uint32_t kGpuBufferPacketsMax = 2048;

void check_gpu_link(const engine::LinkConfig& link, bool merges) {
  if (link.packet_bytes_max > gpu::kPacketBytesMax) {
    throw SetupError("packet_bytes_max " + std::to_string(link.packet_bytes_max) + " of link '" + link.name + "'",
                     "a GPU takes packets of at most " + std::to_string(gpu::kPacketBytesMax) + " B",
                     "set it to that, or runtime: cpu");
  }
  if (link.sources.empty()) {
    throw SetupError("link '" + link.name + "' has no sources", "a GPU refuses packets of others than those named", "add sources:");
  }
  if (link.sources.size() != 1 && !merges) {
    throw SetupError("link '" + link.name + "' has " + std::to_string(link.sources.size()) + " sources",
                     "on a GPU without merge each packet must hold whole events, from one source per link",
                     "add processor.merge: {window_us: 200}, or give each source a link of its own");
  }
}

void check_persistent(const gpu::GpuConfig& config) {
  if (config.path == gpu::BufferPath::copied) {
    throw SetupError("runtime persistent with copied buffers", "the host does nothing between a buffer and its answers",
                     "set gpu.path: mapped, or runtime: launch");
  }
  const std::set<int> different(config.devices.begin(), config.devices.end());
  if (config.blocks == 0 && different.size() < config.devices.size()) {
    throw SetupError("a GPU is named twice", "a persistent kernel takes all of it unless told how much",
                     "set gpu.blocks, such as 8");
  }
}

}  // namespace

RichProcessor::RichProcessor(const RichConfig& config, GpuFactory make_gpu)
    : config_(config), make_gpu_(std::move(make_gpu)), channels_(config.decision.mask, config.hot_channels) {}

void RichProcessor::check(const engine::EngineConfig& engine) const {
  engine::require_events(engine, on_gpu() || config_.merge.has_value());  // on a GPU each link may have a source of its own
  if (on_gpu()) check_gpu(engine);
}

engine::ProcessorNeeds RichProcessor::needs() const {
  engine::ProcessorNeeds needs;
  needs.merges = config_.merge.has_value();
  if (config_.answers) needs.tx_slot_bytes = kTxSlotBytes;
  if (!on_gpu()) return needs;
  needs.gpus = config_.gpu.devices;
  needs.buffer_packets_max = kGpuBufferPacketsMax;
  // The next buffer completes what one left open.
  needs.buffers_in_flight = config_.merge ? 1 : config_.gpu.buffers_in_flight;
  // The thread that waits for the GPU's last answers, those to all open events, sends nothing meanwhile.
  if (config_.merge) {
    needs.tx_packets_max = std::max(needs.tx_packets_max, config_.merge->open_events_max / gpu::kMergedAnswersMax + 2);
  }
  return needs;
}

std::unique_ptr<engine::Consumer> RichProcessor::make_consumer(engine::LaneParts parts) {
  if (on_gpu()) return make_gpu_consumer(std::move(parts));
  std::optional<AnswerWriter> answers;
  if (config_.answers && parts.tx_ring != nullptr) {
    answers.emplace(*parts.tx_ring, *parts.sent_completions, *config_.answers, parts.counters, parts.inline_transmitter);
  }
  auto trigger = std::make_unique<RichTrigger>(config_, std::move(answers), parts.counters, rings_, channels_);
  return std::make_unique<engine::EventBuilder>(parts.completions, std::move(parts.origins), parts.source_count, config_.merge,
                                                std::move(trigger), parts.counters);
}

std::unique_ptr<engine::Consumer> RichProcessor::make_gpu_consumer(engine::LaneParts parts) {
  auto processor = make_gpu_(event_processor_config(config_, parts),
                             {parts.completions, parts.clops(), parts.tx_ring, std::move(parts.payloads)});
  return std::make_unique<GpuConsumer>(std::move(processor), config_.merge.has_value(), parts.counters, rings_, channels_);
}

void RichProcessor::check_gpu(const engine::EngineConfig& engine) const {
  if (config_.hot_channels == HotChannels::mask) {
    throw SetupError("mask.hot is true", "a GPU counts the hits of channels but does not judge them during the run",
                     "list them in mask.channels, or set runtime: cpu");
  }
  for (const engine::LinkConfig& link : engine.links) check_gpu_link(link, config_.merge.has_value());
  if (config_.gpu.devices.empty() || config_.gpu.devices.size() > engine.links.size()) {
    throw SetupError(std::to_string(config_.gpu.devices.size()) + " GPUs for " + std::to_string(engine.links.size()) + " link(s)",
                     "the links go to the GPUs in turn", "name a GPU at least, and not more than there are links");
  }
  if (config_.gpu.runtime == gpu::Runtime::persistent) check_persistent(config_.gpu);
  if (config_.merge) check_gpu_merge(engine);
  constexpr std::uint32_t kPacketEventsMax = (gpu::kPacketBytesMax - wire::kMgpHeaderBytes) / wire::kMgpEventHeaderBytes;
  const std::uint32_t answers_max = config_.merge ? gpu::kMergedAnswersMax : kPacketEventsMax;
  if (config_.answers && config_.answers->primitives_max < answers_max) {
    throw SetupError("answers.primitives_max " + std::to_string(config_.answers->primitives_max),
                     "a GPU writes up to " + std::to_string(answers_max) + " into a packet of answers", "leave it at 255");
  }
}

void RichProcessor::check_gpu_merge(const engine::EngineConfig& engine) const {
  if (config_.gpu.devices.size() > 1) {
    throw SetupError("merge on " + std::to_string(config_.gpu.devices.size()) + " GPUs",
                     "the parts of an event meet in the memory of one",
                     "name one device, or let nodes with kind: forward build the events");
  }
  std::size_t source_count = 0;
  for (const engine::LinkConfig& link : engine.links) source_count += link.sources.size();
  if (source_count > event::kSourcesMax) {
    throw SetupError("merge of " + std::to_string(source_count) + " sources on a GPU",
                     "an event has parts of at most " + std::to_string(event::kSourcesMax),
                     "let nodes with kind: forward merge some of them first");
  }
  event::check(merger_config(*config_.merge, static_cast<std::uint32_t>(source_count)));
}

}  // namespace nanet::na62
