// SPDX-License-Identifier: Apache-2.0
#include "format/flat.hpp"

#include <algorithm>
#include <limits>

#include "format/program.hpp"

namespace nanet::format {
namespace {

constexpr std::uint64_t kPacketBytesMax = 65535;

// Of the word at `offset`, the bits that `check` says of it, or of its mask.
std::uint64_t seen_from(std::uint32_t offset, std::uint32_t check_offset, std::uint64_t bits) {
  if (offset >= check_offset + 8 || check_offset >= offset + 8) return 0;
  return offset >= check_offset ? bits >> 8 * (offset - check_offset) : bits << 8 * (check_offset - offset);
}

bool contradicts(const FlatCheck& ours, const WordCheck& theirs) {
  const std::uint64_t both = ours.mask & seen_from(ours.offset, theirs.offset, theirs.mask);
  return ((ours.value ^ seen_from(ours.offset, theirs.offset, theirs.value)) & both) != 0;
}

// The check says all of the field, and something that is not within the limit.
bool contradicts(const FlatLimit& limit, bool swaps, const WordCheck& check) {
  const auto of_field = [&](std::uint64_t bits) {
    const std::uint64_t word = seen_from(limit.field.offset, check.offset, bits);
    return (swaps ? __builtin_bswap64(word) : word) >> limit.field.shift & limit.field.mask;
  };
  return of_field(check.mask) == limit.field.mask && of_field(check.value) - limit.least > limit.span;
}

// Something of the body does not fit: then there is no short way.
class FlatMaker {
 public:
  FlatMaker(const Program& program, std::size_t body) : program_(program), body_(program.bodies[body]), choice_(body) {}

  std::optional<Flat> made() {
    fits_ = !body_.moves();
    flat_.variant = body_.index;
    set_lengths();
    set_gate(body_.early);
    set_gate(body_.late);
    set_roles();
    if (program_.facts.has_unit) set_unit();
    flat_.swaps = swaps_.value_or(false);
    set_choice();
    set_flags();
    return fits_ ? std::optional(flat_) : std::nullopt;
  }

 private:
  FlatField field(std::uint8_t index) {
    const Load& load = body_.loads[index];
    if (load.fixed != 0 || swaps_.value_or(load.swap) != load.swap) fits_ = false;
    swaps_ = load.swap;
    return {.offset = load.offset, .shift = load.shift, .mask = load.mask};
  }

  template <class List, class T>
  void add(List& list, const T& one) {
    fits_ = list.add(one) && fits_;
  }

  std::uint64_t length(const Expression& expression) {
    if (!expression.is_constant() || static_cast<std::uint64_t>(expression.constant) > kPacketBytesMax) fits_ = false;
    return fits_ ? static_cast<std::uint64_t>(expression.constant) : 0;
  }

  void set_lengths() {
    const std::uint64_t header_bytes = length(body_.header_bytes);
    const std::uint64_t payload_bytes = body_.payload_bytes ? length(*body_.payload_bytes) : 0;
    std::uint64_t least = std::max<std::uint64_t>({body_.min_bytes, program_.common_bytes, header_bytes + payload_bytes, 8});
    std::uint64_t most = program_.packet_bytes_most;
    if (body_.packet_bytes) {
      const std::uint64_t whole = length(*body_.packet_bytes);
      if (whole < least || whole > most) fits_ = false;
      least = most = whole;
    }
    if (least > most) fits_ = false;
    flat_.header_bytes = static_cast<std::uint32_t>(header_bytes);
    flat_.payload_to_end = !body_.payload_bytes.has_value();
    flat_.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
    flat_.least_bytes = static_cast<std::uint32_t>(least);
    flat_.span_bytes = static_cast<std::uint32_t>(most - least);
    flat_.length_mask = program_.length_mask;
  }

  // Two compares of the same word are one.
  void add_check(const WordCheck& check) {
    if (check.mask == 0) return;
    for (std::size_t i = 0; i < flat_.checks.count; ++i) {
      FlatCheck& one = flat_.checks.all[i];
      if (one.offset != check.offset || contradicts(one, check)) continue;
      one.mask |= check.mask;
      one.value |= check.value;
      return;
    }
    add(flat_.checks, FlatCheck{.offset = check.offset, .mask = check.mask, .value = check.value});
  }

  void set_gate(const Gate& gate) {
    for (const WordCheck& check : gate.checks) add_check(check);
    for (const Limit& limit : gate.limits) {
      add(flat_.limits, FlatLimit{.field = field(limit.field), .least = limit.least, .span = limit.most - limit.least});
    }
  }

  void set_key(const Key& key, FlatKey& to) {
    for (std::size_t i = 0; i < key.count; ++i) add(to, FlatPart{.field = field(key.parts[i].field), .shift = key.parts[i].shift});
  }

