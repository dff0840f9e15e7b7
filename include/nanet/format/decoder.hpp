// SPDX-License-Identifier: Apache-2.0
// Decoder: a declaration, compiled. It says of a packet which unit of which stream it belongs to, where in it its payload lies, and when that is,
// or why the packet is refused. docs/design/declared-formats.md
//
// What every decoded packet keeps to, whatever its bytes were: the payload lies in the packet; with units, place + payload_bytes is at most
// unit_bytes (if that is not 0) and at most facts().unit_bytes_most. With Facts::has_packet_index, place is a number of packets, and whoever
// knows the payload of the unit's first packet multiplies and checks.
//
// decode() reads nothing beyond the packet, allocates nothing and never throws. Thread rules: a decoder belongs to one thread, because it remembers
// the variant and the order of tagged items that it saw last; its copies share what was compiled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nanet/format/declaration.hpp"

namespace nanet::format {

struct Program;
struct Body;
struct Load;

// Why a packet is refused; each is a name that a person is told.
enum class Refusal : std::uint8_t {
  none,
  too_short,         // it ends within its header
  bad_length,        // longer than is allowed, not a multiple, or not the length that the header says
  no_variant,        // it fits none of the variants
  not_accepted,      // a field that must equal something does not
  out_of_range,      // a field is below its least or not below its bound
  item_missing,      // a tagged item that is needed
  item_elsewhere,    // its value does not stand in the item itself
  arithmetic,        // an expression is negative, or has more than 63 bits
  payload_too_long,  // the header says more payload than the packet has
  unit_too_long,     // longer than unit_bytes_most
  outside_unit,      // the payload does not lie in its unit
  events_cut,        // the events do not lie in the payload
  event_refused,     // a field of an event is not allowed
  checksum,          // everything else is right
};
inline constexpr std::size_t kRefusalCount = 15;
std::string_view name_of(Refusal refusal);

// What a packet means. 0 where its format does not say it.
struct Packet {
  enum Flags : std::uint8_t { start = 1, stop = 2, first = 4, last = 8 };

  std::uint64_t stream = 0;
  std::uint64_t unit = 0;
  std::uint64_t place = 0;         // [bytes]; with Facts::has_packet_index [packets]
  std::uint64_t unit_bytes = 0;    // 0: not said
  std::uint64_t unit_packets = 0;  // with payload; 0: not said
  std::uint64_t sequence = 0;
  std::uint64_t time = 0;  // in Facts::time_unit_ns
  std::uint64_t next_event = 0;
  std::uint32_t payload_offset = 0;
  std::uint32_t payload_bytes = 0;
  std::uint32_t event_count = 0;
  std::uint16_t first_event = 0;  // number of the first event
  std::uint8_t flags = 0;
  std::uint8_t variant = 0;        // index of the variant; 0 if there are none
  std::uint16_t before_bytes = 0;  // of the optional header in front, if it is there

  friend bool operator==(const Packet&, const Packet&) = default;
};

// The same for all packets of a format.
struct Facts {
  bool has_stream = false;
  bool has_unit = false;
  bool has_place = false;  // else each packet is a unit of its own
  bool has_packet_index = false;
  bool has_sequence = false;
  bool has_events = false;
  unsigned stream_bits = 0;           // width of Packet::stream
  std::uint64_t sequence_modulo = 0;  // 0: 2^64
  std::uint32_t sequence_step = 1;
  double time_unit_ns = 0;            // of Packet::time; 0: packets have no time
  std::uint64_t unit_bytes_most = 0;  // the longest unit that a packet can announce or lie in; 0: there are no units
  std::uint64_t timeout_ns = 0;       // 0: not said
  std::optional<MergeConfig> merge;
  std::optional<SamplesConfig> samples;  // of variants that say nothing else; samples()
};

// A field of a packet by name, for a person.
struct NamedValue {
  std::string name;
  std::uint64_t value;
};

class Decoder {
 public:
  // Throws SetupError.
  explicit Decoder(const Declaration& declaration);
  Decoder(const Decoder& other);
  Decoder(Decoder&& other) noexcept;
  Decoder& operator=(const Decoder& other);
  Decoder& operator=(Decoder&& other) noexcept;
  ~Decoder();

  const Facts& facts() const;

  // What the payload of a variant (Packet::variant) is; none: bytes.
  const std::optional<SamplesConfig>& samples(std::uint8_t variant) const;

  // Fills `to` when it returns Refusal::none, and else may leave anything there. The events of a packet are checked too, and its checksum.
  Refusal decode(std::span<const std::byte> packet, Packet& to);

  // All fields of a packet, refused or not, as far as they lie in it; and what is in the way, empty if nothing is. Slow: for a person.
  std::vector<NamedValue> fields(std::span<const std::byte> packet) const;
  std::string explain(std::span<const std::byte> packet) const;

  // What was compiled; for the files of this room.
  const Program& program() const { return *program_; }

 private:
  struct Found;  // where the fields of the last packet were, and the order of its items

  Refusal read_any(std::span<const std::byte> whole, Packet& to);
  Refusal read_header(const Body& body, std::span<const std::byte> packet, const std::byte* header, Packet& to);
  Refusal find_fields(const Body& body, std::span<const std::byte> packet, const std::byte* header, const Load*& loads);
  Refusal find_items(const Body& body, std::span<const std::byte> packet, const std::byte* header, const Load*& loads);

  std::shared_ptr<const Program> program_;
  const Body* last_ = nullptr;    // of the last packet, if such can be read the short way
  std::unique_ptr<Found> found_;  // none: all fields have fixed places
};

}  // namespace nanet::format
