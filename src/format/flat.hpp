// SPDX-License-Identifier: Apache-2.0
// Flat: the short way through a header whose fields all lie at fixed places and whose lengths are constants, or to the end of the packet, as those of
// most formats do. What has to be looked at stands side by side in one struct, without lists elsewhere, and all of it is of one byte order, for which
// the code is made.
//
// It says only that a header is accepted. Where it does not, the header is read the long way, which says why; so it may never accept what that refuses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "nanet/format/decoder.hpp"

namespace nanet::format {

struct FlatField {
  std::uint32_t offset = 0;
  std::uint32_t shift = 0;
  std::uint64_t mask = 0;
};

// constant + factor * field.
struct FlatLine {
  FlatField field;
  std::uint64_t factor = 0;
  std::uint64_t constant = 0;
};

struct FlatCheck {
  std::uint32_t offset = 0;
  std::uint8_t flag = 0;  // of Packet, set if the check holds
  std::uint64_t mask = 0;
  std::uint64_t value = 0;
};

struct FlatLimit {
  FlatField field;
  std::uint64_t least = 0;
  std::uint64_t span = 0;  // most - least
};

struct FlatPart {  // of a key
  FlatField field;
  std::uint32_t shift = 0;
};

// Some of a kind. The first kAlways are looked at whether there are so many or not: what is made without a value changes nothing. Of the others
// there are few or none, always as many, so that the processor knows it before it is there.
template <class T, std::size_t kAlways, std::size_t kMost>
struct FlatList {
  std::array<T, kMost> all{};
  std::size_t count = 0;

  bool add(const T& one) {
    if (count == kMost) return false;
    all[count++] = one;
    return true;
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < kAlways; ++i) visit(all[i]);
    for (std::size_t i = kAlways; i < count; ++i) visit(all[i]);
  }
};

using FlatKey = FlatList<FlatPart, 2, 4>;
using FlatSum = FlatList<FlatLine, 0, 4>;

struct Flat {
  bool swaps = false;
  bool has_unit = false;
  bool has_next_event = false;
  std::uint8_t variant = 0;
  bool has_packet_index = false;
  bool payload_to_end = true;
  std::uint32_t header_bytes = 0;
  std::uint32_t payload_bytes = 0;  // without payload_to_end
  std::uint32_t least_bytes = 0;    // of a packet
  std::uint32_t span_bytes = 0;     // how many more it may have
  std::uint32_t length_mask = 0;    // bits of its length that must be 0
  FlatList<FlatCheck, 1, 4> checks;
  FlatList<FlatLimit, 1, 4> limits;
  FlatKey stream;
  FlatList<FlatCheck, 0, 4> flags;
  FlatField sequence;
  FlatField event_count;
  FlatField next_event;
  FlatSum time;
  FlatKey unit;
  FlatSum place;
  FlatSum unit_bytes;
  FlatSum unit_packets;
  std::uint64_t unit_bytes_most = 0;
};

struct Program;

// Gives each body of a program its short way, if it has one.
void set_flat(Program& program);

template <bool kSwaps>
class FlatReader {
 public:
  FlatReader(const Flat& flat, std::span<const std::byte> packet) : flat_(flat), bytes_(packet.size()), header_(packet.data()) {}

  // Whether a packet of that length is accepted; `to` is filled then, but for the number of the first event.
  [[gnu::always_inline]] bool read(Packet& to) const {
    if (!is_accepted()) return false;
    to.before_bytes = 0;
    to.payload_offset = flat_.header_bytes;
    to.payload_bytes = flat_.payload_to_end ? static_cast<std::uint32_t>(bytes_) - flat_.header_bytes : flat_.payload_bytes;
    to.stream = key(flat_.stream);
    to.sequence = value(flat_.sequence);
    to.event_count = static_cast<std::uint32_t>(value(flat_.event_count));
    to.next_event = flat_.has_next_event ? value(flat_.next_event) : 0;
    to.time = sum(flat_.time);
    to.flags = flags();
    to.variant = flat_.variant;
    to.first_event = 0;
    return !flat_.has_unit || read_unit(to);
  }

 private:
  std::uint64_t word(std::uint32_t offset) const {
    std::uint64_t word;
    __builtin_memcpy(&word, header_ + offset, sizeof word);
    return word;
  }
  std::uint64_t value(const FlatField& field) const {
    const std::uint64_t loaded = word(field.offset);
    return (kSwaps ? __builtin_bswap64(loaded) : loaded) >> field.shift & field.mask;
  }

  bool is_accepted() const {
    if (bytes_ - flat_.least_bytes > flat_.span_bytes || (bytes_ & flat_.length_mask) != 0)
      return false;  // a shorter one wraps around
    std::uint64_t wrong = 0;
    flat_.checks.for_each([&](const FlatCheck& check) { wrong |= (word(check.offset) ^ check.value) & check.mask; });
    flat_.limits.for_each([&](const FlatLimit& limit) { wrong |= std::uint64_t{value(limit.field) - limit.least > limit.span}; });
    return wrong == 0;
  }

  std::uint64_t key(const FlatKey& parts) const {
    std::uint64_t made = 0;
    parts.for_each([&](const FlatPart& part) { made |= value(part.field) << part.shift; });
    return made;
  }

  std::uint64_t sum(const FlatSum& lines) const {
    std::uint64_t made = 0;
    lines.for_each([&](const FlatLine& line) { made += line.constant + line.factor * value(line.field); });
    return made;
  }

  std::uint8_t flags() const {
    unsigned made = 0;
    flat_.flags.for_each([&](const FlatCheck& check) {
      made |= ((word(check.offset) ^ check.value) & check.mask) == 0 ? unsigned{check.flag} : 0u;
    });
    return static_cast<std::uint8_t>(made);
  }

  bool read_unit(Packet& to) const {
    to.unit = key(flat_.unit);
    to.place = sum(flat_.place);
    to.unit_bytes = sum(flat_.unit_bytes);
    to.unit_packets = sum(flat_.unit_packets);
    if (to.unit_bytes > flat_.unit_bytes_most) return false;
    const std::uint64_t end = to.unit_bytes != 0 ? to.unit_bytes : flat_.unit_bytes_most;
    return to.place <= end && (flat_.has_packet_index || to.payload_bytes <= end - to.place);
  }

  const Flat& flat_;
  std::size_t bytes_;
  const std::byte* header_;
};

[[gnu::always_inline]] inline bool read_flat(const Flat& flat, std::span<const std::byte> packet, Packet& to) {
  return flat.swaps ? FlatReader<true>(flat, packet).read(to) : FlatReader<false>(flat, packet).read(to);
}

}  // namespace nanet::format
