// SPDX-License-Identifier: Apache-2.0
// read(): fills a component's struct from a piece of configuration, through its visit(). require(): checks the same rules for a
// struct that a program has filled.
//
// A key that is not given keeps its default, unless it is required; a key that the struct does not have is refused. The Python models refuse the same with the file
// and line, and then the texts here are not seen. Control path: allocates. Thread rules: pure functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nanet/config/setting.hpp"
#include "nanet/config/value.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::config {

// Keys of a map that the component does not have. ignored: the map is about more than this component.
enum class Others : std::uint8_t { refused, ignored };

// With as many digits as a person wants to read.
inline std::string text_of(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

namespace detail {

inline std::string joined(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

[[noreturn]] inline void refuse(const std::string& path, const std::string& why, const Setting& setting) {
  throw SetupError("cannot use " + (path.empty() ? "the configuration" : path), why, "it means: " + std::string(setting.help));
}

// Why a number is not allowed; empty if it is.
inline std::string bound_broken(double number, const Setting& setting) {
  if (!std::isfinite(number)) return "it is not a finite number";
  const auto must = [&](const char* what, double bound) { return text_of(number) + " must be " + what + " " + text_of(bound); };
  if (setting.least && number < *setting.least) return must("at least", *setting.least);
  if (setting.most && number > *setting.most) return must("at most", *setting.most);
  if (setting.above && number <= *setting.above) return must("above", *setting.above);
  if (setting.below && number >= *setting.below) return must("below", *setting.below);
  if (setting.multiple_of && std::fmod(number, *setting.multiple_of) != 0) return must("a multiple of", *setting.multiple_of);
  std::string names;
  for (const int one : setting.one_of) {
    if (number == one) return {};
    names += (names.empty() ? "" : ", ") + std::to_string(one);
  }
  return names.empty() ? names : text_of(number) + " must be one of " + names;
}

inline std::string length_broken(std::size_t length, const Setting& setting) {
  if (setting.length_least && length < *setting.length_least)
    return "its length must be at least " + std::to_string(*setting.length_least);
  if (setting.length_most && length > *setting.length_most)
    return "its length must be at most " + std::to_string(*setting.length_most);
  return {};
}

// Checks the bounds of one member, and everything in it if it is a component.
template <class T>
void require_field(const T& field, const std::string& path, const Setting& setting) {
  std::string why;
  if constexpr (IsNumber<T> || IsText<T>) {
    if (setting.nullable && field == T{}) return;
  }
  if constexpr (IsComponent<T>) {
    T copy = field;  // visit() is for members that may change
    copy.visit([&](const char* key, auto& one, const Setting& of_key) { require_field(one, joined(path, key), of_key); });
    if constexpr (HasRules<T>) refuse_broken(field.check());
  } else if constexpr (kIsOptional<T>) {
    if (field) require_field(*field, path, setting);
  } else if constexpr (kIsList<T> || kIsMap<T>) {
    why = length_broken(field.size(), setting);
    Setting of_item = setting;
    of_item.length_least.reset();
    of_item.length_most.reset();
    if constexpr (kIsMap<T>) {
      for (const auto& [name, item] : field) require_field(item, joined(path, name), of_item);
    } else {
      for (std::size_t i = 0; i < field.size(); ++i) require_field(field[i], path + "[" + std::to_string(i) + "]", of_item);
    }
  } else if constexpr (IsChoice<T>) {
    if (name_of(field).empty()) why = "it is none of the choices";
  } else if constexpr (IsNumber<T>) {
    why = bound_broken(static_cast<double>(field), setting);
  } else if constexpr (IsText<T>) {
    if (setting.required || !field.empty()) why = length_broken(field.size(), setting);
  }
  if (!why.empty()) refuse(path, why, setting);
}

template <class T>
void read_field(const Value& value, T& into, const std::string& path, const Setting& setting);

template <IsNumber T>
void read_number(const Value& value, T& into, const std::string& path, const Setting& setting) {
  const auto* const whole = value.as<std::int64_t>();
  if constexpr (std::is_floating_point_v<T>) {
    const auto* const number = value.as<double>();
    if (whole == nullptr && number == nullptr) refuse(path, "it is not a number", setting);
    into = static_cast<T>(whole != nullptr ? static_cast<double>(*whole) : *number);
  } else {
    if (whole == nullptr) refuse(path, "it is not a whole number", setting);
    if (!std::in_range<T>(*whole)) refuse(path, std::to_string(*whole) + " is out of range", setting);
    into = static_cast<T>(*whole);
  }
}

// A component's keys while they are read.
struct Reading {
  const Value& map;
  const std::string& path;
  std::vector<std::string_view> known = {};
};

// Made once for each type of a member, not for each component that has one.
template <class T>
[[gnu::noinline]] void read_key(Reading& reading, const char* key, T& field, const Setting& setting) {
  reading.known.push_back(key);
  if (const Value* const given = reading.map.find(key)) {
    read_field(*given, field, joined(reading.path, key), setting);
  } else if (setting.required) {
    refuse(joined(reading.path, key), "it is missing and has no default", setting);
  }
}

inline void refuse_unknown(const Reading& reading, const Setting& whole) {
  for (const auto& [name, ignored] : *reading.map.as<Value::Map>()) {
    if (std::find(reading.known.begin(), reading.known.end(), name) == reading.known.end()) {
      refuse(joined(reading.path, name), "there is no such key", whole);
    }
  }
}

template <IsComponent T>
void read_component(const Value& value, T& into, const std::string& path, Others others = Others::refused) {
  const Setting whole{.help = T::component.help};
  if (value.as<Value::Map>() == nullptr) refuse(path, "it is not a table of keys and values", whole);
  Reading reading{value, path};
  into.visit([&](const char* key, auto& field, const Setting& setting) { read_key(reading, key, field, setting); });
  if (others == Others::refused) refuse_unknown(reading, whole);
}

template <class T>
void read_field(const Value& value, T& into, const std::string& path, const Setting& setting) {
  if (setting.nullable && value.is_null()) {
    into = T{};
    return;
  }
  if constexpr (IsComponent<T>) {
    read_component(value, into, path);
  } else if constexpr (kIsOptional<T>) {
    into.reset();
    if (!value.is_null()) read_field(value, into.emplace(), path, setting);
  } else if constexpr (kIsList<T>) {
    const auto* const list = value.as<Value::List>();
    if (list == nullptr) refuse(path, "it is not a list", setting);
    if constexpr (kIsVector<T>) {
      into.assign(list->size(), {});
    } else if (list->size() != into.size()) {
      refuse(path, "its length must be " + std::to_string(into.size()), setting);
    }
    for (std::size_t i = 0; i < into.size(); ++i) read_field((*list)[i], into[i], path + "[" + std::to_string(i) + "]", setting);
  } else if constexpr (kIsMap<T>) {
    const auto* const map = value.as<Value::Map>();
    if (map == nullptr) refuse(path, "it is not a table of keys and values", setting);
    into.clear();
    for (const auto& [name, item] : *map) read_field(item, into[name], joined(path, name), setting);
  } else if constexpr (IsChoice<T>) {
    const auto* const name = value.as<std::string>();
    const std::optional<T> chosen = name != nullptr ? choice_of<T>(*name) : std::nullopt;
    if (!chosen) refuse(path, "it is none of the choices", setting);
    into = *chosen;
  } else if constexpr (IsNumber<T>) {
    read_number(value, into, path, setting);
  } else {
    const T* const same = value.as<T>();
    if (same == nullptr) refuse(path, std::is_same_v<T, bool> ? "it is neither true nor false" : "it is not a text", setting);
    into = *same;
  }
}

}  // namespace detail

// Throws SetupError, which names the key, for a value of the wrong type, a missing key, an unknown key. Bounds and rules: require().
template <IsComponent T>
T read_unchecked(const Value& value, const std::string& path = {}, Others others = Others::refused) {
  T component;
  detail::read_component(value, component, path, others);
  return component;
}

// Throws SetupError for a value out of bounds or a broken rule. Returns the component.
template <IsComponent T>
const T& require(const T& component, const std::string& path = {}) {
  detail::require_field(component, path, Setting{.help = T::component.help});
  return component;
}

template <IsComponent T>
T read(const Value& value, const std::string& path = {}, Others others = Others::refused) {
  T component = read_unchecked<T>(value, path, others);
  require(component, path);
  return component;
}

}  // namespace nanet::config
