// SPDX-License-Identifier: Apache-2.0
// Program: what a declaration is compiled to. All of it is found at set-up; a packet is loads, compares and sums over these tables.
//
// Places are from the start of the header, after the optional header in front. A load takes eight bytes which lie in the part of the packet
// whose length has been compared, whatever the width of the field, so that there is one way to load.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/flat.hpp"
#include "nanet/format/decoder.hpp"
#include "nanet/wire/checksum.hpp"
#include "nanet/wire/little_endian.hpp"

namespace nanet::format {

static_assert(std::endian::native == std::endian::little, "loads and folded compares are made for little-endian machines");

inline constexpr std::size_t kFieldsMax = 96;  // of a body
inline constexpr std::size_t kItemsMax = 64;   // of a list whose order is remembered
inline constexpr std::size_t kTermsMax = 4;    // of an expression
inline constexpr std::uint8_t kNoField = 0xFF;

inline std::uint64_t load_word(const std::byte* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// A packet of less than a word can be read as a word.
struct Readable {
  const std::byte* data;
  std::array<std::byte, 8> copy{};

  explicit Readable(std::span<const std::byte> packet) : data(packet.data()) {
    if (packet.size() >= copy.size()) return;
    if (!packet.empty()) std::memcpy(copy.data(), packet.data(), packet.size());
    data = copy.data();
  }
  Readable(const Readable&) = delete;
  Readable& operator=(const Readable&) = delete;
};

struct Load {
  std::uint32_t offset = 0;
  std::uint8_t shift = 0;
  bool swap = false;
  std::uint64_t mask = 0;
  std::uint64_t fixed = 0;  // of a field that is not in the packet

  std::uint64_t word(const std::byte* header) const {
    const std::uint64_t loaded = load_word(header + offset);
    return swap ? __builtin_bswap64(loaded) : loaded;
  }
  std::uint64_t of(std::uint64_t word) const { return (word >> shift & mask) | fixed; }
  std::uint64_t from(const std::byte* header) const { return of(word(header)); }
};

// Where a field's bits are, before it is known how long the packet is.
struct Site {
  std::uint8_t bytes = 1;  // of the word
  std::uint8_t low = 0;    // its lowest bit
  bool big = false;
  std::uint64_t mask = 0;  // after the shift

  // room: bytes that may be read, at least 8 and at least offset + bytes.
  Load at(std::uint32_t offset, std::size_t room) const {
    const auto window = static_cast<std::uint32_t>(offset + 8 <= room ? offset : room - 8);
    const std::uint32_t skipped = offset - window;
    const std::uint32_t shift = big ? 64 - 8 * (skipped + bytes) + low : 8 * skipped + low;
    return {.offset = window, .shift = static_cast<std::uint8_t>(shift), .swap = big, .mask = mask};
  }
};

struct Term {
  std::int64_t factor = 0;
  std::uint8_t first = kNoField;
  std::uint8_t second = kNoField;  // none: the term is factor * first
};

struct Expression {
  std::int64_t constant = 0;
  std::array<Term, kTermsMax> terms{};
  std::uint8_t term_count = 0;
  bool checked = false;  // it can be negative, or have more than 63 bits

  bool is_constant() const { return term_count == 0; }
};

struct WordCheck {
  std::uint32_t offset;
  std::uint64_t mask;
  std::uint64_t value;
};

struct Limit {
  std::uint8_t field;
  bool is_constant;  // it must equal something
  std::uint64_t least;
  std::uint64_t most;
};

// What is compared before more of a packet is looked at: folded constants, then bounds.
struct Gate {
  std::vector<WordCheck> checks;
  std::vector<Limit> limits;
};

struct Moving {  // a field whose place an expression says
  std::uint8_t field;
  Site site;
  Expression at;
};

struct TaggedField {
  std::uint8_t field;
  Site site;  // in the item
  bool is_needed;
  std::uint64_t id;
  std::uint64_t otherwise;
};

struct ItemList {
  std::uint32_t at = 0;
  std::uint32_t item_bytes = 8;
  std::uint8_t id_shift = 0;
  Site word;  // of an item
  std::uint64_t id_mask = 0;
  std::uint64_t immediate = 0;  // the bit
  std::uint64_t head_mask = 0;  // of what names an item: everything but its value
};

struct Key {
  struct Part {
    std::uint8_t field;
    std::uint8_t shift;
  };
  std::array<Part, 4> parts{};
  std::uint8_t count = 0;
};

struct Condition {
  std::uint8_t field;
  std::uint64_t value;
};

// Set where all of these hold; what can be folded is.
struct Flag {
  std::uint8_t flag;
  std::vector<WordCheck> checks;
  std::vector<Condition> conditions;
};

// Eight bytes that begin with a number, little-endian.
struct Direct {
  std::uint32_t offset = 0;
  std::uint64_t mask = 0;

  std::uint64_t from(const std::byte* event) const { return load_word(event + offset) & mask; }
};

struct EventsProgram {
  std::uint8_t count_field = kNoField;
  std::uint64_t count_most = 0;
  std::uint32_t header_bytes = 0;
  std::uint32_t stride_bytes = 0;  // 0: as long as the hits
  Gate gate;                       // of an event's header
  std::array<Load, kFieldsMax> loads{};
  Direct direct_timestamp;  // with is_direct
  Direct direct_fine_time;
  Direct direct_hit_count;
  Direct direct_number;
  Direct direct_bounded;
  std::uint8_t timestamp = kNoField;
  std::uint8_t fine_time = kNoField;
  std::uint8_t number = kNoField;
  std::uint8_t hit_count = kNoField;
  std::uint32_t hits_at = 0;
  std::uint32_t hit_bits = 16;
  bool hits_msb_first = false;
  bool hits_in_place = false;  // 16 bits, in the host's order: given as they lie if their address is even
  Expression plus;
  bool is_direct = false;  // timestamp, fine time, hit count and what is bounded are eight bytes of their own under a mask: no shift, no swap
  bool is_bytes = false;  // with is_direct: what is bounded is a byte without a least
  std::uint32_t byte_most = 0;
  bool is_whole = false;     // with is_direct: timestamp has 32 bits, fine time and hit count 8
  bool is_one_word = false;  // timestamp, fine time and hit count are found in the same eight bytes

  // hits: the value of hit_count.
  std::uint32_t event_bytes(std::uint64_t hits) const {
    return stride_bytes != 0 ? stride_bytes : hits_at + static_cast<std::uint32_t>((hits * hit_bits + 7) / 8);
  }
};

struct NamedField {
  std::string name;
  std::uint64_t least;
  std::uint64_t most;
};

struct Body {
  std::uint8_t index = 0;  // of the variant
  Gate early;              // on what common_bytes reach
  std::uint32_t min_bytes = 0;
  Gate late;
  std::array<Load, kFieldsMax> loads{};
  std::vector<TaggedField> tagged;
  std::vector<Moving> moving;  // each after those that its place depends on
  Expression item_count;
  bool has_items = false;

  Expression header_bytes;
  std::optional<Expression> payload_bytes;
  std::optional<Expression> packet_bytes;
  std::optional<Expression> place;
  std::optional<Expression> unit_bytes;
  std::optional<Expression> unit_packets;
  std::uint8_t next_event = kNoField;
  std::uint8_t sequence = kNoField;
  Key stream;
  Key unit;
  std::optional<Expression> time;
  std::vector<Flag> flags;
  std::optional<EventsProgram> events;
  std::optional<SamplesConfig> samples;
  std::vector<NamedField> fields;  // by index
  std::optional<Flat> flat;        // the short way through its header, if it has one

  bool moves() const { return has_items || !moving.empty(); }
};

// A variant is chosen by a compare of a word, and of more words where its fields lie far from each other.
struct Choice {
  std::size_t body = 0;
  WordCheck first{};
  std::vector<WordCheck> more;
};

struct Program {
  Facts facts;
  std::uint32_t packet_bytes_most = 65507;
  std::uint32_t length_mask = 0;  // bits of a length that must be 0
  std::uint32_t before_bytes = 0;
  std::vector<WordCheck> before;
  std::uint32_t common_bytes = 0;  // that every packet has: the fields of the common header
  ItemList items;
  std::vector<Choice> choices;  // one for each body
  std::vector<Body> bodies;
  bool has_checksum = false;
  bool checksum_is_big = false;
  std::uint32_t checksum_at = 0;
};

// False: negative, or more than 63 bits.
[[gnu::noinline]] inline bool evaluate_terms(const Expression& expression, const Load* loads, const std::byte* header,
                                             std::uint64_t& to) {
  if (!expression.checked) {
    auto sum = static_cast<std::uint64_t>(expression.constant);
    for (std::size_t i = 0; i < expression.term_count; ++i) {
      const Term& term = expression.terms[i];
      std::uint64_t product = static_cast<std::uint64_t>(term.factor) * loads[term.first].from(header);
      if (term.second != kNoField) product *= loads[term.second].from(header);
      sum += product;
    }
    to = sum;
    return true;
  }
  std::int64_t sum = expression.constant;
  for (std::size_t i = 0; i < expression.term_count; ++i) {
    const Term& term = expression.terms[i];
    std::int64_t product = term.factor;
    if (__builtin_mul_overflow(product, loads[term.first].from(header), &product)) return false;
    if (term.second != kNoField && __builtin_mul_overflow(product, loads[term.second].from(header), &product)) return false;
    if (__builtin_add_overflow(sum, product, &sum)) return false;
  }
  to = static_cast<std::uint64_t>(sum);
  return sum >= 0;
}

inline bool evaluate(const Expression& expression, const Load* loads, const std::byte* header, std::uint64_t& to) {
  if (expression.term_count != 0) return evaluate_terms(expression, loads, header, to);
  to = static_cast<std::uint64_t>(expression.constant);  // compile() has refused what is always negative
  return true;
}

inline bool holds(const std::vector<WordCheck>& checks, const std::byte* header) {
  for (const WordCheck& check : checks) {
    if (((load_word(header + check.offset) ^ check.value) & check.mask) != 0) return false;
  }
  return true;
}

inline Refusal pass(const Gate& gate, const Load* loads, const std::byte* header) {
  if (!holds(gate.checks, header)) return Refusal::not_accepted;
  for (const Limit& limit : gate.limits) {
    const std::uint64_t value = loads[limit.field].from(header);
    if (value < limit.least || value > limit.most) return limit.is_constant ? Refusal::not_accepted : Refusal::out_of_range;
  }
  return Refusal::none;
}

// The body of a packet that has the program's common_bytes. Null: it fits none.
inline const Body* body_of(const Program& program, const std::byte* header) {
  for (const Choice& choice : program.choices) {
    if (((load_word(header + choice.first.offset) ^ choice.first.value) & choice.first.mask) != 0) continue;
    if (choice.more.empty() || holds(choice.more, header)) return &program.bodies[choice.body];
  }
  return nullptr;
}

// Length of the optional header in front, if this packet has it.
inline std::size_t before_bytes(const Program& program, std::span<const std::byte> packet) {
  if (program.before_bytes == 0 || packet.size() < program.before_bytes) return 0;
  return holds(program.before, Readable(packet).data) ? program.before_bytes : 0;
}

// The first thing that keeps a declaration from being compiled, or the program.
struct Compiled {
  std::optional<config::Problem> problem;
  Program program;
};
Compiled compile(const Declaration& declaration);

// Whether the sum over the whole packet is what it says. Modulo 65535, to swap a word's bytes is to multiply it by 256, so sums over big-endian
// words are those over little-endian ones with their bytes swapped: as four bytes in memory, the little-endian sums with their halves exchanged.
inline bool checksum_is_good(const Program& program, std::span<const std::byte> packet) {
  const auto said = wire::load_le<std::uint32_t>(packet.data() + program.checksum_at);
  return wire::fletcher32_around(packet, program.checksum_at) == (program.checksum_is_big ? std::rotl(said, 16) : said);
}

// Whether the events of an accepted header lie in the payload and are as they must be.
Refusal check_events(const EventsProgram& events, std::span<const std::byte> payload, std::uint64_t count);

// The same of events whose only bound is the most that a byte says: the highest of all, four events a turn.
inline Refusal check_bytes(const EventsProgram& events, std::span<const std::byte> payload, std::uint64_t count) {
  if (count > events.count_most) return Refusal::event_refused;
  const std::size_t stride_bytes = events.stride_bytes;
  if (count * stride_bytes > payload.size()) return Refusal::events_cut;
  const std::byte* at = payload.data() + events.direct_bounded.offset;
  unsigned even = 0;
  unsigned odd = 0;
  for (const std::byte* const last = at + (count & ~std::uint64_t{3}) * stride_bytes; at != last; at += 4 * stride_bytes) {
    even = std::max(std::max(even, static_cast<unsigned>(at[0])), static_cast<unsigned>(at[2 * stride_bytes]));
    odd = std::max(std::max(odd, static_cast<unsigned>(at[stride_bytes])), static_cast<unsigned>(at[3 * stride_bytes]));
  }
  for (count &= 3; count > 0; --count, at += stride_bytes) even = std::max(even, static_cast<unsigned>(*at));
  return std::max(even, odd) <= events.byte_most ? Refusal::none : Refusal::event_refused;
}

// Of the first event; 0 if there is none, or the format does not number them.
inline std::uint16_t first_number(const EventsProgram& events, std::span<const std::byte> payload, std::uint64_t count) {
  if (count == 0 || events.number == kNoField) return 0;
  if (events.is_direct) return static_cast<std::uint16_t>(events.direct_number.from(payload.data()));
  return static_cast<std::uint16_t>(events.loads[events.number].from(Readable(payload).data));
}

}  // namespace nanet::format
