// SPDX-License-Identifier: Apache-2.0
// What the components say of themselves (nanet/config/setting.hpp), for scripts/make_config.py and for the models that it makes.
#include <nanobind/stl/string.h>

#include <algorithm>

#include "bindings.hpp"
#include "nanet/config/describe.hpp"
#include "nanet/config/read.hpp"
#include "nanet/engine/config.hpp"
#include "values.hpp"

namespace nanet::bindings {
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
             "The first rule between its keys that a component breaks: (key, problem, why, suggestion), or None.");
}

}  // namespace nanet::bindings
