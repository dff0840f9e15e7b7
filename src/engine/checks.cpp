// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/checks.hpp"

#include <algorithm>
#include <string>

#include "engine/set_up.hpp"
#include "flow/realtime.hpp"
#include "nanet/config/read.hpp"
#include "nanet/engine/kinds.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/engine/transmitter.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

constexpr std::size_t kLinksMax = 256;

// No one else can read what a NIC has put into the memory of a GPU.
void check_payloads(const EngineConfig& config, const ProcessorNeeds& needs) {
  if (!needs.gpus.empty()) return;
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
  for (const LinkConfig& link : config.links) {
    if (link.protocol == nullptr)
      throw SetupError("link " + link.name + " has no protocol", "its packets cannot be read", "name one");
    if (!link.senders.empty() && !kind_of(link)->names_senders) {
      throw SetupError("link " + link.name + " has senders", "it does not know from which address a packet comes", "remove senders");
    }
  }
}

void check_send(const EngineConfig& config, const ProcessorNeeds& needs) {
  if (!config.send) {
    if (needs.tx_slot_bytes == 0) return;
    throw SetupError("no destination for what the processor sends", "nothing says where to", "add answers: {endpoint: ...}");
  }
  const SendConfig& send = *config.send;
  if (send.endpoints.empty() || send.endpoints.size() > Transmitter::kDestinationsMax) {
    throw SetupError(std::to_string(send.endpoints.size()) + " destinations of " + send.name,
                     "a packet goes to 1 to " + std::to_string(Transmitter::kDestinationsMax), "list fewer copies");
  }
  if (send.via.empty()) return;
  const auto via = std::find_if(config.links.begin(), config.links.end(),
                                [&](const LinkConfig& link) { return link.name == send.via; });
  if (via == config.links.end()) {
    throw SetupError(send.name + ": via " + send.via, "there is no link of that name", "name one of links:, or leave via out");
  }
  if (!kind_of(*via)->sends) {
    throw SetupError(send.name + ": via " + send.via, "that link only receives",
                     "leave via out, and they get a socket of their own");
  }
}

// The thread that watches consumers that work alone also sends.
void check_cores(const EngineConfig& config, const ProcessorNeeds& needs) {
  if (!needs.gpus.empty() && config.topology == Topology::pipelined && config.cpu_cores.send) {
    throw SetupError("a core for the sending thread", "with a GPU the processing thread, which only watches, sends too",
                     "set cpu_cores.send to null");
  }
  config::require(config.cpu_cores, "cpu_cores");
  if (config.cpu_cores.realtime_priority) flow::check(flow::realtime_guard());
}

}  // namespace

std::optional<config::Problem> MemoryRegionConfig::check() const {
  if (auto broken = config::power_of_two("buffer_count", buffer_count, "buffers are indexed by masking a running number"))
    return broken;
  if (buffer_bytes % 4096 != 0) {
    return config::Problem{"buffer_bytes", "buffer_bytes " + std::to_string(buffer_bytes) + " is not a multiple of 4096",
                           "every buffer starts on a page", "choose " + std::to_string((buffer_bytes / 4096 + 1) * 4096)};
  }
  if (kind == MemoryKind::device) {
    return config::Problem{"kind", "memory region '" + name + "' cannot be device memory",
                           "the kernel copies the packets of a UDP link into host memory; a link that writes into a GPU has "
                           "payload_memory: gpu of its own",
                           "use host_pinned, which a GPU reads in place"};
  }
  return std::nullopt;
}

std::optional<config::Problem> CoresConfig::check() const {
  if (!realtime_priority || receive) return std::nullopt;
  return config::Problem{"realtime_priority", "cpu_cores.realtime_priority without a core",
                         "the thread could pre-empt whatever runs on any core", "set cpu_cores.receive"};
}

std::optional<config::Problem> MergeConfig::check() const {
  return config::power_of_two("open_events_max", open_events_max, "open events are found by masking a hash");
}

void check(const EngineConfig& config) {
  if (!config.processor) throw SetupError("no processor", "nothing takes what is received", "give one");
  const ProcessorNeeds needs = config.processor->needs();
  check_links(config);
  config.processor->check(config);
  check_cores(config, needs);
  check_payloads(config, needs);
  check_send(config, needs);
}

}  // namespace nanet::engine
