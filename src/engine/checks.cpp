// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/checks.hpp"

#include <algorithm>
#include <string>

#include "nanet/engine/gpu_consumer.hpp"
#include "nanet/engine/set_up.hpp"
#include "nanet/engine/transmitter.hpp"
#include "nanet/flow/realtime.hpp"
#include "nanet/gpu/event_processor.hpp"
#include "nanet/setup_error.hpp"
#include "nanet/wire/m2egp.hpp"

namespace nanet::engine {
namespace {

constexpr std::size_t kLinksMax = 256;

// What a NIC has put into the memory of a GPU no one else can read.
void check_payloads(const EngineConfig& config) {
  if (config.processor.gpu.runtime != gpu::Runtime::cpu) return;
  for (const LinkConfig& link : config.links) {
    if (!wants_gpu_memory(link)) continue;
    throw SetupError("link " + link.name + " cannot put payloads into the memory of a GPU", "the processor does not run on one",
                     "set payload_memory: host, or a runtime of the processor that is not cpu");
  }
}

void check_links(const EngineConfig& config) {
  if (config.links.empty()) throw SetupError("no link", "nothing to receive from", "add one under links:");
  if (config.links.size() > kLinksMax) {
    throw SetupError(std::to_string(config.links.size()) + " links", "a completion names at most " + std::to_string(kLinksMax),
                     "let several sources share a link");
  }
  if (config.processor.kind == ProcessorKind::count) return;
  for (const LinkConfig& link : config.links) {
    if (link.protocol == ProtocolKind::raw) {
      throw SetupError("link " + link.name + " cannot feed the processor", "its protocol is raw",
                       "set protocol: mgp or m2egp, or processor: {kind: count}");
    }
  }
}

// What the processor's kind says it sends, and what the configuration has for it.
void check_sends(const EngineConfig& config) {
  const std::optional<ForwardConfig>& forward = config.processor.forward;
  if ((config.processor.kind == ProcessorKind::forward) != forward.has_value()) {
    throw SetupError(forward ? "a destination of events, but nothing forwards them" : "no destination for the events",
                     "forward belongs to processor kind forward",
                     forward ? "set processor: {kind: forward}" : "add forward: {endpoint: udp://ADDRESS:PORT} under processor:");
  }
  if (config.answers) {
    const std::size_t destinations = 1 + config.answers->copies.size();
    if (destinations > Transmitter::kDestinationsMax) {
      throw SetupError(std::to_string(destinations) + " destinations of answers",
                       "a packet goes to " + std::to_string(Transmitter::kDestinationsMax) + " at most", "list fewer copies");
    }
    const std::string& via = config.answers->via;
    const bool known = std::any_of(config.links.begin(), config.links.end(),
                                   [&](const LinkConfig& link) { return link.name == via; });
    if (!via.empty() && !known) {
      throw SetupError("answers: via " + via, "there is no link of that name", "name one of links:, or leave via out");
    }
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

void check_gpu_links(const EngineConfig& config) {
  if (config.processor.hot_channels == HotChannels::mask) {
    throw SetupError("mask.hot is true, but a GPU processes", "it counts channels and does not judge them during the run",
                     "list them in mask.channels, or set runtime: cpu");
  }
  for (const LinkConfig& link : config.links) {
    if (link.packet_bytes_max > gpu::kPacketBytesMax) {
      throw SetupError("link " + link.name + ": packet_bytes_max is " + std::to_string(link.packet_bytes_max),
                       "a GPU takes packets of at most " + std::to_string(gpu::kPacketBytesMax) + " bytes",
                       "set it to that, or runtime: cpu");
    }
    if (link.sources.empty()) {
      throw SetupError("link " + link.name + " has no sources", "a GPU refuses packets of others than those named", "add sources:");
    }
    if (link.sources.size() != 1 && !config.processor.merge) {
      throw SetupError("link " + link.name + " has " + std::to_string(link.sources.size()) + " sources",
                       "on a GPU without merge each packet must hold whole events, of one source a link",
                       "add merge: {window_us: 200} under processor:, or give each source a link of its own");
    }
  }
  if (config.processor.gpu_devices.empty() || config.processor.gpu_devices.size() > config.links.size()) {
    throw SetupError(
        std::to_string(config.processor.gpu_devices.size()) + " GPUs for " + std::to_string(config.links.size()) + " links",
        "the links go to the GPUs in turn", "name a GPU at least, and not more than there are links");
  }
}

void check_gpu_merge(const EngineConfig& config) {
  if (config.processor.gpu_devices.size() > 1) {
    throw SetupError("merge on " + std::to_string(config.processor.gpu_devices.size()) + " GPUs",
                     "the parts of an event meet in the memory of one",
                     "name one device, or let nodes with kind: forward build the events");
  }
  const event::MergerConfig merger = event_merge(config).merger;
  if (merger.source_count > event::kSourcesMax) {
    throw SetupError("merge of " + std::to_string(merger.source_count) + " sources on a GPU",
                     "an event has parts of at most " + std::to_string(event::kSourcesMax),
                     "let nodes with kind: forward merge some of them first");
  }
  event::check(merger);
}

void check_gpu(const EngineConfig& config) {
  const ProcessorConfig& processor = config.processor;
  if (processor.gpu.runtime == gpu::Runtime::cpu) return;
  if (processor.kind != ProcessorKind::rich) {
    throw SetupError("a GPU for a processor that finds no rings", "only kind rich runs on one", "set runtime: cpu, or kind: rich");
  }
  check_gpu_links(config);
  if (processor.merge) check_gpu_merge(config);
  constexpr std::uint32_t kPacketEventsMax = (gpu::kPacketBytesMax - wire::kMgpHeaderBytes) / wire::kMgpEventHeaderBytes;
  const std::uint32_t answers_max = processor.merge ? gpu::kMergedAnswersMax : kPacketEventsMax;
  if (config.answers && config.answers->primitives_max < answers_max) {
    throw SetupError("answers: primitives_max is " + std::to_string(config.answers->primitives_max),
                     "a GPU writes up to " + std::to_string(answers_max) + " into a packet of answers", "leave it at 255");
  }
  if (config.topology == Topology::pipelined && config.send_core) {
    throw SetupError("a core for the sending thread", "with a GPU the processing thread, which only watches, sends too",
                     "set cpu_cores.send to null");
  }
}

void check_realtime(const EngineConfig& config) {
  if (!config.realtime_priority) return;
  if (!config.receive_core) {
    throw SetupError("real-time priority for a thread without a core", "it could take any core from what runs there",
                     "set cpu_cores.receive");
  }
  flow::check(flow::realtime_guard());
}

}  // namespace

void check(const EngineConfig& config) {
  check_realtime(config);
  check_links(config);
  check_payloads(config);
  check_sends(config);
  check_gpu(config);
}

}  // namespace nanet::engine
