// SPDX-License-Identifier: Apache-2.0
#include "config.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "finders.hpp"
#include "nanet/config/describe.hpp"
#include "nanet/config/read.hpp"
#include "nanet/engine/plugin.hpp"
#include "nanet/format/declaration.hpp"
#include "nanet/link/gateware.hpp"
#include "nanet/link/udp.hpp"
#include "nanet/na62/kinds.hpp"
#include "rich/ring_cuts_config.hpp"
#include "rich/search_range.hpp"
#include "trigger/node.hpp"
#include "values.hpp"

namespace nanet::bindings {

using engine::LinkConfig;

engine::Kinds kinds_for(const std::vector<std::string>& plugins, const nb::dict& formats, ProcessorConfigs processors) {
  engine::Kinds kinds = engine::built_in_kinds();
  na62::add_kinds(kinds, std::move(processors.na62));
  km3_engine::add_kinds(kinds, std::move(processors.km3));
  for (const std::string& path : plugins) engine::add_plugin(kinds, path);
  for (const auto& [name, declaration] : formats) {
    const auto text = nb::cast<std::string>(name);
    kinds.add(engine::declared_protocol(text, config::read<format::Declaration>(value_of(declaration), "formats." + text)));
  }
  return kinds;
}

LinkConfig link_config(const engine::Kinds& kinds, const nb::dict& dict) {
  auto config = config::read<LinkConfig>(value_of(dict), "", config::Others::ignored);
  config.protocol = &kinds.protocol(get<std::string>(dict, "protocol"));
  config.protocol_owner = kinds.owner_of(*config.protocol);
  config.kind = kinds.link(config.endpoint.substr(0, config.endpoint.find("://")));
  const char* const section = config.kind->name.c_str();
  if (config.kind->section.read != nullptr && has(dict, section))
    config.section = config.kind->section.read(value_of(dict[section]));
  if (has(dict, "settings")) config.settings = value_of(dict["settings"]);
  return config;
}

namespace {

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

// The processor, and where it sends.
void set_processor(engine::EngineConfig& config, const engine::Kinds& kinds, const nb::dict& dict,
                   const std::optional<nb::dict>& answers) {
  const engine::ProcessorKind& kind = kinds.processor(get<std::string>(dict, "kind"));
  if (!kind.on_gpu && get<std::string>(dict, "runtime") != "cpu") {
    throw SetupError("processor " + kind.name + " on a GPU", "it runs on none", "set runtime: cpu");
  }
  if (!kind.sends && answers) {
    throw SetupError("answers are configured", "processor " + kind.name + " makes none", "set answers to null");
  }
  if (!kind.merges && has(dict, "merge")) {
    throw SetupError("processor.merge is configured", "processor " + kind.name + " merges nothing", "set it to null");
  }
  engine::ProcessorSettings settings;
  if (has(dict, "settings")) settings.settings = value_of(dict["settings"]);
  settings.merge = part_if_given<engine::MergeConfig>(dict, "merge");
  settings.has_destination = answers.has_value();
  config.processor = kind.make(settings);
  if (kind.sends && answers) config.send = config::read<na62::AnswerConfig>(value_of(*answers), "answers").send_config();
  if (has(dict, "forward")) config.send = part<na62::ForwardConfig>(dict, "forward").send_config();
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
  LinkConfig config = link_config(kinds, dict);
  const auto wanted = get<std::string>(dict, "memory_region");
  std::vector<std::string> names;
  for (const nb::handle handle : regions) {
    const auto region = nb::cast<nb::dict>(handle);
    names.push_back(get<std::string>(region, "name"));
    if (names.back() == wanted) {
      config.memory_region = memory_region_config(region, wanted);
      return config;
    }
  }
  throw SetupError("link '" + config.name + "' uses the unknown memory region '" + wanted + "'", "it is none of memory_regions",
                   config::nearest(wanted, names));
}

}  // namespace

nb::dict kinds_with(const std::vector<std::string>& plugins) {
  const engine::Kinds kinds = kinds_for(plugins);
  nb::dict protocols;
  for (const engine::Protocol* protocol : kinds.protocols()) {
    nb::dict one;
    one["numbered"] = protocol->numbered;
    protocols[nb::str(protocol->name.data(), protocol->name.size())] = one;
  }
  nb::dict processors;
  for (const engine::ProcessorKind& kind : kinds.processors()) {
    nb::dict one;
    one["done"] = kind.done ? nb::object(nb::str(flow::kCounterTable[static_cast<std::size_t>(*kind.done)].name.data()))
                            : nb::object(nb::none());
    processors[kind.name.c_str()] = one;
  }
  nb::dict links;
  for (const auto& kind : kinds.links()) {
    nb::dict one;
    one["has_back_end"] = kind->back_end.has_value();
    links[kind->name.c_str()] = one;
  }
  nb::dict all;
  all["protocols"] = protocols;
  all["processors"] = processors;
  all["links"] = links;
  return all;
}

// Of the declared formats in `dict`, those that `links` name: others need not carry events.
static nb::dict used_formats(const nb::dict& dict, const nb::list& links) {
  nb::dict used;
  if (!has(dict, "formats")) return used;
  const auto formats = get<nb::dict>(dict, "formats");
  for (const nb::handle link : links) {
    const nb::object name = nb::cast<nb::dict>(link)["protocol"];
    if (formats.contains(name)) used[name] = formats[name];
  }
  return used;
}

LinkConfig port_config(const nb::dict& dict) {
  auto link = nb::cast<nb::dict>(dict.attr("copy")());
  link["name"] = "port";
  nb::list links;
  links.append(link);
  LinkConfig config = link_config(kinds_for({}, used_formats(dict, links)), link);
  config.memory_region = memory_region_config(dict, "port");
  config.queue = get<std::uint32_t>(dict, "queue");
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
  const auto links = get<nb::list>(dict, "links");
  const engine::Kinds kinds = kinds_for(
      get<std::vector<std::string>>(dict, "plugins"), used_formats(dict, links),
      {.na62 = {.rich = [&] { return rich_config(processor, answers); },
                .forward = [&] { return part<na62::ForwardConfig>(processor, "forward"); }},
       .km3 = [&] { return part_if_given<km3_engine::Km3Config>(processor, "km3").value_or(km3_engine::Km3Config{}); }});
  const auto regions = get<nb::list>(dict, "memory_regions");
  for (const nb::handle link : links) {
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
  return config::read<emulate::MonteCarloConfig>(value_of(dict), "monte_carlo");
}

emulate::EmulatorConfig emulator_config(const nb::dict& dict) {
  auto config = config::read<emulate::EmulatorConfig>(value_of(dict), {}, config::Others::ignored);
  config.finder = finder_config(get<nb::dict>(dict, "finder"));
  config.decision = decision_config(dict);
  rich::set_search_range(config.finder, config.decision.cuts);
  return config;
}

}  // namespace nanet::bindings
