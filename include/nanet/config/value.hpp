// SPDX-License-Identifier: Apache-2.0
// Value: a piece of a configuration as it was written: null, a truth value, a number, a text, a list or a map. A YAML file's content reaches the
// components in this form, whoever read the file.
//
// Control path: values are copied and allocate. Thread rules: none of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace nanet::config {

class Value {
 public:
  using List = std::vector<Value>;
  using Map = std::vector<std::pair<std::string, Value>>;  // in the order of the file; no key twice

  Value() = default;  // null
  Value(bool value) : content_(value) {}
  Value(std::int64_t value) : content_(value) {}
  Value(double value) : content_(value) {}
  Value(std::string value) : content_(std::move(value)) {}
  Value(List value) : content_(std::move(value)) {}
  Value(Map value) : content_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(content_); }

  // The content, if it is of type T (bool, std::int64_t, double, std::string, List or Map); else null.
  template <class T>
  const T* as() const {
    return std::get_if<T>(&content_);
  }

  // The value that a map has for `key`. Null if it has none, or is not a map.
  const Value* find(std::string_view key) const {
    const Map* const map = as<Map>();
    if (map == nullptr) return nullptr;
    for (const auto& [name, value] : *map) {
      if (name == key) return &value;
    }
    return nullptr;
  }

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Map> content_;
};

}  // namespace nanet::config
