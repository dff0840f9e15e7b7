// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>

namespace nanet::bindings {

config::Value value_of(nb::handle object) {
  using config::Value;
  if (object.is_none()) return {};
  if (nb::isinstance<nb::bool_>(object)) return Value(nb::cast<bool>(object));
  if (nb::isinstance<nb::int_>(object)) {
    std::int64_t number = 0;
    if (!nb::try_cast(object, number)) {
      throw SetupError("the number " + std::string(nb::repr(object).c_str()) + " cannot be used", "it has more than 64 bits",
                       "write a smaller one, or a text");
    }
    return Value(number);
  }
  if (nb::isinstance<nb::float_>(object)) return Value(nb::cast<double>(object));
  if (nb::isinstance<nb::str>(object)) return Value(nb::cast<std::string>(object));
  if (nb::isinstance<nb::list>(object)) {
    Value::List list;
    for (const nb::handle one : nb::cast<nb::list>(object)) list.push_back(value_of(one));
    return Value(std::move(list));
  }
  if (nb::isinstance<nb::dict>(object)) {
    Value::Map map;
    for (const auto& [key, value] : nb::cast<nb::dict>(object)) map.emplace_back(nb::cast<std::string>(key), value_of(value));
    return Value(std::move(map));
  }
  throw SetupError(std::string("cannot use ") + nb::repr(object).c_str(), "it is no plain value",
                   "write a text, a number, a list or a map");
}

nb::object python_of(const config::Value& value) {
  using config::Value;
  if (const auto* const truth = value.as<bool>()) return nb::bool_(*truth);
  if (const auto* const whole = value.as<std::int64_t>()) return nb::int_(*whole);
  if (const auto* const number = value.as<double>()) return nb::float_(*number);
  if (const auto* const text = value.as<std::string>()) return nb::str(text->c_str(), text->size());
  if (const auto* const items = value.as<Value::List>()) {
    nb::list list;
    for (const Value& one : *items) list.append(python_of(one));
    return list;
  }
  if (const auto* const map = value.as<Value::Map>()) {
    nb::dict dict;
    for (const auto& [key, one] : *map) dict[nb::str(key.c_str(), key.size())] = python_of(one);
    return dict;
  }
  return nb::none();
}

}  // namespace nanet::bindings
