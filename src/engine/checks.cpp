// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/checks.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "engine/set_up.hpp"
#include "nanet/config/read.hpp"
#include "nanet/config/setting.hpp"
#include "nanet/engine/kinds.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/engine/protocol.hpp"
#include "nanet/engine/transmitter.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

constexpr std::size_t kLinksMax = 256;

// What stands twice where each must be unique; an empty text stands for none.
void check_unique(const std::string& what, std::vector<std::string> values, const std::string& suggestion) {
  std::erase(values, "");
  for (const std::string& value : values) {
    const auto count = std::count(values.begin(), values.end(), value);
    if (count > 1) {
      throw SetupError(what + " " + value + " appears " + std::to_string(count) + " times", "each must be unique", suggestion);
    }
  }
}

std::string hexadecimal(std::uint8_t number) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "0x%02x", static_cast<unsigned>(number));
  return text.data();
}

void check_unique_names(const EngineConfig& config) {
  std::vector<std::string> names, endpoints, devices, sources, identities;
  for (const LinkConfig& queue : with_queues(config).links) names.push_back(queue.name);
  for (const LinkConfig& link : config.links) {
    endpoints.push_back(link.endpoint.ends_with(":0") ? "" : link.endpoint);  // a port that the kernel chooses
    devices.push_back(device(link));
    for (const SourceConfig& source : link.sources) {
      sources.push_back(source.name);
      identities.push_back(hexadecimal(source.source_id) + " sub " + std::to_string(source.source_sub_id));
    }
  }
  check_unique("link", names, "rename one");
  check_unique("endpoint", endpoints, "give each link a port of its own");
  check_unique("device", devices, "give each link a device of its own");
  check_unique("source name", sources, "rename one");
  check_unique("source", identities, "give each source a source_id and source_sub_id of its own");
}

// A GPU's processor maps the memory of its links, and no one else can read what a NIC has put into the memory of a GPU.
void check_memory(const LinkConfig& link, const ProcessorNeeds& needs) {
  const MemoryRegionConfig& region = link.memory_region;
  if (region.kind != MemoryKind::host) {
    throw SetupError("memory region '" + region.name + "' is " + std::string(config::name_of(region.kind)),
                     "an engine whose processor runs on a GPU maps its memory for that GPU automatically", "set kind to host");
  }
  if (const LinkRoom least = room(link); region.buffer_bytes < least.bytes) {
    throw SetupError("a buffer of region '" + region.name + "' (" + std::to_string(region.buffer_bytes) +
                         " B) has no room for link '" + link.name + "'",
                     least.why + " needs " + std::to_string(least.bytes) + " B",
                     "raise buffer_bytes to at least " + std::to_string(least.bytes));
  }
  const AssembleConfig assemble = link.assemble.value_or(AssembleConfig{});
  if (link.protocol->has_units && region.buffer_count <= assemble.units_open) {
    throw SetupError(
        "link '" + link.name + "' can have " + std::to_string(assemble.units_open) + " open units of a stream",
        "its memory region has " + std::to_string(region.buffer_count) + " buffers, so that incomplete units could take all",
        "raise buffer_count, or lower assemble.units_open");
  }
  const std::uint64_t bytes = assemble.merge ? assemble.merge->streams.size() * assemble.merge->part_bytes : 0;
  if (bytes > region.buffer_bytes) {
    throw SetupError("the merged units of link '" + link.name + "' have " + std::to_string(bytes) + " B",
                     "a buffer of its memory region has " + std::to_string(region.buffer_bytes), "raise buffer_bytes");
  }
  if (needs.gpus.empty() && wants_gpu_memory(link)) {
    throw SetupError("link '" + link.name + "' cannot put payloads into the memory of a GPU", "the processor does not run on one",
                     "set payload_memory: host, or a runtime of the processor that is not cpu");
  }
}