  // constant + factor * field + ... What could be negative or need more than 63 bits gets bounds within which it does not.
  void set_sum(const std::optional<Expression>& expression, FlatSum& to) {
    if (!expression) return;
    const std::int64_t constant = expression->constant;
    if (expression->is_constant() && constant != 0)
      add(to, FlatLine{.field = {}, .constant = static_cast<std::uint64_t>(constant)});
    for (std::size_t i = 0; i < expression->term_count; ++i) {
      const Term& term = expression->terms[i];
      if (term.second != kNoField || (expression->checked && term.factor <= 0)) {
        fits_ = false;
        return;
      }
      add(to, FlatLine{.field = field(term.first),
                       .factor = static_cast<std::uint64_t>(term.factor),
                       .constant = i == 0 ? static_cast<std::uint64_t>(constant) : 0});
      if (expression->checked) add(flat_.limits, bounds(term, i == 0 ? constant : 0));
    }
  }

  // Of a term with a factor above 0: with these it is not negative and has at most 60 bits, so up to four of them have 62.
  FlatLimit bounds(const Term& term, std::int64_t constant) {
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    if (constant < -kMost || constant > kMost) fits_ = false;
    if (!fits_) return {};
    const std::int64_t least = constant < 0 ? (term.factor - 1 - constant) / term.factor : 0;
    const std::int64_t most = (kMost - std::max<std::int64_t>(constant, 0)) / term.factor;
    if (most < least) fits_ = false;
    return {.field = field(term.first), .least = static_cast<std::uint64_t>(least), .span = static_cast<std::uint64_t>(most - least)};
  }

  void set_roles() {
    set_key(body_.stream, flat_.stream);
    if (body_.sequence != kNoField) flat_.sequence = field(body_.sequence);
    if (body_.events) flat_.event_count = field(body_.events->count_field);
    flat_.has_next_event = body_.next_event != kNoField;
    if (flat_.has_next_event) flat_.next_event = field(body_.next_event);
    set_sum(body_.time, flat_.time);
  }

  void set_unit() {
    flat_.has_unit = true;
    flat_.has_packet_index = program_.facts.has_packet_index;
    flat_.unit_bytes_most = program_.facts.unit_bytes_most;
    set_key(body_.unit, flat_.unit);
    set_sum(body_.place, flat_.place);
    set_sum(body_.unit_bytes, flat_.unit_bytes);
    set_sum(body_.unit_packets, flat_.unit_packets);
  }

  // No packet that passes checks and limits passes this.
  bool never(const WordCheck& check) const {
    const auto& checks = flat_.checks;
    const auto& limits = flat_.limits;
    return std::any_of(checks.all.begin(), checks.all.begin() + checks.count,
                       [&](const auto& one) { return contradicts(one, check); }) ||
           std::any_of(limits.all.begin(), limits.all.begin() + limits.count,
                       [&](const auto& one) { return contradicts(one, flat_.swaps, check); });
  }

  // The short way is tried before it is known which body a packet is of. So it has to see that the packet is of this one: by the fields that choose
  // it, and because none that comes before could be chosen where those and the checks hold.
  void set_choice() {
    const auto all_of = [&](const Choice& choice, const auto& visit) {
      visit(choice.first);
      for (const WordCheck& check : choice.more) visit(check);
    };
    all_of(program_.choices[choice_], [&](const WordCheck& check) { add_check(check); });
    for (std::size_t i = 0; i < choice_; ++i) {
      bool is_apart = false;
      all_of(program_.choices[i], [&](const WordCheck& check) { is_apart = is_apart || never(check); });
      fits_ = fits_ && is_apart;
    }
    if (program_.before_bytes == 0) return;  // nor does it begin with the optional header
    fits_ = fits_ &&
            std::any_of(program_.before.begin(), program_.before.end(), [&](const WordCheck& check) { return never(check); });
  }

  void set_flags() {
    for (const Flag& flag : body_.flags) {
      if (!flag.conditions.empty() || flag.checks.size() != 1) {
        fits_ = false;
        continue;
      }
      const WordCheck& check = flag.checks.front();
      if (never(check)) continue;
      add(flat_.flags, FlatCheck{.offset = check.offset, .flag = flag.flag, .mask = check.mask, .value = check.value});
    }
  }

  const Program& program_;
  const Body& body_;
  const std::size_t choice_;
  Flat flat_;
  std::optional<bool> swaps_;
  bool fits_ = true;
};

}  // namespace

void set_flat(Program& program) {
  for (std::size_t i = 0; i < program.bodies.size(); ++i) program.bodies[i].flat = FlatMaker(program, i).made();
}

}  // namespace nanet::format
