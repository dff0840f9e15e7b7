// SPDX-License-Identifier: Apache-2.0
#include "format/expression.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace nanet::format {
namespace {

constexpr std::size_t kTextMax = 200;
constexpr int kDepthMax = 16;

using Terms = std::map<std::vector<std::string>, std::int64_t>;  // by the fields of a product; none: the constant

struct Failure {
  std::string why;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::int64_t checked(bool overflow, std::int64_t value) {
  if (overflow) throw Failure{"its constants need more than 63 bits"};
  return value;
}

std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t value = 0;
  const bool overflow = __builtin_mul_overflow(a, b, &value);
  return checked(overflow, value);
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t value = 0;
  const bool overflow = __builtin_add_overflow(a, b, &value);
  return checked(overflow, value);
}

Terms added(Terms a, const Terms& b, std::int64_t sign) {
  for (const auto& [fields, factor] : b) a[fields] = sum(a[fields], product(factor, sign));
  return a;
}

Terms multiplied(const Terms& a, const Terms& b) {
  Terms made;
  for (const auto& [first, factor] : a) {
    for (const auto& [second, other] : b) {
      std::vector<std::string> fields = first;
      fields.insert(fields.end(), second.begin(), second.end());
      if (fields.size() > 2) throw Failure{"it multiplies more than two fields"};
      std::sort(fields.begin(), fields.end());
      made[fields] = sum(made[fields], product(factor, other));
    }
  }
  return made;
}

// sum := product {(+|-) product}; product := factor {* factor}; factor := number | field | -factor | (sum)
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Terms whole() {
    Terms terms = read_sum();
    if (next() != '\0') throw Failure{"'" + std::string(text_.substr(at_)) + "' cannot follow there"};
    return terms;
  }

 private:
  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  Terms read_sum() {
    Terms terms = read_product();
    for (char c = next(); c == '+' || c == '-'; c = next()) {
      ++at_;
      terms = added(std::move(terms), read_product(), c == '+' ? 1 : -1);
    }
    return terms;
  }

  Terms read_product() {
    Terms terms = read_factor();
    while (next() == '*') {
      ++at_;
      terms = multiplied(terms, read_factor());
    }
    return terms;
  }

  Terms read_factor() {
    if (++depth_ > kDepthMax) throw Failure{"it is nested too deeply"};
    Terms terms;
    const char c = next();
    if (c == '(' || c == '-') {
      ++at_;
      terms = c == '(' ? read_sum() : added({}, read_factor(), -1);
      if (c == '(' && next() != ')') throw Failure{"a ')' is missing"};
      if (c == '(') ++at_;
    } else if (is_digit(c)) {
      terms[{}] = read_number();
    } else if (is_letter(c)) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
      terms[{std::string(text_.substr(begin, at_ - begin))}] = 1;
    } else {
      throw Failure{c == '\0' ? "a number or a field is missing at its end" : "'" + std::string(1, c) + "' is none of + - * ( )"};
    }
    --depth_;
    return terms;
  }

  std::int64_t read_number() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const auto number = parse_constant(text_.substr(begin, at_ - begin));
    if (!number) throw Failure{"'" + std::string(text_.substr(begin, at_ - begin)) + "' is no number"};
    return checked(*number > 0x7FFF'FFFF'FFFF'FFFFu, static_cast<std::int64_t>(*number));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::uint64_t> parse_constant(std::string_view text) {
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (is_hexadecimal) text.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, is_hexadecimal ? 16 : 10);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::variant<Polynomial, BadExpression> parse_expression(std::string_view text) {
  if (text.size() > kTextMax) return BadExpression{"it is longer than " + std::to_string(kTextMax) + " letters"};
  try {
    Polynomial made;
    for (auto& [fields, factor] : Parser(text).whole()) {
      if (fields.empty()) {
        made.constant = factor;
      } else if (factor != 0) {
        made.terms.push_back({factor, fields});
      }
    }
    return made;
  } catch (const Failure& failure) {
    return BadExpression{failure.why};
  }
}

}  // namespace nanet::format
