// SPDX-License-Identifier: Apache-2.0
#include "config.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "finders.hpp"
#include "nanet/config/describe.hpp"
#include "nanet/config/read.hpp"
#include "nanet/engine/plugin.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/na62/kinds.hpp"
#include "rich/ring_cuts_config.hpp"
#include "rich/search_range.hpp"
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

// processor: and answers: of a configuration whose processor is of kind rich.
na62::RichConfig rich_config(const nb::dict& dict, const std::optional<nb::dict>& answers) {
  na62::RichConfig config;
  config.finder = finder_config(get<nb::dict>(dict, "finder"));
  config.decision = decision_config(dict);
  rich::set_search_range(config.finder, config.decision.cuts);
  config.hot_channels = get<bool>(get<nb::dict>(dict, "mask"), "hot") ? na62::HotChannels::mask : na62::HotChannels::keep;
  if (answers) config.answers = config::read<na62::AnswerConfig>(value_of(*answers), "answers");
  using gpu::Runtime;
  config.gpu = part<gpu::GpuConfig>(dict, "gpu");
  config.gpu.runtime = choice<Runtime>(
      dict, "runtime",
      {{"cpu", Runtime::cpu}, {"launch", Runtime::launch}, {"graph", Runtime::graph}, {"persistent", Runtime::persistent}});
  return config;
}

// Of what an engine can be built from: nanet's own, NA62's, and those of plug-ins. processor, answers: outlive what is returned.
engine::Kinds kinds_for(const nb::dict& processor, const std::optional<nb::dict>& answers, const std::vector<std::string>& plugins) {
  engine::Kinds kinds = engine::built_in_kinds();
  na62::add_kinds(kinds, {.rich = [&] { return rich_config(processor, answers); },
                          .forward = [&] { return part<na62::ForwardConfig>(processor, "forward"); }});
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
  if (kind.sends && answers) config.send = config::read<na62::AnswerConfig>(value_of(*answers), "answers").send_config();
  if (has(dict, "forward")) config.send = part<na62::ForwardConfig>(dict, "forward").send_config();
}

// "10.0.0.0/24", checked already.
engine::SenderNetwork sender_network(const std::string& text) {
  const std::size_t slash = text.find('/');
  const link::Endpoint endpoint = link::parse_endpoint("udp://" + text.substr(0, slash) + ":0");
  return {.address = endpoint.address, .prefix_bits = static_cast<std::uint8_t>(std::stoul(text.substr(slash + 1)))};
}

// What only a link of this kind needs; its defaults where the section is not there.
template <config::IsComponent T>
T section(const nb::dict& dict, const char* key) {
  return has(dict, key) ? part<T>(dict, key) : T{};
}

link::UcxConfig ucx_config(const nb::dict& dict) {
  nb::dict keys;
  for (const auto& [key, value] : dict) {
    if (nb::cast<std::string>(key) != "token") keys[key] = value;
  }
  auto config = config::read<link::UcxConfig>(value_of(keys), "ucx");
  config.token = get<std::uint64_t>(dict, "token");  // not of the configuration: nanet/run/native.py
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
  config.xdp = section<link::XdpConfig>(dict, "xdp");
  config.dpdk = section<link::DpdkConfig>(dict, "dpdk");
  if (has(dict, "ucx")) config.ucx = ucx_config(get<nb::dict>(dict, "ucx"));
  config.gateware.card = part_if_given<link::GatewareCard>(dict, "gateware");
  config.pcap = section<link::PcapLinkConfig>(dict, "pcap");
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
  config.cpu_cores = part<engine::CoresConfig>(dict, "cpu_cores");
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

rich::FinderConfig finder_config(const nb::dict& dict) {
  nb::dict cuts;
  for (const auto& [key, value] : dict) {
    if (nb::cast<std::string>(key) != "name" && !value.is_none()) cuts[key] = value;
  }
  return finder_config(get<std::string>(dict, "name"), cuts);
}

rich::Decision decision_config(const nb::dict& dict) {
  rich::Decision decision{.cuts = part<rich::RingCutsConfig>(dict, "cuts").cuts()};
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

// ---- what the components say of themselves, for scripts/make_config.py and for the models that it makes

namespace {

struct Entry {
  std::string_view name;
  config::Value (*describe)();
  std::optional<config::Problem> (*broken_rule)(const config::Value&);
};

template <config::IsComponent T>
constexpr Entry entry() {
  return {T::component.name, &config::describe<T>, [](const config::Value& keys) -> std::optional<config::Problem> {
            if constexpr (config::HasRules<T>) return config::read_unchecked<T>(keys).check();
            return std::nullopt;
          }};
}

// Every component whose model is made; one that is part of another stands before it.
constexpr Entry kComponents[] = {
    entry<engine::SourceConfig>(), entry<engine::MemoryRegionConfig>(), entry<engine::RecordConfig>(),
    entry<link::FaultConfig>(),    entry<engine::MergeConfig>(),        entry<engine::WaitingConfig>(),
    entry<link::XdpConfig>(),      entry<link::DpdkConfig>(),           entry<link::UcxConfig>(),
    entry<link::GatewareCard>(),   entry<link::PcapLinkConfig>(),       entry<gpu::GpuConfig>(),
    entry<engine::CoresConfig>(),  entry<na62::ForwardConfig>(),        entry<na62::AnswerConfig>(),
    entry<rich::RingCutsConfig>(),
};

nb::list components() {
  nb::list all;
  for (const Entry& one : kComponents) all.append(python_of(one.describe()));
  return all;
}

nb::object broken_rule(const std::string& component, const nb::dict& keys) {
  const auto* const found = std::find_if(std::begin(kComponents), std::end(kComponents),
                                         [&](const Entry& one) { return one.name == component; });
  if (found == std::end(kComponents)) {
    throw SetupError("no component " + component, "the models and the native module come apart", "run make setup");
  }
  const auto broken = found->broken_rule(value_of(keys));
  if (!broken) return nb::none();
  return nb::make_tuple(broken->key, broken->problem, broken->why, broken->suggestion);
}

}  // namespace

void bind_components(nb::module_& module) {
  module.def("components", &components, "What can be configured of each component: {name, help, has_rules, keys}.");
  module.def("broken_rule", &broken_rule, nb::arg("component"), nb::arg("keys"),
             nb::sig("def broken_rule(component: str, keys: dict) -> tuple[str, str, str, str] | None"),
             "The first rule between its keys that a component breaks: (key, problem, why, suggestion), or None.");
}

}  // namespace nanet::bindings