void check_links(const EngineConfig& config, const ProcessorNeeds& needs) {
  if (config.links.empty()) throw SetupError("no link", "nothing to receive from", "add one under links:");
  std::size_t count = 0;
  for (const LinkConfig& link : config.links) {
    if (link.protocol == nullptr)
      throw SetupError("link '" + link.name + "' has no protocol", "its packets cannot be read", "name one");
    config::refuse_broken(broken_rule(link));
    check_memory(link, needs);
    const std::uint32_t queues = queue_count(link);
    if (queues > 1 && needs.merges) {
      throw SetupError("link '" + link.name + "' has " + std::to_string(queues) + " queues",
                       "the processor merges, and the parts of an event would be expected from each of them", "set queues: 1");
    }
    count += queues;
  }
  if (count > kLinksMax) {
    throw SetupError(std::to_string(count) + " links and queues", "a completion names at most " + std::to_string(kLinksMax),
                     "let several sources share a link");
  }
  check_unique_names(config);
}

// Where packets leave for must be of the network that they leave by.
void check_schemes(const SendConfig& send, const std::string& scheme, const std::string& why, const std::string& suggestion) {
  for (const std::string& endpoint : send.endpoints) {
    if (!endpoint.starts_with(scheme + "://")) throw SetupError(send.name + " cannot leave for " + endpoint, why, suggestion);
  }
}

void check_own_way(const SendConfig& send) {
  if (send.torus) {
    check_schemes(send, "torus", "it leaves from a node of a torus", "write torus://NODE, or remove " + send.name + ".torus");
    for (const std::string& endpoint : send.endpoints) {
      if (link::parse_endpoint(endpoint).address.ipv4() != send.torus->node) continue;
      throw SetupError(send.name + " cannot leave for " + endpoint, "it leaves from that node, which has no slots for itself",
                       "name another node");
    }
    return;
  }
  check_schemes(send, "udp", "it leaves by a socket",
                "add " + send.name + ".torus: {file: PATH, node: 0}, or name a torus:// link in " + send.name + ".via");
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
  for (const LinkConfig& link : config.links) {
    const std::string here = kind_of(link)->sends_to +
                             link.endpoint.substr(std::min(link.endpoint.find("://"), link.endpoint.size()));
    if (here.ends_with(":0") || std::find(send.endpoints.begin(), send.endpoints.end(), here) == send.endpoints.end()) continue;
    throw SetupError(send.name + ": packets go to the engine's own link '" + link.name + "'", "both are " + link.endpoint,
                     "name the port of the one that takes them");
  }
  if (send.via.empty()) return check_own_way(send);
  if (send.torus)
    throw SetupError(send.name + " has via and torus", "packets leave by a link or from a node of their own", "remove one of them");
  std::vector<std::string> names;
  for (const LinkConfig& link : config.links) {
    if (link.name == send.via) {
      config::refuse_broken(cannot_send(link));
      const std::string scheme = kind_of(link)->sends_to;
      return check_schemes(send, scheme, "link '" + link.name + "' is " + link.endpoint,
                           "give " + scheme + "://..., or remove " + send.name + ".via");
    }
    names.push_back(link.name);
  }
  throw SetupError(send.name + ".via names the unknown link '" + send.via + "'", "it is none of links",
                   config::nearest(send.via, names));
}

// Threads that share nothing: each has links of its own.
void check_lanes(const EngineConfig& config, const ProcessorNeeds& needs) {
  const CoresConfig& cores = config.cpu_cores;
  if (cores.lanes.empty()) return;
  const std::string lanes = "cpu_cores.lanes has " + std::to_string(cores.lanes.size()) + " cores";
  if (config.topology != Topology::run_to_completion) {
    throw SetupError(lanes, "the threads of a pipeline share all links", "set topology: run_to_completion");
  }
  if (!needs.shares_nothing || needs.tx_slot_bytes > 0) {
    throw SetupError(lanes, "the processor works in one thread",
                     "use cpu_cores.receive, or a processor that shares nothing, as count does");
  }
  std::size_t inputs = 0;
  for (const LinkConfig& link : config.links) inputs += queue_count(link);
  if (cores.lanes.size() > inputs) {
    throw SetupError(lanes, "there are " + std::to_string(inputs) + " links and queues, and each is of one thread",
                     "name fewer cores, or split a link into more queues");
  }
  std::vector<std::string> used;
  for (const int core : cores.lanes) used.push_back(std::to_string(core));
  check_unique("core", used, "give each lane a core of its own");
}

