// SPDX-License-Identifier: Apache-2.0
#include "format/layout.hpp"

#include <algorithm>
#include <utility>

#include "nanet/config/read.hpp"

namespace nanet::format {
namespace {

constexpr std::uint32_t kHeaderBytesMax = 2048;
constexpr double kUncheckedMost = 0x1p62;

using Bytes = std::map<std::uint32_t, std::uint8_t>;

std::uint64_t mask_of(unsigned bits) { return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1; }

// Names that expressions can have: no '-' and no '.'.
bool is_field_name(const std::string& name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), fits);
}

void set_range(const FieldConfig& field, LaidField& made) {
  made.most = std::max(made.site.mask, made.otherwise.value_or(0));
  if (!field.least.empty()) made.least = constant_of({field.least, made.key + ".least"});
  if (!field.below.empty()) {
    const std::uint64_t below = constant_of({field.below, made.key + ".below"});
    if (below <= made.least) {
      refuse(made.key + ".below", "field '" + made.name + "' can have no value", "it must be below " + field.below,
             "choose another bound");
    }
    made.most = std::min(made.most, below - 1);
  }
  if (!field.equals.empty()) {
    made.equals = constant_of({field.equals, made.key + ".equals"});
    if ((*made.equals & ~made.site.mask) != 0 || *made.equals < made.least || *made.equals > made.most) {
      refuse(made.key + ".equals", "field '" + made.name + "' cannot equal " + field.equals,
             "its bits or bounds do not allow that value", "correct bits, type or value");
    }
    made.least = made.most = *made.equals;
  }
  if (made.least > made.most) {
    refuse(made.key + ".least", "field '" + made.name + "' can have no value", "its bits cannot say that much",
           "choose another bound");
  }
}

}  // namespace

void refuse(std::string key, std::string problem, std::string why, std::string suggestion) {
  throw Broken{{std::move(key), std::move(problem), std::move(why), std::move(suggestion)}};
}

std::uint64_t constant_of(const Said& said) {
  if (const auto number = parse_constant(said.text)) return *number;
  refuse(said.key, "'" + said.text + "' is no constant", "here stands a whole number from 0 to 2^64 - 1",
         "write digits, or 0x and hexadecimal digits");
}

Bytes memory_of(const LaidField& field, std::uint64_t value) {
  Bytes bytes;
  const std::uint64_t word = value << field.site.low;
  const std::uint64_t mask = field.site.mask << field.site.low;
  for (std::uint32_t k = 0; k < field.site.bytes; ++k) {
    const unsigned shift = 8 * (field.site.big ? field.site.bytes - 1 - k : k);
    if ((mask >> shift & 0xFF) != 0) bytes[*field.offset + k] = static_cast<std::uint8_t>(word >> shift);
  }
  return bytes;
}

std::vector<WordCheck> fold(const Bytes& mask, const Bytes& value, std::uint32_t room) {
  std::vector<WordCheck> checks;
  for (auto next = mask.begin(); next != mask.end();) {
    WordCheck check{.offset = std::min(next->first, std::max(room, 8u) - 8), .mask = 0, .value = 0};
    for (; next != mask.end() && next->first < check.offset + 8; ++next) {
      const unsigned shift = 8 * (next->first - check.offset);
      check.mask |= std::uint64_t{next->second} << shift;
      check.value |= std::uint64_t{value.at(next->first)} << shift;
    }
    checks.push_back(check);
  }
  return checks;
}

void Layout::add(const std::vector<FieldConfig>& fields, const std::string& key) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    LaidField made = laid(fields[i], key + "." + std::to_string(i));
    check_overlap(made);
    check_checksum(made);
    if (fields_.size() == kFieldsMax) refuse(made.key, "too many fields", "a packet has at most 96", "leave out what no one reads");
    fields_.push_back(std::move(made));
  }
}

LaidField Layout::laid(const FieldConfig& field, const std::string& key) const {
  LaidField made{.name = field.name, .key = key};
  if (!is_field_name(field.name)) {
    refuse(key + ".name", "'" + field.name + "' is no name of a field", "expressions could not have it",
           "use letters, digits and _, a letter first");
  }
  for (const LaidField& other : fields_) {
    if (other.name == field.name)
      refuse(key + ".name", "there are two fields '" + field.name + "'", "an expression could mean either", "rename one");
  }
  if (!field.item.empty() && items_ == nullptr)
    refuse(key + ".item", "there are no items", "the format has no list of them", "add items:");
  made.site = site_of(field, key);
  place(field, made);
  set_range(field, made);
  return made;
}

