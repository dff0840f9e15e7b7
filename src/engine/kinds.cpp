// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/kinds.hpp"

#include <algorithm>
#include <utility>

#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

constexpr std::size_t kNameMax = 63;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_name(std::string_view name) {
  const auto fits = [](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= kNameMax && is_letter(name.front()) && std::all_of(name.begin(), name.end(), fits);
}

std::string_view name_of(const Protocol* protocol) { return protocol->name; }
std::string_view name_of(const ProcessorKind& kind) { return kind.name; }
std::string_view name_of(const std::shared_ptr<const LinkKind>& kind) { return kind->name; }

template <class Known>
std::vector<std::string> names_of(const std::vector<Known>& known) {
  std::vector<std::string> names;
  for (const Known& one : known) names.emplace_back(name_of(one));
  return names;
}

template <class Known>
const Known* find(const std::vector<Known>& known, std::string_view name) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const Known& one) { return name_of(one) == name; });
  return found == known.end() ? nullptr : &*found;
}

template <class Known>
void check_new(const std::string& what, const std::vector<Known>& known, std::string_view name) {
  if (!is_name(name)) {
    throw SetupError("'" + std::string(name.substr(0, kNameMax)) + "' is no name of a " + what,
                     "one has letters, digits, '_', '-' and '.', at most " + std::to_string(kNameMax) + ", and a letter first",
                     "rename it");
  }
  if (find(known, name) == nullptr) return;
  throw SetupError("there are two kinds of " + what + " with the name " + std::string(name), "a configuration could mean either",
                   "rename one");
}

void check_makes(const std::string& what, const std::string& name, const void* makes) {
  if (makes == nullptr) throw SetupError(what + " " + name + " cannot be made", "its kind has no function for it", "give it one");
}

template <class Known>
const Known& known_as(const std::string& what, const std::vector<Known>& known, std::string_view name) {
  if (const Known* const found = find(known, name)) return *found;
  throw SetupError("no " + what + " has the name '" + std::string(name) + "'", "neither nanet's own nor a plug-in's",
                   config::nearest(name, names_of(known)));
}

}  // namespace

void Kinds::add(const Protocol& protocol) {
  check_new("protocol", protocols_, protocol.name);
  check_makes("protocol", std::string(protocol.name), reinterpret_cast<const void*>(protocol.receiver_of));
  protocols_.push_back(&protocol);
}

void Kinds::add(std::shared_ptr<const Protocol> protocol) {
  add(*protocol);
  owned_.push_back(std::move(protocol));
}

std::shared_ptr<const void> Kinds::owner_of(const Protocol& protocol) const {
  const auto found = std::find_if(owned_.begin(), owned_.end(), [&](const auto& one) { return one.get() == &protocol; });
  return found == owned_.end() ? nullptr : *found;
}

void Kinds::add(ProcessorKind kind) {
  check_new("processor", processors_, kind.name);
  check_makes("processor", kind.name, kind.make ? &kind : nullptr);
  processors_.push_back(std::move(kind));
}

void Kinds::add(LinkKind kind) {
  check_new("link", links_, kind.name);
  check_makes("link", kind.name, kind.open ? &kind : nullptr);
  links_.push_back(std::make_shared<const LinkKind>(std::move(kind)));
}

const Protocol& Kinds::protocol(std::string_view name) const { return *known_as("protocol", protocols_, name); }

const ProcessorKind& Kinds::processor(std::string_view name) const { return known_as("processor", processors_, name); }

std::shared_ptr<const LinkKind> Kinds::link(std::string_view scheme) const { return known_as("link", links_, scheme); }

}  // namespace nanet::engine
