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

// Of what an engine can be built from: nanet's own, NA62's, those of plug-ins, and the formats that are declared. processor, answers: outlive
// what is returned.
engine::Kinds kinds_for(const nb::dict& processor, const std::optional<nb::dict>& answers, const std::vector<std::string>& plugins,
                        const nb::dict& formats = {}) {
  engine::Kinds kinds = engine::built_in_kinds();
  na62::add_kinds(kinds, {.rich = [&] { return rich_config(processor, answers); },
                          .forward = [&] { return part<na62::ForwardConfig>(processor, "forward"); }});
  for (const std::string& path : plugins) engine::add_plugin(kinds, path);
  for (const auto& [name, declaration] : formats) {
    const auto text = nb::cast<std::string>(name);
    kinds.add(engine::declared_protocol(text, config::read<format::Declaration>(value_of(declaration), "formats." + text)));
  }
  return kinds;
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

// The keys of a link that `dict` has, among others, and those of its kind.
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
  const nb::dict no_processor;
  const engine::Kinds kinds = kinds_for(no_processor, std::nullopt, plugins);
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
  const nb::dict no_processor;
  auto link = nb::cast<nb::dict>(dict.attr("copy")());
  link["name"] = "port";
  nb::list links;
  links.append(link);
  LinkConfig config = link_config(kinds_for(no_processor, std::nullopt, {}, used_formats(dict, links)), link);
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
  const engine::Kinds kinds = kinds_for(processor, answers, get<std::vector<std::string>>(dict, "plugins"),
                                        used_formats(dict, links));
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

// ---- what the components and the links say of themselves, for scripts/make_config.py and for the models that it makes

namespace {

using config::entry;

// Every component whose model is made; one that is part of another stands before it.
constexpr config::Entry kComponents[] = {
    entry<engine::SourceConfig>(),
    entry<engine::MemoryRegionConfig>(),
    entry<engine::RecordConfig>(),
    entry<engine::AssembleConfig>(),
    entry<link::FaultConfig>(),
    entry<link::SentConfig>(),
    entry<LinkConfig>(),
    entry<engine::MergeConfig>(),
    entry<engine::WaitingConfig>(),
    entry<gpu::GpuConfig>(),
    entry<engine::CoresConfig>(),
    entry<na62::ForwardConfig>(),
    entry<na62::AnswerConfig>(),
    entry<rich::RingCutsConfig>(),
    entry<emulate::Fractions>(),
    entry<emulate::MonteCarloConfig>(),
    entry<emulate::XdpPath>(),
    entry<emulate::DetectorConfig>(),
    entry<emulate::DetectorBankConfig>(),
    entry<emulate::EmulatorConfig>(),
    entry<l0tp::InputConfig>(),
    entry<l0tp::MaskConfig>(),
    entry<trigger::NodeWaiting>(),
    entry<trigger::NodeConfig>(),
    entry<format::FieldConfig>(),
    entry<format::ItemsConfig>(),
    entry<format::SamplesConfig>(),
    entry<format::PayloadConfig>(),
    entry<format::SequenceConfig>(),
    entry<format::TimePartConfig>(),
    entry<format::MergeConfig>(),
    entry<format::ChecksumConfig>(),
    entry<format::HitsConfig>(),
    entry<format::EventsConfig>(),
    entry<format::VariantConfig>(),
    entry<format::BeforeConfig>(),
    entry<format::Declaration>(),
    entry<link::GatewareMerge>(),
};

// Of the ring finders, each once: two finders may share their cuts.
std::vector<config::Entry> finder_cuts() {
  std::vector<config::Entry> all;
  rich::FinderConfig().visit_cuts([&]<class Cuts>(const char*, Cuts&) {
    const auto same = [](const config::Entry& one) { return one.name == Cuts::component.name; };
    if (std::none_of(all.begin(), all.end(), same)) all.push_back(entry<Cuts>());
  });
  return all;
}

nb::list components() {
  nb::list all;
  for (const config::Entry& one : kComponents) all.append(python_of(one.describe()));
  for (const config::Entry& one : finder_cuts()) all.append(python_of(one.describe()));
  return all;
}

// nanet's own kinds: what they are called, what a person has to know of them, and the sections of links.
nb::dict own_kinds() {
  const nb::dict no_processor;
  const engine::Kinds kinds = kinds_for(no_processor, std::nullopt, {});
  nb::dict protocols;
  for (const engine::Protocol* one : kinds.protocols()) protocols[nb::cast(one->name)] = nb::cast(one->help);
  nb::dict processors;
  for (const engine::ProcessorKind& one : kinds.processors()) processors[nb::cast(one.name)] = nb::cast(one.help);
  nb::list finders;
  rich::FinderConfig config;
  for (std::uint32_t k = 0; k < rich::kFinderCount; ++k) {
    nb::dict one;
    one["name"] = rich::kFinderNames[k];
    one["help"] = rich::kFinderHelp[k];
    one["cuts"] = nb::none();
    config.visit_cuts([&]<class Cuts>(std::string_view name, Cuts&) {
      if (name == rich::kFinderNames[k]) one["cuts"] = nb::cast(Cuts::component.name);
    });
    finders.append(one);
  }
  nb::list links;
  for (const auto& kind : kinds.links()) {
    nb::dict one;
    one["name"] = kind->name;
    one["endpoint"] = kind->endpoint_help;
    one["section"] = kind->section.keys ? python_of(kind->section.keys->describe()) : nb::none();
    one["section_help"] = nb::cast(kind->section.help);
    links.append(one);
  }
  nb::dict all;
  all["protocols"] = protocols;
  all["processors"] = processors;
  all["links"] = links;
  all["finders"] = finders;
  return all;
}

nb::object tuple_of(const std::optional<config::Problem>& broken) {
  if (!broken) return nb::none();
  return nb::make_tuple(broken->key, broken->problem, broken->why, broken->suggestion);
}

nb::dict link_facts(const nb::dict& link, const std::vector<std::string>& plugins, const nb::dict& formats) {
  const nb::dict no_processor;
  const engine::Kinds kinds = kinds_for(no_processor, std::nullopt, plugins, formats);
  const LinkConfig config = link_config(kinds, link);
  const engine::LinkRoom room = engine::room(config);
  nb::dict facts;
  facts["broken_rule"] = tuple_of(engine::broken_rule(config));
  facts["in_place"] = engine::in_place(config);
  facts["room"] = nb::make_tuple(room.bytes, room.why);
  return facts;
}

config::Entry component_named(const std::string& name) {
  for (const config::Entry& one : kComponents) {
    if (one.name == name) return one;
  }
  const engine::Kinds kinds = engine::built_in_kinds();
  for (const auto& kind : kinds.links()) {
    if (kind->section.keys && kind->section.keys->name == name) return *kind->section.keys;
  }
  throw SetupError("no component " + name, "the models and the native module come apart", "run make setup");
}

nb::object broken_rule(const std::string& component, const nb::dict& keys) {
  return tuple_of(component_named(component).broken_rule(value_of(keys)));
}

}  // namespace

void bind_components(nb::module_& module) {
  module.def("components", &components, "What can be configured of each component: {name, help, has_rules, keys}.");
  module.def("own_kinds", &own_kinds,
             "nanet's own protocols and processors ({name: help}), links ({name, endpoint, section, section_help}) and ring "
             "finders ({name, help, cuts}).");
  module.def("link_facts", &link_facts, nb::arg("link"), nb::arg("plugins"), nb::arg("formats") = nb::dict(),
             "Of a link as a configuration says it: broken_rule, (key, problem, why, suggestion) or None; in_place; room, the "
             "bytes that a "
             "buffer needs and why.");
  module.def("broken_rule", &broken_rule, nb::arg("component"), nb::arg("keys"),
             nb::sig("def broken_rule(component: str, keys: dict) -> tuple[str, str, str, str] | None"),
             "The first rule between its keys that a component breaks: (key, problem, why, suggestion), or None.");
}

}  // namespace nanet::bindings