// Of a tagged field the bits are those of the item's value.
Site Layout::site_of(const FieldConfig& field, const std::string& key) const {
  const bool is_tagged = !field.item.empty();
  const auto bytes = static_cast<unsigned>(is_tagged ? items_->type : field.type);
  const unsigned first = is_tagged ? items_->value_bits[1] : 0;
  const unsigned count = is_tagged ? items_->value_bits[0] - first + 1 : 8 * bytes;
  unsigned high = count - 1;
  unsigned low = 0;
  if (field.bits) {
    high = (*field.bits)[0];
    low = (*field.bits)[1];
    if (high < low || high >= count) {
      refuse(key + ".bits",
             "bits [" + std::to_string(high) + ", " + std::to_string(low) + "] are none of a word of " + std::to_string(count),
             "they are [highest, lowest], counted from 0", "write the higher one first, or a larger type");
    }
  }
  Site site{.bytes = static_cast<std::uint8_t>(bytes),
            .low = static_cast<std::uint8_t>(first + low),
            .big = field.byte_order.value_or(order_) == ByteOrder::big,
            .mask = mask_of(high - low + 1)};
  if (!field.mask.empty()) site.mask &= constant_of({field.mask, key + ".mask"});
  return site;
}

void Layout::place(const FieldConfig& field, LaidField& made) const {
  made.is_tagged = !field.item.empty();
  if (made.is_tagged == !field.at.empty()) {
    refuse(made.key, "field '" + field.name + "' has " + (made.is_tagged ? "two places" : "no place"),
           "it lies at a byte of the header or in a tagged item", made.is_tagged ? "remove at or item" : "add at or item");
  }
  if (made.is_tagged) {
    made.item = constant_of({field.item, made.key + ".item"});
    if (!field.otherwise.empty()) made.otherwise = constant_of({field.otherwise, made.key + ".otherwise"});
    return;
  }
  if (!field.otherwise.empty()) {
    refuse(made.key + ".otherwise", "field '" + field.name + "' is always there", "only an item can be missing", "remove otherwise");
  }
  auto parsed = parse_expression(field.at);
  if (const auto* const bad = std::get_if<BadExpression>(&parsed)) {
    refuse(made.key + ".at", "'" + field.at + "' is no expression", bad->why, "write + - * of fields and constants");
  }
  made.at = std::get<Polynomial>(std::move(parsed));
  if (!made.at.is_constant()) return;
  if (made.at.constant < 0 || made.at.constant > kHeaderBytesMax - 8) {
    refuse(made.key + ".at", "field '" + field.name + "' would be at byte " + std::to_string(made.at.constant),
           "places are from 0 to " + std::to_string(kHeaderBytesMax - 8), "count from the start of the header");
  }
  made.offset = static_cast<std::uint32_t>(made.at.constant);
}

// Two fields may share bits where one has all bits of the other: a word and a part of it. What they must equal has to agree.
void Layout::check_overlap(const LaidField& made) const {
  if (!made.offset) return;
  const Bytes mine = memory_of(made, made.site.mask);
  for (const LaidField& other : fields_) {
    if (!other.offset) continue;
    const Bytes theirs = memory_of(other, other.site.mask);
    bool shares = false;
    bool mine_within = true;
    for (const auto& [byte, bits] : mine) {
      const auto found = theirs.find(byte);
      const unsigned same = found == theirs.end() ? 0u : bits & found->second;
      shares = shares || same != 0;
      mine_within = mine_within && same == bits;
      if (same == 0 || !made.equals || !other.equals) continue;
      if (((memory_of(made, *made.equals)[byte] ^ memory_of(other, *other.equals)[byte]) & same) != 0) {
        refuse(made.key + ".equals", "'" + made.name + "' and '" + other.name + "' contradict each other",
               "they share bits of byte " + std::to_string(byte) + ", which cannot be both", "correct a place or a value");
      }
    }
    bool theirs_within = true;
    for (const auto& [byte, bits] : theirs) theirs_within = theirs_within && mine.contains(byte) && (mine.at(byte) & bits) == bits;
    if (shares && !mine_within && !theirs_within) {
      refuse(made.key + ".at", "'" + made.name + "' and '" + other.name + "' overlap",
             "they share some bits, and neither is a part of the other", "correct at, type or bits of one");
    }
  }
}

// Whether they share bits.
bool Layout::is_on_checksum(const LaidField& field) const {
  if (checksum_ == nullptr || !field.offset) return false;
  const Bytes bits = memory_of(field, field.site.mask);
  const auto first = bits.lower_bound(checksum_->at);
  return first != bits.end() && first->first < checksum_->at + wire::kChecksumBytes;
}

