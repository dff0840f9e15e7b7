// SPDX-License-Identifier: Apache-2.0
// What the components and the links say of themselves, for scripts/make_config.py and for the models that it makes.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "config.hpp"
#include "finders.hpp"
#include "km3_emulate/config.hpp"
#include "km3_engine/config.hpp"
#include "nanet/config/describe.hpp"
#include "nanet/config/read.hpp"
#include "nanet/format/declaration.hpp"
#include "nanet/link/gateware.hpp"
#include "nanet/link/udp.hpp"
#include "nanet/na62/kinds.hpp"
#include "rich/ring_cuts_config.hpp"
#include "trigger/node.hpp"
#include "values.hpp"

namespace nanet::bindings {
namespace {

using config::entry;
using engine::LinkConfig;

// Every component whose model is made; one that is part of another stands before it.
constexpr config::Entry kComponents[] = {
    entry<engine::SourceConfig>(),
    entry<engine::MemoryRegionConfig>(),
    entry<engine::RecordConfig>(),
    entry<engine::StreamRangeConfig>(),
    entry<engine::StreamMergeConfig>(),
    entry<engine::ResendConfig>(),
    entry<engine::AssembleConfig>(),
    entry<link::FaultConfig>(),
    entry<link::SentConfig>(),
    entry<link::TorusFrom>(),
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
    entry<km3::TriggerConfig>(),
    entry<km3_engine::Km3Config>(),
    entry<km3_emulate::NoiseConfig>(),
    entry<km3_emulate::LoudConfig>(),
    entry<km3_emulate::MuonConfig>(),
    entry<km3_emulate::BeaconConfig>(),
    entry<km3_emulate::SoundConfig>(),
    entry<km3_emulate::SilenceConfig>(),
    entry<km3_emulate::JumpConfig>(),
    entry<km3_emulate::FaultsConfig>(),
    entry<km3_emulate::TowerConfig>(),
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
    entry<link::GatewareFloors>(),
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
  const engine::Kinds kinds = kinds_for({});
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
  const engine::Kinds kinds = kinds_for(plugins, formats);
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
