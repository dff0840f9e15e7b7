// SPDX-License-Identifier: Apache-2.0
#include "config.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstring>

#include "finders.hpp"
#include "nanet/config/read.hpp"
#include "nanet/engine/plugin.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/na62/kinds.hpp"
#include "nanet/rich/search_range.hpp"
#include "values.hpp"

namespace nanet::bindings {
namespace {

using engine::LinkConfig;

template <class T>
T choice(const nb::dict& dict, const char* key, std::initializer_list<std::pair<const char*, T>> choices) {
  const auto name = get<std::string>(dict, key);
  for (const auto& [known, value] : choices) {
    if (name == known) return value;
  }
  throw SetupError(std::string("unknown ") + key + " '" + name + "'", "the native module does not have it", "see nanet schema");
}

// The component that `dict` says under `key`.
template <config::IsComponent T>
T part(const nb::dict& dict, const char* key) {
  return config::read<T>(value_of(get<nb::dict>(dict, key)), key);
}

template <config::IsComponent T>
std::optional<T> part_if_given(const nb::dict& dict, const char* key) {
  return has(dict, key) ? std::optional(part<T>(dict, key)) : std::nullopt;
}

std::uint64_t us_to_ns(const nb::dict& dict, const char* key) { return get<std::uint64_t>(dict, key) * 1000; }

std::optional<int> core(const nb::dict& dict, const char* key) {
  return has(dict, key) ? std::optional<int>(get<int>(dict, key)) : std::nullopt;
}

na62::ForwardConfig forward_config(const nb::dict& dict) {
  return {
      .source_id = get<std::uint8_t>(dict, "source_id"),
      .source_sub_id = get<std::uint8_t>(dict, "source_sub_id"),
      .packet_bytes_max = get<std::uint32_t>(dict, "packet_bytes_max"),
  };
}

gpu::GpuConfig gpu_config(const nb::dict& dict) {
  using gpu::BufferPath;
  return {
      .path = choice<BufferPath>(dict, "path", {{"mapped", BufferPath::mapped}, {"copied", BufferPath::copied}}),
      .buffers_in_flight = get<std::uint32_t>(dict, "buffers_in_flight"),
      .blocks = has(dict, "blocks") ? get<std::uint32_t>(dict, "blocks") : 0,
      .watchdog_ns = get<std::uint64_t>(dict, "watchdog_ms") * 1'000'000,
  };
}

na62::AnswerConfig answer_config(const nb::dict& dict) {
  return {
      .source_id = get<std::uint8_t>(dict, "source_id"),
      .source_sub_id = get<std::uint8_t>(dict, "source_sub_id"),
      .primitives_max = get<std::uint32_t>(dict, "primitives_max"),
  };
}

// processor: and answers: of a configuration whose processor is of kind rich.
na62::RichConfig rich_config(const nb::dict& dict, const std::optional<nb::dict>& answers) {
  na62::RichConfig config;
  config.finder = finder_config(get<nb::dict>(dict, "finder"));
  config.decision = decision_config(dict);
  rich::set_search_range(config.finder, config.decision.cuts);
  config.hot_channels = get<bool>(get<nb::dict>(dict, "mask"), "hot") ? na62::HotChannels::mask : na62::HotChannels::keep;
  if (answers) config.answers = answer_config(*answers);
  using gpu::Runtime;
  const auto settings = get<nb::dict>(dict, "gpu");
  config.gpu = gpu_config(settings);
  config.gpu.runtime = choice<Runtime>(
      dict, "runtime",
      {{"cpu", Runtime::cpu}, {"launch", Runtime::launch}, {"graph", Runtime::graph}, {"persistent", Runtime::persistent}});
  config.gpu_devices.clear();
  for (const nb::handle device : get<nb::list>(settings, "devices")) config.gpu_devices.push_back(nb::cast<int>(device));
  return config;
}

engine::SendConfig send_config(std::string name, const nb::dict& dict) {
  engine::SendConfig config{.name = std::move(name), .endpoints = {get<std::string>(dict, "endpoint")}, .via = {}};
  if (has(dict, "copies")) {
    for (const nb::handle copy : get<nb::list>(dict, "copies")) config.endpoints.push_back(nb::cast<std::string>(copy));
  }
  if (has(dict, "via")) config.via = get<std::string>(dict, "via");
  return config;
}

// Of what an engine can be built from: nanet's own, NA62's, and those of plug-ins. processor, answers: outlive what is returned.
engine::Kinds kinds_for(const nb::dict& processor, const std::optional<nb::dict>& answers, const std::vector<std::string>& plugins) {
  engine::Kinds kinds = engine::built_in_kinds();
  na62::add_kinds(kinds, {.rich = [&] { return rich_config(processor, answers); },
                          .forward = [&] { return forward_config(get<nb::dict>(processor, "forward")); }});
  for (const std::string& path : plugins) engine::add_plugin(kinds, path);
  return kinds;
}

// The processor, and where it sends.
void set_processor(engine::EngineConfig& config, const engine::Kinds& kinds, const nb::dict& dict,
                   const std::optional<nb::dict>& answers) {
  const engine::ProcessorKind& kind = kinds.processor(get<std::string>(dict, "kind"));
  if (!kind.on_gpu && get<std::string>(dict, "runtime") != "cpu") {
    throw SetupError("processor " + kind.name + " on a GPU", "it runs on none", "set runtime: cpu");
  }
  engine::ProcessorSettings settings;
  if (has(dict, "settings")) settings.settings = value_of(dict["settings"]);
  settings.merge = part_if_given<engine::MergeConfig>(dict, "merge");
  settings.has_destination = answers.has_value();
  config.processor = kind.make(settings);
  if (kind.sends && answers) config.send = send_config("answers", *answers);
  if (has(dict, "forward")) config.send = send_config("forward", get<nb::dict>(dict, "forward"));
}

// "10.0.0.0/24", checked already.
engine::SenderNetwork sender_network(const std::string& text) {
  const std::size_t slash = text.find('/');
  const link::Endpoint endpoint = link::parse_endpoint("udp://" + text.substr(0, slash) + ":0");
  return {.address = endpoint.address, .prefix_bits = static_cast<std::uint8_t>(std::stoul(text.substr(slash + 1)))};
}

link::Payloads payloads(const nb::dict& dict) {
  using link::Payloads;
  return choice<Payloads>(dict, "payloads", {{"copied", Payloads::copied}, {"in_place", Payloads::in_place}});
}

link::XdpConfig xdp_config(const nb::dict& dict) {
  using link::XdpAttach;
  using link::XdpZeroCopy;
  link::XdpConfig config;
  for (const nb::handle queue : get<nb::list>(dict, "queues")) config.queues.push_back(nb::cast<std::uint32_t>(queue));
  config.frame_count = get<std::uint32_t>(dict, "frame_count");
  config.tx_wait_us = get<std::uint32_t>(dict, "tx_wait_us");
  config.zero_copy = choice<XdpZeroCopy>(
      dict, "zero_copy", {{"automatic", XdpZeroCopy::automatic}, {"required", XdpZeroCopy::required}, {"off", XdpZeroCopy::off}});
  config.attach = choice<XdpAttach>(
      dict, "attach", {{"automatic", XdpAttach::automatic}, {"driver", XdpAttach::driver}, {"generic", XdpAttach::generic}});
  config.huge_pages = get<bool>(dict, "huge_pages");
  config.payloads = payloads(dict);
  return config;
}

link::DpdkConfig dpdk_config(const nb::dict& dict) {
  link::DpdkConfig config;
  config.device = get<std::string>(dict, "device");
  if (has(dict, "address")) config.address = get<std::string>(dict, "address");
  if (has(dict, "gateway")) config.gateway = get<std::string>(dict, "gateway");
  config.arp_wait_ms = get<std::uint32_t>(dict, "arp_wait_ms");
  config.tx_wait_us = get<std::uint32_t>(dict, "tx_wait_us");
  for (const nb::handle argument : get<nb::list>(dict, "eal_arguments")) {
    config.eal_arguments.push_back(nb::cast<std::string>(argument));
  }
  config.huge_pages = get<bool>(dict, "huge_pages");
  config.memory_mib = get<std::uint32_t>(dict, "memory_mib");
  config.descriptors = get<std::uint32_t>(dict, "descriptors");
  if (has(dict, "split_bytes")) config.split_bytes = get<std::uint32_t>(dict, "split_bytes");
  using link::DpdkMemory;
  config.payload_memory = choice<DpdkMemory>(dict, "payload_memory",
                                             {{"dpdk", DpdkMemory::dpdk}, {"host", DpdkMemory::host}, {"gpu", DpdkMemory::gpu}});
  config.payloads = payloads(dict);
  return config;
}

link::UcxConfig ucx_config(const nb::dict& dict) {
  using link::UcxMemory;
  link::UcxConfig config;
  config.ring_count = get<std::uint32_t>(dict, "ring_count");
  config.slot_count = get<std::uint32_t>(dict, "slot_count");
  config.token = get<std::uint64_t>(dict, "token");  // not of the configuration: nanet/native_config.py
  config.transports = get<std::string>(dict, "transports");
  config.trust_network = get<bool>(dict, "trust_network");
  config.memory = choice<UcxMemory>(dict, "memory", {{"shared", UcxMemory::shared}, {"host", UcxMemory::host}});
  return config;
}

// "02:00:00:00:00:01", checked already.
std::uint64_t mac_address(const std::string& text) {
  std::uint64_t mac = 0;
  for (std::size_t at = 0; at < text.size(); at += 3) mac = mac << 8 | std::stoul(text.substr(at, 2), nullptr, 16);
  return mac;
}

link::GatewareCard card_config(const nb::dict& dict) {
  return {
      .pci_address = get<std::string>(dict, "card"),
      .mac = mac_address(get<std::string>(dict, "mac")),
      .next_hop = has(dict, "next_hop") ? mac_address(get<std::string>(dict, "next_hop")) : 0,
  };
}

link::PcapLinkConfig pcap_config(const nb::dict& dict) {
  using link::ReplayPace;
  link::PcapLinkConfig config;
  if (has(dict, "port")) config.only_port = get<std::uint16_t>(dict, "port");
  config.pace = choice<ReplayPace>(
      dict, "pace", {{"original", ReplayPace::original}, {"packets", ReplayPace::packets}, {"maximum", ReplayPace::maximum}});
  if (has(dict, "packets_per_s")) config.rate = get<double>(dict, "packets_per_s");
  return config;
}

// What a link of an engine and a port have in common.
LinkConfig common_link_config(const engine::Kinds& kinds, const nb::dict& dict) {
  LinkConfig config;
  config.endpoint = get<std::string>(dict, "endpoint");
  config.protocol = &kinds.protocol(get<std::string>(dict, "protocol"));
  config.batch_size = get<std::uint32_t>(dict, "batch_size");
  config.timeout_ns = us_to_ns(dict, "timeout_us");
  config.socket_buffer_bytes = get<std::uint32_t>(dict, "socket_buffer_bytes");
  config.packet_bytes_max = get<std::uint32_t>(dict, "packet_bytes_max");
  config.gro = get<bool>(dict, "gro");
  config.busy_poll_us = get<std::uint32_t>(dict, "busy_poll_us");
  for (const nb::handle source : get<nb::list>(dict, "sources")) {
    config.sources.push_back(config::read<engine::SourceConfig>(value_of(source), "sources"));
  }
  for (const nb::handle sender : get<nb::list>(dict, "senders")) {
    config.senders.push_back(sender_network(nb::cast<std::string>(sender)));
  }
  config.faults = part_if_given<link::FaultConfig>(dict, "faults");
  return config;
}

// The keys of a memory region that `dict` has, among others.
engine::MemoryRegionConfig memory_region_config(const nb::dict& dict, std::string name) {
  config::Value keys = value_of(dict);
  if (keys.find("name") == nullptr) {
    auto map = *keys.as<config::Value::Map>();
    map.emplace_back("name", config::Value(std::move(name)));
    keys = config::Value(std::move(map));
  }
  return config::read<engine::MemoryRegionConfig>(keys, "memory_region", config::Others::ignored);
}

LinkConfig engine_link_config(const engine::Kinds& kinds, const nb::dict& dict, const nb::list& regions) {
  LinkConfig config = common_link_config(kinds, dict);
  config.kind = kinds.link(config.endpoint.substr(0, config.endpoint.find("://")));
  if (has(dict, "settings")) config.settings = value_of(dict["settings"]);
  config.name = get<std::string>(dict, "name");
  if (has(dict, "interface")) config.interface = get<std::string>(dict, "interface");
  if (has(dict, "xdp")) config.xdp = xdp_config(get<nb::dict>(dict, "xdp"));
  if (has(dict, "dpdk")) config.dpdk = dpdk_config(get<nb::dict>(dict, "dpdk"));
  if (has(dict, "ucx")) config.ucx = ucx_config(get<nb::dict>(dict, "ucx"));
  if (has(dict, "gateware")) config.gateware.card = card_config(get<nb::dict>(dict, "gateware"));
  if (has(dict, "pcap")) config.pcap = pcap_config(get<nb::dict>(dict, "pcap"));
  config.record = part_if_given<engine::RecordConfig>(dict, "record");
  const auto wanted = get<std::string>(dict, "memory_region");
  for (const nb::handle handle : regions) {
    const auto region = nb::cast<nb::dict>(handle);
    if (get<std::string>(region, "name") == wanted) {
      config.memory_region = memory_region_config(region, wanted);
      return config;
    }
  }
  throw SetupError("no memory region " + wanted, "link " + config.name + " names it", "add it under memory_regions:");
}

}  // namespace

nb::dict kinds_with(const std::vector<std::string>& plugins) {
  const nb::dict no_processor;
  const engine::Kinds kinds = kinds_for(no_processor, std::nullopt, plugins);
  nb::dict protocols;
  for (const engine::Protocol* protocol : kinds.protocols()) {
    nb::dict one;
    one["numbered"] = protocol->numbered;
    one["has_events"] = protocol->read != nullptr;
    protocols[nb::str(protocol->name.data(), protocol->name.size())] = one;
  }
  nb::dict processors;
  for (const engine::ProcessorKind& kind : kinds.processors()) {
    nb::dict one;
    one["merges"] = kind.merges;
    one["sends"] = kind.sends;
    one["done"] = kind.done ? nb::object(nb::str(flow::kCounterTable[static_cast<std::size_t>(*kind.done)].name.data()))
                            : nb::object(nb::none());
    processors[kind.name.c_str()] = one;
  }
  nb::dict links;
  for (const auto& kind : kinds.links()) {
    nb::dict one;
    one["sends"] = kind->sends;
    one["names_senders"] = kind->names_senders;
    links[kind->name.c_str()] = one;
  }
  nb::dict all;
  all["protocols"] = protocols;
  all["processors"] = processors;
  all["links"] = links;
  return all;
}

LinkConfig port_config(const nb::dict& dict) {
  const nb::dict no_processor;
  LinkConfig config = common_link_config(kinds_for(no_processor, std::nullopt, {}), dict);
  config.name = "port";
  config.memory_region = memory_region_config(dict, "port");
  return config;
}

engine::EngineConfig engine_config(const nb::dict& dict) {
  using engine::Topology;
  engine::EngineConfig config;
  config.topology = choice<Topology>(dict, "topology",
                                     {{"run_to_completion", Topology::run_to_completion}, {"pipelined", Topology::pipelined}});
  const auto cores = get<nb::dict>(dict, "cpu_cores");
  config.receive_core = core(cores, "receive");
  config.process_core = core(cores, "process");
  config.send_core = core(cores, "send");
  if (has(cores, "realtime_priority")) config.realtime_priority = get<int>(cores, "realtime_priority");
  std::optional<nb::dict> answers;
  if (has(dict, "answers")) answers = get<nb::dict>(dict, "answers");
  const auto processor = get<nb::dict>(dict, "processor");
  const engine::Kinds kinds = kinds_for(processor, answers, get<std::vector<std::string>>(dict, "plugins"));
  const auto regions = get<nb::list>(dict, "memory_regions");
  for (const nb::handle link : get<nb::list>(dict, "links")) {
    config.links.push_back(engine_link_config(kinds, nb::cast<nb::dict>(link), regions));
  }
  set_processor(config, kinds, processor, answers);
  config.waiting = part<engine::WaitingConfig>(dict, "waiting");
  return config;
}

rich::RingCuts ring_cuts(const nb::dict& dict) {
  rich::RingCuts cuts{
      .min_hits = get<std::uint32_t>(dict, "min_hits"),
      .radius_min_mm = get<float>(dict, "radius_min_mm"),
      .radius_max_mm = get<float>(dict, "radius_max_mm"),
      .center_max_mm = get<float>(dict, "center_max_mm"),
      .rms_max_mm = get<float>(dict, "rms_max_mm"),
      .electron_radius_mm = get<float>(dict, "electron_radius_mm"),
      .electron_window_mm = get<float>(dict, "electron_window_mm"),
      .kind_window_mm = get<float>(dict, "kind_window_mm"),
  };
  if (has(dict, "momentum_gev")) rich::set_momentum(cuts, get<double>(dict, "momentum_gev"));
  return cuts;
}

rich::FinderConfig finder_config(const nb::dict& dict) {
  nb::dict cuts;
  for (const auto& [key, value] : dict) {
    if (nb::cast<std::string>(key) != "name" && !value.is_none()) cuts[key] = value;
  }
  return finder_config(get<std::string>(dict, "name"), cuts);
}

rich::Decision decision_config(const nb::dict& dict) {
  rich::Decision decision{.cuts = ring_cuts(get<nb::dict>(dict, "cuts"))};
  if (dict.contains("mask")) {
    for (const std::uint16_t channel : get<std::vector<std::uint16_t>>(get<nb::dict>(dict, "mask"), "channels"))
      decision.mask.add(channel);
  }
  nb::list texts;
  for (const nb::handle condition : get<nb::list>(dict, "conditions")) texts.append(nb::cast<nb::dict>(condition)["when"]);
  const auto table = nb::cast<nb::bytes>(nb::module_::import_("nanet.config.conditions").attr("pack")(texts));
  if (table.size() != decision.conditions.answers.size()) {
    throw SetupError("the table of conditions has " + std::to_string(table.size()) + " answers",
                     "there are " + std::to_string(decision.conditions.answers.size()) + " verdicts", "report this");
  }
  decision.conditions.count = static_cast<std::uint32_t>(texts.size());
  std::memcpy(decision.conditions.answers.data(), table.c_str(), table.size());
  return decision;
}

emulate::MonteCarloConfig monte_carlo_config(const nb::dict& dict) {
  emulate::MonteCarloConfig config;
  config.seed = get<std::uint64_t>(dict, "seed");
  config.mean_hits = get<double>(dict, "mean_hits");
  config.noise_hits = get<double>(dict, "noise_hits");
  config.smear_mm = get<double>(dict, "smear_mm");
  config.center_sigma_mm = get<double>(dict, "centre_sigma_mm");
  config.momentum_min_gev = get<double>(dict, "momentum_min_gev");
  config.momentum_max_gev = get<double>(dict, "momentum_max_gev");
  const auto fractions = get<nb::dict>(dict, "fractions");
  config.electron_share = get<double>(fractions, "e");
  config.muon_share = get<double>(fractions, "mu");
  config.pion_share = get<double>(fractions, "pi");
  config.kaon_share = get<double>(fractions, "K");
  config.time_sigma_ns = get<double>(dict, "hit_time_sigma_ns");
  config.radius_mode = get<bool>(dict, "flat_radius") ? emulate::RadiusMode::flat : emulate::RadiusMode::momentum;
  config.ring_count_shares = get<std::array<double, emulate::kMaxEventRings + 1>>(dict, "ring_count_shares");
  config.pileup_share = get<double>(dict, "pileup_share");
  config.jura_share = get<double>(dict, "jura_share");
  config.both_disks_share = get<double>(dict, "both_disks_share");
  config.inefficiency = get<double>(dict, "inefficiency");
  config.hot_channels = get<std::vector<std::uint16_t>>(dict, "hot_channels");
  config.hot_share = get<double>(dict, "hot_share");
  config.dead_channels = get<std::vector<std::uint16_t>>(dict, "dead_channels");
  config.hits_max = get<std::uint32_t>(dict, "hits_max");
  return config;
}

namespace {

emulate::DetectorBankConfig detectors_config(const nb::dict& dict) {
  emulate::DetectorBankConfig config{.endpoint = get<std::string>(dict, "endpoint"), .frame_us = get<double>(dict, "frame_us")};
  for (const nb::handle item : get<nb::list>(dict, "detectors")) {
    const auto detector = nb::cast<nb::dict>(item);
    config.detectors.push_back({.source_id = get<std::uint8_t>(detector, "source_id"),
                                .efficiency = get<double>(detector, "efficiency"),
                                .time_sigma_ns = get<double>(detector, "time_sigma_ns"),
                                .offset_ns = get<double>(detector, "offset_ns"),
                                .accidental_rate_hz = get<double>(detector, "accidental_rate_hz"),
                                .id = get<std::uint16_t>(detector, "primitive_id"),
                                .id_random_bits = get<std::uint16_t>(detector, "random_bits")});
  }
  return config;
}

}  // namespace

emulate::EmulatorConfig emulator_config(const nb::dict& dict) {
  emulate::EmulatorConfig config;
  config.boards = get<std::uint32_t>(dict, "boards");
  config.layout = choice<wire::MgpLayout>(dict, "layout", {{"padded", wire::MgpLayout::padded}, {"packed", wire::MgpLayout::packed}});
  config.source_id = get<std::uint8_t>(dict, "source_id");
  config.first_sub_id = get<std::uint8_t>(dict, "first_sub_id");
  config.events_per_packet = get<std::uint32_t>(dict, "events_per_packet");
  config.packet_bytes = get<std::uint32_t>(dict, "packet_bytes");
  config.pool_events = get<std::uint32_t>(dict, "pool_events");
  config.monte_carlo = monte_carlo_config(get<nb::dict>(dict, "monte_carlo"));
  for (const nb::handle endpoint : get<nb::list>(dict, "destinations")) {
    config.endpoints.push_back(nb::cast<std::string>(endpoint));
  }
  config.answers = has(dict, "answers") ? std::optional(get<std::string>(dict, "answers")) : std::nullopt;
  config.rate_events_per_s = get<double>(dict, "rate_events_per_s");
  config.duration_s = get<double>(dict, "duration_s");
  config.events_total = get<std::uint64_t>(dict, "events_total");
  config.spill_s = get<double>(dict, "spill_s");
  config.pause_s = get<double>(dict, "pause_s");
  config.burst_packets = get<std::uint32_t>(dict, "burst_packets");
  config.in_flight_packets_max = get<std::uint32_t>(dict, "in_flight_packets_max");
  config.drain_ms = get<double>(dict, "drain_ms");
  config.quiet_ms = get<double>(dict, "quiet_ms");
  config.finder = finder_config(get<nb::dict>(dict, "finder"));
  config.decision = decision_config(dict);
  rich::set_search_range(config.finder, config.decision.cuts);
  config.cpu_core = core(dict, "cpu_core");
  if (has(dict, "xdp")) {
    const auto xdp = get<nb::dict>(dict, "xdp");
    config.xdp = emulate::XdpPath{
        .interface = get<std::string>(xdp, "interface"),
        .boards = choice<emulate::XdpPath::Boards>(
            xdp, "boards", {{"socket", emulate::XdpPath::Boards::socket}, {"frames", emulate::XdpPath::Boards::frames}}),
        .frame_count = get<std::uint32_t>(xdp, "frame_count")};
  }
  if (has(dict, "detectors")) config.detectors = detectors_config(get<nb::dict>(dict, "detectors"));
  config.decisions = has(dict, "decisions") ? std::optional(get<std::string>(dict, "decisions")) : std::nullopt;
  return config;
}

}  // namespace nanet::bindings
