// SPDX-License-Identifier: Apache-2.0
// describe(): what can be configured of a component, as a Value. scripts/make_config.py makes the Python models from it.
//
//   {name, help, has_rules, keys: [{key, type, default, help, unit, least, ...}]}      what is not set is left out
//   type: {kind: bool, whole, number or text}   {kind: choice, names}   {kind: component, name}   {kind: map or optional, of: type}
//         {kind: list, of: type, length}        length: of one that has no other
//
// Control path: allocates. Thread rules: pure functions.
#pragma once

#include <limits>
#include <string>
#include <utility>

#include "nanet/config/read.hpp"
#include "nanet/config/setting.hpp"
#include "nanet/config/value.hpp"

namespace nanet::config {
namespace detail {

inline Value text(std::string_view what) { return {std::string(what)}; }

template <class T>
Value type_of(const Setting& setting) {
  const auto kind = [](std::string_view name) { return Value(Value::Map{{"kind", text(name)}}); };
  if constexpr (IsComponent<T>) {
    return Value::Map{{"kind", text("component")}, {"name", text(T::component.name)}};
  } else if constexpr (kIsOptional<T> || kIsList<T>) {
    Value::Map type{{"kind", text(kIsList<T> ? "list" : "optional")}, {"of", type_of<typename T::value_type>(setting)}};
    if constexpr (kArraySize<T> != 0) type.emplace_back("length", Value(static_cast<std::int64_t>(kArraySize<T>)));
    return type;
  } else if constexpr (kIsMap<T>) {
    return Value::Map{{"kind", text("map")}, {"of", type_of<typename T::mapped_type>(setting)}};
  } else if constexpr (IsChoice<T>) {
    Value::List names;
    for (const auto& one : choices(T{})) names.push_back(text(one.name));
    return Value::Map{{"kind", text("choice")}, {"names", std::move(names)}};
  } else if constexpr (std::is_same_v<T, bool>) {
    return kind("bool");
  } else if constexpr (IsText<T>) {
    return kind("text");
  } else {
    if (setting.one_of.size() == 0) return kind(std::is_floating_point_v<T> ? "number" : "whole");
    Value::List numbers;
    for (const int one : setting.one_of) numbers.emplace_back(std::int64_t{one});
    return Value::Map{{"kind", text("choice")}, {"names", std::move(numbers)}};
  }
}

// A default.
template <class T>
Value value_of(const T& field, const Setting& setting) {
  if constexpr (IsNumber<T> || IsText<T>) {
    if (setting.nullable && field == T{}) return {};
  }
  if constexpr (IsComponent<T>) {
    Value::Map keys;
    T copy = field;  // visit() is for members that may change
    copy.visit([&](const char* name, auto& one, const Setting& of_key) { keys.emplace_back(name, value_of(one, of_key)); });
    return keys;
  } else if constexpr (kIsOptional<T>) {
    return field ? value_of(*field, setting) : Value();
  } else if constexpr (kIsList<T>) {
    Value::List list;
    for (const auto& one : field) list.push_back(value_of(one, setting));
    return list;
  } else if constexpr (kIsMap<T>) {
    Value::Map map;
    for (const auto& [name, one] : field) map.emplace_back(name, value_of(one, setting));
    return map;
  } else if constexpr (IsChoice<T>) {
    return text(name_of(field));
  } else if constexpr (std::is_same_v<T, bool> || IsText<T>) {
    return {field};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {static_cast<double>(field)};
  } else {
    return {static_cast<std::int64_t>(field)};
  }
}

inline void add_setting(Value::Map& key, const Setting& setting) {
  const auto add = [&](const char* name, const auto& what) {
    if (what) key.emplace_back(name, Value(static_cast<double>(*what)));
  };
  const auto add_text = [&](const char* name, std::string_view what) {
    if (!what.empty()) key.emplace_back(name, text(what));
  };
  add_text("help", setting.help);
  add_text("unit", setting.unit);
  add("least", setting.least);
  add("most", setting.most);
  add("above", setting.above);
  add("below", setting.below);
  add("multiple_of", setting.multiple_of);
  add_text("too_small", setting.too_small);
  add_text("too_big", setting.too_big);
  add("length_least", setting.length_least);
  add("length_most", setting.length_most);
  add_text("pattern", setting.pattern);
  add_text("form", setting.form);
  add_text("list_form", setting.list_form);
}

inline Value key_of(const char* name, Value type, Value fallback, const Setting& setting) {
  if (setting.nullable) type = Value::Map{{"kind", text("optional")}, {"of", std::move(type)}};
  Value::Map key{{"key", text(name)}, {"type", std::move(type)}};
  if (!setting.required) key.emplace_back("default", std::move(fallback));
  add_setting(key, setting);
  return key;
}

// Made once for each type of a member, not for each component that has one.
template <class T>
[[gnu::noinline]] void describe_key(Value::List& keys, const char* name, const T& field, const Setting& setting) {
  Value fallback = setting.required || setting.unset ? Value() : value_of(field, setting);
  keys.push_back(key_of(name, type_of<T>(setting), std::move(fallback), setting));
}

}  // namespace detail

template <IsComponent T>
Value describe() {
  Value::List keys;
  T defaults;
  defaults.visit([&](const char* name, auto& field, const Setting& setting) { detail::describe_key(keys, name, field, setting); });
  return Value::Map{{"name", detail::text(T::component.name)},
                    {"help", detail::text(T::component.help)},
                    {"has_rules", Value(HasRules<T>)},
                    {"keys", std::move(keys)}};
}

// A component by its name: what it says of itself, and the first rule between keys that a map of them breaks (its bounds are not looked at).
struct Entry {
  std::string_view name;
  Value (*describe)();
  std::optional<Problem> (*broken_rule)(const Value& keys);
};

template <IsComponent T>
constexpr Entry entry() {
  return {T::component.name, &describe<T>, [](const Value& keys) -> std::optional<Problem> {
            if constexpr (HasRules<T>) return read_unchecked<T>(keys).check();
            return std::nullopt;
          }};
}

}  // namespace nanet::config