void check_cores(const EngineConfig& config, const ProcessorNeeds& needs) {
  const CoresConfig& cores = config.cpu_cores;
  config::require(cores, "cpu_cores");
  check_lanes(config, needs);
  if (!needs.gpus.empty() && cores.send) {
    throw SetupError("cpu_cores.send is set", "with a GPU the processing thread, which only watches, sends too",
                     "set cpu_cores.send to null");
  }
  const auto of_pipelined = [&](const std::string& stage) {
    return SetupError("cpu_cores." + stage + " is set", "run_to_completion has one thread only, on cpu_cores.receive",
                      "set cpu_cores." + stage + " to null, or topology to pipelined");
  };
  if (config.topology == Topology::run_to_completion) {
    if (cores.process) throw of_pipelined("process");
    if (cores.send) throw of_pipelined("send");
    return;
  }
  std::vector<std::string> used;
  for (const auto& core : {cores.receive, cores.process, cores.send}) used.push_back(core ? std::to_string(*core) : "");
  check_unique("core", used, "give each stage a core of its own, or null");
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

std::optional<config::Problem> StreamRangeConfig::check() const {
  if (first <= last) return std::nullopt;
  return config::Problem{"last", "no stream is from " + std::to_string(first) + " to " + std::to_string(last),
                         "the lowest comes first", "exchange them"};
}

std::optional<config::Problem> StreamMergeConfig::check() const {
  if (tolerance_ns != 0 && by == MergeBy::unit) {
    return config::Problem{"tolerance_ns", "merge has a tolerance and is by unit", "numbers of units are equal or not",
                           "set by: time, or remove tolerance_ns"};
  }
  std::vector<std::uint64_t> keys = streams;
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice == keys.end()) return std::nullopt;
  return config::Problem{"streams", "merge has stream " + std::to_string(*twice) + " twice", "each has one part of the unit",
                         "remove one"};
}

bool StreamMergeConfig::is_by_time(const UnitTime& time) const { return by ? *by == MergeBy::time : time.merges; }

std::optional<config::Problem> StreamMergeConfig::check(const UnitTime& time) const {
  if (!is_by_time(time) || time.tick_ns > 0) return std::nullopt;
  return config::Problem{"merge", "units cannot be merged by time", "the packets of this protocol say none",
                         "set by: unit, or declare time: in the format"};
}

std::optional<config::Problem> AssembleConfig::check() const {
  if (resend && resend->after_us >= timeout_us) {
    return config::Problem{"resend", "missing packets are asked for after " + std::to_string(resend->after_us) + " us",
                           "their unit is closed after timeout_us, " + std::to_string(timeout_us), "lower after_us"};
  }
  if (!merge) return std::nullopt;
  if (resend) {
    return config::Problem{"resend", "assemble has resend and merge", "a hole in a merged unit is of no one sender",
                           "remove one of them"};
  }
  if (!streams.empty()) {
    return config::Problem{"streams", "assemble has streams and merge", "merge says which streams there are", "remove streams"};
  }
  if (merge->tolerance_ns == 0 || unit_step == 0) return std::nullopt;
  return config::Problem{"unit_step", "units merged with a tolerance do not grow in steps",
                         "a unit's number is the time of its first packet", "remove unit_step, or tolerance_ns"};
}

std::optional<config::Problem> CoresConfig::check() const {
  if (receive && !lanes.empty()) {
    return config::Problem{"lanes", "cpu_cores has receive and lanes", "the threads of the lanes receive", "remove one of them"};
  }
  if (!realtime_priority || receive || !lanes.empty()) return std::nullopt;
  return config::Problem{"realtime_priority", "cpu_cores.realtime_priority without a core",
                         "the thread could pre-empt whatever runs on any core", "set cpu_cores.receive or lanes"};
}

std::optional<config::Problem> MergeConfig::check() const {
  return config::power_of_two("open_events_max", open_events_max, "open events are found by masking a hash");
}

void check(const EngineConfig& config) {
  if (!config.processor) throw SetupError("no processor", "nothing takes what is received", "give one");
  const ProcessorNeeds needs = config.processor->needs();
  check_links(config, needs);
  check_cores(config, needs);
  config.processor->check(config);
  check_send(config, needs);
}

}  // namespace nanet::engine
