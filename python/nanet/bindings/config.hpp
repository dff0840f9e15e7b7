// SPDX-License-Identifier: Apache-2.0
// From the dictionaries of python/nanet/config/engine.py to the structs of the engine and the emulator.
#pragma once

#include <functional>

#include "bindings.hpp"
#include "emulate/emulator.hpp"
#include "km3_engine/kinds.hpp"
#include "nanet/engine/config.hpp"
#include "nanet/na62/kinds.hpp"

namespace nanet::bindings {

engine::EngineConfig engine_config(const nb::dict& dict);
// Where the configurations of processors come from that have sections of their own.
struct ProcessorConfigs {
  na62::ProcessorConfigs na62;
  std::function<km3_engine::Km3Config()> km3;
};
// Of what an engine can be built from: nanet's own, NA62's, KM3NeT's, those of plug-ins, and the formats that are declared. processors: needed where one is made.
engine::Kinds kinds_for(const std::vector<std::string>& plugins, const nb::dict& formats = {}, ProcessorConfigs processors = {});
engine::LinkConfig link_config(const engine::Kinds& kinds,
                               const nb::dict& dict);  // the keys of a link that `dict` has, among others, and those of its kind
engine::LinkConfig port_config(const nb::dict& dict);
// What protocols, processors and links there are with these plug-ins, and what nanet/config/plugins.py has to know of each. Throws SetupError.
nb::dict kinds_with(const std::vector<std::string>& plugins);
rich::FinderConfig finder_config(const nb::dict& dict);  // {"name": finder, cut: number, ...}
rich::Decision decision_config(const nb::dict& dict);    // "cuts" and "conditions"
emulate::MonteCarloConfig monte_carlo_config(const nb::dict& dict);
emulate::EmulatorConfig emulator_config(const nb::dict& dict);

}  // namespace nanet::bindings
