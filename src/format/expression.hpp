// SPDX-License-Identifier: Apache-2.0
// Expressions of a declaration: sums of constants and products of up to two fields, read from text and evaluated without interpretation of it.
//
// Thread rules: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nanet::format {

// A text that is no expression, and why.
struct BadExpression {
  std::string why;
};

// factor * fields; the names of at most two fields, in order.
struct NamedTerm {
  std::int64_t factor = 0;
  std::vector<std::string> fields;
};

struct Polynomial {
  std::int64_t constant = 0;
  std::vector<NamedTerm> terms;  // each product of fields once, none with factor 0

  bool is_constant() const { return terms.empty(); }
};

std::variant<Polynomial, BadExpression> parse_expression(std::string_view text);

// A whole number from 0 to 2^64 - 1, decimal or hexadecimal; none: it is something else.
std::optional<std::uint64_t> parse_constant(std::string_view text);

}  // namespace nanet::format
