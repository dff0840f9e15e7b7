// SPDX-License-Identifier: Apache-2.0
#include "l0tp/config.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

namespace nanet::l0tp {
namespace {

using config::Problem;
using Broken = std::optional<Problem>;

std::string key_of(const char* list, std::size_t index, const std::string& key) {
  return std::string(list) + "." + std::to_string(index) + "." + key;
}

// The first item that has the same as one before it; how many there are if none has.
template <class T, class Value>
std::size_t second_of_two(const std::vector<T>& items, Value T::*value) {
  const auto is_second = [&](const T& item) {
    return std::any_of(items.data(), &item, [&](const T& before) { return before.*value == item.*value; });
  };
  return static_cast<std::size_t>(std::find_if(items.begin(), items.end(), is_second) - items.begin());
}

Broken check_names(const Config& config) {
  const std::vector<InputConfig>& inputs = config.inputs;
  const std::vector<MaskConfig>& masks = config.masks;
  if (const std::size_t i = second_of_two(inputs, &InputConfig::name); i < inputs.size())
    return Problem{key_of("inputs", i, "name"), "two inputs have name " + inputs[i].name, "masks name them by it", "rename one"};
  if (const std::size_t i = second_of_two(inputs, &InputConfig::source_id); i < inputs.size()) {
    return Problem{key_of("inputs", i, "source_id"), "two inputs have source_id " + std::to_string(inputs[i].source_id),
                   "a packet belongs to one input", "change one of them"};
  }
  if (const std::size_t i = second_of_two(masks, &MaskConfig::name); i < masks.size()) {
    return Problem{key_of("masks", i, "name"), "two masks are named '" + masks[i].name + "'", "reports tell them apart by name",
                   "rename one"};
  }
  return std::nullopt;
}

// Those by which an input is asked for.
Broken check_known(const Config& config) {
  std::vector<std::string> names;
  for (const InputConfig& input : config.inputs) names.push_back(input.name);
  const auto unknown = [&](std::string key, const std::string& problem, const std::string& name) -> Broken {
    if (std::find(names.begin(), names.end(), name) != names.end()) return std::nullopt;
    return Problem{std::move(key), problem + "'" + name + "'", "no input has that name", config::nearest(name, names)};
  };
  if (auto broken = unknown("reference", "reference is ", config.reference)) return broken;
  for (std::size_t i = 0; i < config.masks.size(); ++i) {
    for (const auto& [name, pattern] : config.masks[i].bits) {
      const std::string problem = "mask '" + config.masks[i].name + "' asks for ";
      if (auto broken = unknown(key_of("masks", i, "bits." + name), problem, name)) return broken;
    }
  }
  return std::nullopt;
}

Broken check_times(const Config& config) {
  const double cell_ns = config.cell_ns();
  const double memory_us = kCellCount * cell_ns / 1000;
  std::ostringstream problem;
  for (std::size_t i = 0; i < config.inputs.size(); ++i) {
    const InputConfig& input = config.inputs[i];
    if (input.time_cut_ns <= cell_ns) continue;
    problem << "time_cut_ns " << input.time_cut_ns << " of " << input.name << " is more than a cell of " << cell_ns << " ns";
    return Problem{key_of("inputs", i, "time_cut_ns"), problem.str(),
                   "only the adjacent cells are searched, so a larger cut would depend on where in its cell a primitive lies",
                   "lower it, or fine_time_bits"};
  }
  if (config.read_lag_us <= memory_us / 2) return std::nullopt;
  problem << "read_lag_us " << config.read_lag_us << " is more than half of the memory's " << memory_us << " us";
  return Problem{"read_lag_us", problem.str(), "the other half is for detectors that are ahead", "lower it, or fine_time_bits"};
}

}  // namespace

Broken MaskConfig::check() const {
  for (const auto& [input, pattern] : bits) {
    const std::string problem = "pattern '" + pattern + "' of " + input;
    const auto count = pattern.size() - static_cast<std::size_t>(std::count(pattern.begin(), pattern.end(), '_'));
    if (pattern.find_first_not_of("01xX_") != std::string::npos)
      return Problem{"bits." + input, problem + " has other characters", "a bit is 0, 1, or x for either", "write 0, 1 or x"};
    if (count != 16) {
      return Problem{"bits." + input, problem + " has " + std::to_string(count) + " bits", "a primitive ID has 16",
                     "write one character for each bit"};
    }
  }
  return std::nullopt;
}

BitPattern MaskConfig::pattern_of(const std::string& input) const {
  BitPattern pattern;
  const auto found = bits.find(input);
  if (found == bits.end()) return pattern;
  std::uint16_t bit = 0x8000;
  for (const char one : found->second) {
    if (one == '_') continue;
    if (one == '1') pattern.value |= bit;
    if (one == '0' || one == '1') pattern.care |= bit;
    bit >>= 1;
  }
  return pattern;
}

Broken Config::check() const {
  for (const auto rule : {check_names, check_known, check_times}) {
    if (auto broken = rule(*this)) return broken;
  }
  return std::nullopt;
}

std::size_t Config::reference_index() const {
  const auto is_it = [&](const InputConfig& input) { return input.name == reference; };
  return static_cast<std::size_t>(std::find_if(inputs.begin(), inputs.end(), is_it) - inputs.begin());
}

}  // namespace nanet::l0tp
