// SPDX-License-Identifier: Apache-2.0
// describe(): what can be configured of a component, as a Value. scripts/make_config.py makes the Python models from it.
//
//   {name, help, has_rules, keys: [{key, type, default, help, unit, least, ...}]}      what is not set is left out
//   type: {kind: bool, whole, number or text}   {kind: choice, names}   {kind: component, name}   {kind: list or optional, of: type}
//
// Control path: allocates. Thread rules: pure functions.
#pragma once

#include <limits>
#include <string>
#include <utility>

#include "nanet/config/setting.hpp"
#include "nanet/config/value.hpp"

namespace nanet::config {
namespace detail {

inline Value text(std::string_view what) { return {std::string(what)}; }

template <class T>
Value type_of() {
  const auto kind = [](std::string_view name) { return Value(Value::Map{{"kind", text(name)}}); };
  if constexpr (IsComponent<T>) {
    return Value::Map{{"kind", text("component")}, {"name", text(T::component.name)}};
  } else if constexpr (kIsOptional<T> || kIsList<T>) {
    return Value::Map{{"kind", text(kIsList<T> ? "list" : "optional")}, {"of", type_of<typename T::value_type>()}};
  } else if constexpr (IsChoice<T>) {
    Value::List names;
    for (const auto& one : choices(T{})) names.push_back(text(one.name));
    return Value::Map{{"kind", text("choice")}, {"names", std::move(names)}};
  } else if constexpr (std::is_same_v<T, bool>) {
    return kind("bool");
  } else if constexpr (IsText<T>) {
    return kind("text");
  } else {
    return kind(std::is_floating_point_v<T> ? "number" : "whole");
  }
}

// A default. Null for a component: its keys have their own defaults.
template <class T>
Value value_of(const T& field) {
  if constexpr (IsComponent<T>) {
    return {};
  } else if constexpr (kIsOptional<T>) {
    return field ? value_of(*field) : Value();
  } else if constexpr (kIsList<T>) {
    Value::List list;
    for (const auto& one : field) list.push_back(value_of(one));
    return list;
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
}

}  // namespace detail

template <IsComponent T>
Value describe() {
  Value::List keys;
  T defaults;
  defaults.visit([&](const char* name, auto& field, const Setting& setting) {
    using Field = std::remove_reference_t<decltype(field)>;
    Value type = detail::type_of<Field>();
    if (setting.nullable) type = Value::Map{{"kind", detail::text("optional")}, {"of", std::move(type)}};
    Value::Map key{{"key", detail::text(name)}, {"type", std::move(type)}};
    if (!setting.required) key.emplace_back("default", setting.nullable ? Value() : detail::value_of(field));
    detail::add_setting(key, setting);
    keys.emplace_back(std::move(key));
  });
  return Value::Map{{"name", detail::text(T::component.name)},
                    {"help", detail::text(T::component.help)},
                    {"has_rules", Value(HasRules<T>)},
                    {"keys", std::move(keys)}};
}

}  // namespace nanet::config