// A field may give the sum, or a part of it, a name; what has to be something else cannot lie there.
void Layout::check_checksum(const LaidField& made) const {
  if (!is_on_checksum(made)) return;
  const std::uint32_t end = checksum_->at + wire::kChecksumBytes;
  const bool is_free = made.least == 0 && made.most == made.site.mask;
  if (is_free && *made.offset >= checksum_->at && made.end() <= end) return;
  refuse("checksum.at", "the checksum and '" + made.name + "' overlap",
         "bytes " + std::to_string(checksum_->at) + " to " + std::to_string(end - 1) + " are a sum, which can be any number",
         "correct checksum.at, or the field's place");
}

std::uint8_t Layout::index_of(const Said& name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name != name.text) {
      names.push_back(fields_[i].name);
      continue;
    }
    if (!is_on_checksum(fields_[i])) return static_cast<std::uint8_t>(i);
    refuse(name.key, "'" + name.text + "' is the checksum", "it says only whether the packet is as it was sent",
           "choose another field, or correct checksum.at");
  }
  refuse(name.key, "there is no field '" + name.text + "'", "the header has none of that name", config::nearest(name.text, names));
}

std::uint32_t Layout::fixed_bytes() const {
  std::uint32_t bytes = 0;
  for (const LaidField& field : fields_) {
    if (field.offset) bytes = std::max(bytes, field.end());
  }
  return bytes;
}

std::vector<WordCheck> Layout::folded(std::uint32_t from, std::uint32_t to) const {
  Bytes mask;
  Bytes value;
  for (const LaidField& field : fields_) {
    if (!field.offset || !field.equals || field.end() <= from || field.end() > to) continue;
    for (const auto& [byte, bits] : memory_of(field, field.site.mask)) mask[byte] |= bits;
    for (const auto& [byte, bits] : memory_of(field, *field.equals)) value[byte] |= bits;
  }
  return fold(mask, value, to);
}

std::vector<Limit> Layout::limits(std::uint32_t from, std::uint32_t to) const {
  std::vector<Limit> made;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const LaidField& field = fields_[i];
    if (!field.offset || field.equals || field.end() <= from || field.end() > to) continue;
    if (field.least != 0 || field.most != field.site.mask) {
      made.push_back({.field = static_cast<std::uint8_t>(i), .is_constant = false, .least = field.least, .most = field.most});
    }
  }
  return made;
}

std::vector<Limit> Layout::limits_of_moving() const {
  std::vector<Limit> made;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const LaidField& field = fields_[i];
    if (field.offset || (field.least == 0 && field.most == field.site.mask)) continue;
    made.push_back(
        {.field = static_cast<std::uint8_t>(i), .is_constant = field.equals.has_value(), .least = field.least, .most = field.most});
  }
  return made;
}

double Layout::most_of(const Polynomial& polynomial) const {
  double most = static_cast<double>(polynomial.constant);
  for (const NamedTerm& term : polynomial.terms) {
    double product = static_cast<double>(term.factor);
    for (const std::string& name : term.fields) {
      const LaidField& one = fields_[index_of({name, ""})];
      product *= static_cast<double>(term.factor > 0 ? one.most : one.least);
    }
    most += product;
  }
  return most;
}

Expression Layout::compile(const Polynomial& polynomial, const std::string& key) const {
  Expression made{.constant = polynomial.constant};
  if (polynomial.terms.size() > kTermsMax)
    refuse(key, "an expression with more than four terms", "a packet's numbers are simple sums", "simplify it");
  double least = static_cast<double>(polynomial.constant);
  double size = std::abs(least);
  for (const NamedTerm& term : polynomial.terms) {
    Term& one = made.terms[made.term_count++];
    one.factor = term.factor;
    one.first = index_of({term.fields[0], key});
    if (term.fields.size() == 2) one.second = index_of({term.fields[1], key});
    double low = static_cast<double>(term.factor);
    double high = std::abs(low);
    for (const std::string& name : term.fields) {
      const LaidField& field = fields_[index_of({name, key})];
      low *= static_cast<double>(term.factor > 0 ? field.least : field.most);
      high *= static_cast<double>(field.most);
    }
    least += low;
    size += high;
  }
  made.checked = least < 0 || size > kUncheckedMost;
  if (most_of(polynomial) < 0)
    refuse(key, "it is always negative", "it can be " + config::text_of(most_of(polynomial)) + " at most", "correct the expression");
  return made;
}

Expression Layout::expression(const Said& said) const {
  const auto parsed = parse_expression(said.text);
  if (const auto* const bad = std::get_if<BadExpression>(&parsed)) {
    refuse(said.key, "'" + said.text + "' is no expression", bad->why, "write + - * of fields and constants");
  }
  return compile(std::get<Polynomial>(parsed), said.key);
}

}  // namespace nanet::format
