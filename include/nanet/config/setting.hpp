// SPDX-License-Identifier: Apache-2.0
// How a component declares what can be configured: once, in its struct. From this come the models that check a file, the JSON schema, the
// reference page and the code that reads the struct (read.hpp, describe.hpp).
//
//   struct RecordConfig {
//     static constexpr config::Component component{"Record", "Writes what a link receives to a pcap file."};
//
//     std::string file;
//     std::uint64_t bytes_max = 1u << 30;
//
//     template <class Visit>
//     void visit(Visit&& v) {
//       v("file", file, {.help = "Path of the pcap file", .length_least = 1, .required = true});
//       v("bytes_max", bytes_max, {.help = "The file stops growing at this size", .unit = "bytes", .least = 4096, .too_big = "a full disk"});
//     }
//
//     std::optional<config::Problem> check() const;  // the rules between its keys, if there are any
//   };
//
// A member is a bool, a number, a text, an enum with choices(), another component, or an optional, a vector, an array or a map by name of one of
// these. Its default is the key's. A member that is not visited is for programs only.
//
// Thread rules: none of its own.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "nanet/setup_error.hpp"

namespace nanet::config {

// Name and purpose of a component. The name is that of its model in Python and in the schema.
struct Component {
  std::string_view name;
  std::string_view help;
};

// What a person has to know about a key. For a list or a map, unit and bounds are those of its items.
struct Setting {
  std::string_view help;
  std::string_view unit = {};
  std::optional<double> least = {};  // allowed, as is most
  std::optional<double> most = {};
  std::optional<double> above = {};  // not allowed, nor is below
  std::optional<double> below = {};
  std::optional<double> multiple_of = {};
  std::initializer_list<int> one_of = {};  // nothing else is allowed
  std::string_view too_small = {};         // effect of a value that is allowed and too small
  std::string_view too_big = {};
  std::optional<std::uint32_t> length_least = {};  // in characters for a text, in items for a list
  std::optional<std::uint32_t> length_most = {};
  std::string_view pattern = {};    // regular expression that a text matches
  std::string_view form = {};       // for a text or number that Python checks more closely: a type in python/nanet/config/forms.py
  std::string_view list_form = {};  // the same for a list as a whole, whose items then may be written in another way
  bool required = false;            // there is no default
  bool nullable = false;            // null stands for T{}, such as 0 or an empty text, which is then the default
  bool unset = false;               // and null is the default, whatever the member has
};

// A broken rule between keys; key: the one to look at first, further in by its path, such as inputs.2.name.
struct Problem {
  std::string key;
  std::string problem;
  std::string why;
  std::string suggestion;
};

// Throws it as a SetupError if there is one.
inline void refuse_broken(const std::optional<Problem>& broken) {
  if (broken) throw SetupError(broken->problem, broken->why, broken->suggestion);
}

// A rule between keys, and what to say where it is broken.
struct Rule {
  bool broken;
  Problem problem;
};

inline std::optional<Problem> first_broken(std::initializer_list<Rule> rules) {
  for (const Rule& rule : rules) {
    if (rule.broken) return rule.problem;
  }
  return std::nullopt;
}

// Says that a number is not a power of two, with the two nearest that are; why: why it has to be one.
inline std::optional<Problem> power_of_two(std::string_view key, std::uint64_t value, std::string_view why) {
  if ((value & (value - 1)) == 0) return std::nullopt;
  const std::uint64_t lower = std::bit_floor(value);
  return Problem{std::string(key), std::string(key) + " " + std::to_string(value) + " is not a power of two", std::string(why),
                 "choose " + std::to_string(lower) + " or " + std::to_string(2 * lower)};
}

// How many letters have to be changed, inserted or removed to turn one into the other.
inline std::size_t letters_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

// A suggestion: the known name that `name` was probably meant to be, and all of them.
inline std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  std::string all;
  std::string_view best;
  // Two swapped letters count as two. A greater distance is no typing error.
  std::size_t least = std::min(std::max<std::size_t>(name.size() / 3, 2) + 1, std::max<std::size_t>(name.size(), 1));
  for (const std::string& one : known) {
    all += (all.empty() ? "" : ", ") + one;
    if (const std::size_t letters = letters_between(name, one); letters < least) {
      least = letters;
      best = one;
    }
  }
  return (best.empty() ? "known: " : "did you mean '" + std::string(best) + "'? known: ") + all;
}

// One value of an enum and its name in a file. The enum's table is choices(Enum), found beside the enum.
template <class Enum>
struct Choice {
  std::string_view name;
  Enum value;
};
template <class Enum>
Choice(std::string_view, Enum) -> Choice<Enum>;  // clang deduces for an aggregate only from version 17 on

struct AnyVisitor {
  template <class T>
  void operator()(const char*, T&, const Setting&) const {}
};

template <class T>
concept IsComponent = requires(T& one) {
  T::component;
  one.visit(AnyVisitor{});
};

template <class T>
concept HasRules = requires(const T& one) {
  { one.check() } -> std::same_as<std::optional<Problem>>;
};

template <class T>
concept IsChoice = std::is_enum_v<T>;

template <class T>
concept IsText = std::is_same_v<T, std::string>;

template <class T>
concept IsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
inline constexpr std::size_t kArraySize = 0;  // 0: not an array
template <class T, std::size_t N>
inline constexpr std::size_t kArraySize<std::array<T, N>> = N;

template <class T>
inline constexpr bool kIsList = kIsVector<T> || kArraySize<T> != 0;

template <class T>
inline constexpr bool kIsMap = false;
template <class T>
inline constexpr bool kIsMap<std::map<std::string, T>> = true;

// The name of an enum's value, and the value of a name: none if there is no such name.
template <IsChoice Enum>
constexpr std::string_view name_of(Enum value) {
  for (const auto& one : choices(Enum{})) {
    if (one.value == value) return one.name;
  }
  return {};
}

template <IsChoice Enum>
constexpr std::optional<Enum> choice_of(std::string_view name) {
  for (const auto& one : choices(Enum{})) {
    if (one.name == name) return one.value;
  }
  return std::nullopt;
}

}  // namespace nanet::config
