// SPDX-License-Identifier: Apache-2.0
// Layout: the fields of a header while a declaration is compiled: where each lies, what it must be, and whether they agree with each other.
//
// Control path: allocates; throws Broken, which compile() catches. Thread rules: none of its own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/expression.hpp"
#include "format/program.hpp"
#include "nanet/config/setting.hpp"
#include "nanet/format/declaration.hpp"

namespace nanet::format {

struct Broken {
  config::Problem problem;
};

[[noreturn]] void refuse(std::string key, std::string problem, std::string why, std::string suggestion);

// A text of a declaration, and the key that it stands under.
struct Said {
  const std::string& text;
  std::string key;
};

std::uint64_t constant_of(const Said& said);

struct LaidField {
  std::string name;
  std::string key;  // of its declaration: header.3
  Site site;
  std::optional<std::uint32_t> offset;  // none: it is tagged, or its place is an expression
  Polynomial at;
  bool is_tagged = false;
  std::uint64_t item = 0;
  std::optional<std::uint64_t> otherwise;
  std::optional<std::uint64_t> equals;
  std::uint64_t least = 0;
  std::uint64_t most = 0;

  std::uint32_t end() const { return *offset + site.bytes; }
};

class Layout {
 public:
  // items: of tagged fields; checksum: that lies among the fields. Both outlive the layout. Null: there is none.
  explicit Layout(ByteOrder order, const ItemsConfig* items = nullptr, const ChecksumConfig* checksum = nullptr)
      : order_(order), items_(items), checksum_(checksum) {}

  // Fields of a list under `key`. Throws Broken for what contradicts itself or another field.
  void add(const std::vector<FieldConfig>& fields, const std::string& key);

  const std::vector<LaidField>& fields() const { return fields_; }
  const LaidField& field(std::size_t index) const { return fields_[index]; }
  // Of a field that has a meaning. Throws Broken if there is none, or if it is the checksum.
  std::uint8_t index_of(const Said& name) const;

  // Where the last field with a fixed place ends; 0: there is none.
  std::uint32_t fixed_bytes() const;

  // Compares for fields with fixed places that must equal something, together in words; those that end behind `from` and at most at `to`.
  std::vector<WordCheck> folded(std::uint32_t from, std::uint32_t to) const;

  // Bounds that folded() does not have: of fields that end behind `from` and at most at `to`, or of those without a fixed place.
  std::vector<Limit> limits(std::uint32_t from, std::uint32_t to) const;
  std::vector<Limit> limits_of_moving() const;

  // With the bounds of its fields. key: for messages.
  Expression compile(const Polynomial& polynomial, const std::string& key) const;
  Expression expression(const Said& said) const;
  // The largest value that an expression of this header can have.
  double most_of(const Polynomial& polynomial) const;

 private:
  LaidField laid(const FieldConfig& field, const std::string& key) const;
  Site site_of(const FieldConfig& field, const std::string& key) const;
  void place(const FieldConfig& field, LaidField& made) const;
  void check_overlap(const LaidField& made) const;
  void check_checksum(const LaidField& made) const;
  bool is_on_checksum(const LaidField& field) const;

  ByteOrder order_;
  const ItemsConfig* items_;
  const ChecksumConfig* checksum_;
  std::vector<LaidField> fields_;
};

// Bits of memory, by byte, that a field with a fixed place has; and those that are set if its value is `value`.
std::map<std::uint32_t, std::uint8_t> memory_of(const LaidField& field, std::uint64_t value);

// The same as whole-word compares, no word reaching beyond `room` bytes, which are at least 8.
std::vector<WordCheck> fold(const std::map<std::uint32_t, std::uint8_t>& mask, const std::map<std::uint32_t, std::uint8_t>& value,
                            std::uint32_t room);

}  // namespace nanet::format
