// SPDX-License-Identifier: Apache-2.0
#include "nanet/format/decoder.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "format/program.hpp"
#include "nanet/config/setting.hpp"

namespace nanet::format {

struct Decoder::Found {
  const Body* body = nullptr;  // whose items were seen last; null: none
  std::uint64_t count = 0;
  std::array<std::uint64_t, kItemsMax> heads{};
  std::array<Load, kFieldsMax> seen{};
  std::array<Load, kFieldsMax> room{};
};

namespace {

constexpr std::array<std::string_view, kRefusalCount> kNames{"none",         "too_short",        "bad_length",    "no_variant",
                                                             "not_accepted", "out_of_range",     "item_missing",  "item_elsewhere",
                                                             "arithmetic",   "payload_too_long", "unit_too_long", "outside_unit",
                                                             "events_cut",   "event_refused",    "checksum"};

std::uint64_t key_of(const Key& key, const Load* loads, const std::byte* header) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < key.count; ++i) value |= loads[key.parts[i].field].from(header) << key.parts[i].shift;
  return value;
}

std::uint8_t flags_of(const Body& body, const Load* loads, const std::byte* header) {
  std::uint8_t flags = 0;
  for (const Flag& flag : body.flags) {
    bool all = holds(flag.checks, header);
    for (const Condition& one : flag.conditions) all = all && loads[one.field].from(header) == one.value;
    if (all) flags |= flag.flag;
  }
  return flags;
}

std::size_t readable_bytes(std::span<const std::byte> packet) { return std::max<std::size_t>(packet.size(), 8); }

// Looks for the tagged fields in the list, which lies in the packet.
Refusal find_tagged(const ItemList& items, const Body& body, std::span<const std::byte> packet, const std::byte* header,
                    std::uint64_t count, Load* loads) {
  const std::size_t room = readable_bytes(packet);
  for (const TaggedField& tagged : body.tagged) {
    bool found = false;
    for (std::uint64_t i = 0; i < count && !found; ++i) {
      const auto offset = static_cast<std::uint32_t>(items.at + i * items.item_bytes);
      const std::uint64_t word = items.word.at(offset, room).from(header);
      if ((word >> items.id_shift & items.id_mask) != tagged.id) continue;
      if ((word & items.immediate) == 0) return Refusal::item_elsewhere;
      loads[tagged.field] = tagged.site.at(offset, room);
      found = true;
    }
    if (found) continue;
    if (tagged.is_needed) return Refusal::item_missing;
    loads[tagged.field] = {.fixed = tagged.otherwise};
  }
  return Refusal::none;
}

Refusal find_moving(const Body& body, std::span<const std::byte> packet, const std::byte* header, Load* loads) {
  for (const Moving& moving : body.moving) {
    std::uint64_t offset = 0;
    if (!evaluate(moving.at, loads, header, offset)) return Refusal::arithmetic;
    if (offset > packet.size() || packet.size() - offset < moving.site.bytes) return Refusal::too_short;
    loads[moving.field] = moving.site.at(static_cast<std::uint32_t>(offset), readable_bytes(packet));
  }
  return Refusal::none;
}

// An expression that a format may not have: then `to` stays.
bool read(const std::optional<Expression>& expression, const Load* loads, const std::byte* header, std::uint64_t& to) {
  return !expression || evaluate(*expression, loads, header, to);
}

Refusal read_payload(const Body& body, const Load* loads, const std::byte* header, std::size_t packet_bytes, Packet& to) {
  std::uint64_t header_bytes = 0;
  std::uint64_t wanted_bytes = packet_bytes;
  if (!evaluate(body.header_bytes, loads, header, header_bytes)) return Refusal::arithmetic;
  if (!read(body.packet_bytes, loads, header, wanted_bytes)) return Refusal::arithmetic;
  if (wanted_bytes != packet_bytes) return Refusal::bad_length;
  if (header_bytes > packet_bytes) return Refusal::too_short;
  std::uint64_t payload_bytes = packet_bytes - header_bytes;
  if (body.payload_bytes) {
    std::uint64_t said_bytes = 0;
    if (!evaluate(*body.payload_bytes, loads, header, said_bytes)) return Refusal::arithmetic;
    if (said_bytes > payload_bytes) return Refusal::payload_too_long;
    payload_bytes = said_bytes;
  }
  to.payload_offset = static_cast<std::uint32_t>(header_bytes) + to.before_bytes;
  to.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  return Refusal::none;
}

Refusal read_unit(const Facts& facts, const Body& body, const Load* loads, const std::byte* header, Packet& to) {
  to.unit = key_of(body.unit, loads, header);
  to.place = 0;
  to.unit_bytes = 0;
  to.unit_packets = 0;
  if (!read(body.place, loads, header, to.place) || !read(body.unit_bytes, loads, header, to.unit_bytes) ||
      !read(body.unit_packets, loads, header, to.unit_packets)) {
    return Refusal::arithmetic;
  }
  if (to.unit_bytes > facts.unit_bytes_most) return Refusal::unit_too_long;
  const std::uint64_t end = to.unit_bytes != 0 ? to.unit_bytes : facts.unit_bytes_most;
  if (to.place > end) return Refusal::outside_unit;
  if (!facts.has_packet_index && to.payload_bytes > end - to.place) return Refusal::outside_unit;
  return Refusal::none;
}

Refusal read_roles(const Program& program, const Body& body, const Load* loads, const std::byte* header, Packet& to) {
  const auto field = [&](std::uint8_t index) { return index == kNoField ? 0 : loads[index].from(header); };
  to.stream = key_of(body.stream, loads, header);
  to.sequence = field(body.sequence);
  to.next_event = field(body.next_event);
  to.time = 0;
  if (!read(body.time, loads, header, to.time)) return Refusal::arithmetic;
  to.flags = flags_of(body, loads, header);
  return program.facts.has_unit ? read_unit(program.facts, body, loads, header, to) : Refusal::none;
}

// What both ways have left of a packet whose header is accepted: its events and its checksum. whole: `packet` and the bytes before its header.
[[gnu::always_inline]] inline Refusal read_rest(const Program& program, const Body& body, std::span<const std::byte> whole,
                                                std::span<const std::byte> packet, Packet& to) {
  if (body.events) {
    const EventsProgram& events = *body.events;
    const auto payload = whole.subspan(to.payload_offset, to.payload_bytes);
    const Refusal refusal = events.is_bytes ? check_bytes(events, payload, to.event_count)
                                            : check_events(events, payload, to.event_count);
    if (refusal != Refusal::none) return refusal;
    to.first_event = first_number(events, payload, to.event_count);
  }
  return !program.has_checksum || checksum_is_good(program, packet) ? Refusal::none : Refusal::checksum;
}

}  // namespace

std::string_view name_of(Refusal refusal) { return kNames[static_cast<std::size_t>(refusal)]; }

Decoder::Decoder(const Declaration& declaration) {
  Compiled compiled = compile(declaration);
  config::refuse_broken(compiled.problem);
  program_ = std::make_shared<const Program>(std::move(compiled.program));
  const auto moves = [](const Body& body) { return body.moves(); };
  if (std::any_of(program_->bodies.begin(), program_->bodies.end(), moves)) found_ = std::make_unique<Found>();
}

Decoder::Decoder(const Decoder& other) : program_(other.program_), found_(other.found_ ? std::make_unique<Found>() : nullptr) {}
Decoder::Decoder(Decoder&& other) noexcept = default;
Decoder& Decoder::operator=(const Decoder& other) { return *this = Decoder(other); }
Decoder& Decoder::operator=(Decoder&& other) noexcept = default;
Decoder::~Decoder() = default;

const Facts& Decoder::facts() const { return program_->facts; }

const std::optional<SamplesConfig>& Decoder::samples(std::uint8_t variant) const { return program_->bodies[variant].samples; }

// The loads of a packet in which not all fields have a fixed place.
Refusal Decoder::find_fields(const Body& body, std::span<const std::byte> packet, const std::byte* header, const Load*& loads) {
  if (body.has_items) return find_items(body, packet, header, loads);
  loads = found_->room.data();
  std::copy_n(body.loads.begin(), body.fields.size(), found_->room.begin());
  return find_moving(body, packet, header, found_->room.data());
}

Refusal Decoder::find_items(const Body& body, std::span<const std::byte> packet, const std::byte* header, const Load*& loads) {
  const ItemList& items = program_->items;
  Found& found = *found_;
  std::uint64_t count = 0;
  if (!evaluate(body.item_count, body.loads.data(), header, count)) return Refusal::arithmetic;
  if (packet.size() < items.at || count > (packet.size() - items.at) / items.item_bytes) return Refusal::too_short;
  const bool is_kept = body.moving.empty() && items.item_bytes == 8 && count <= kItemsMax;
  bool is_seen = is_kept && found.body == &body && found.count == count;
  for (std::size_t i = 0; is_seen && i < count; ++i) {
    is_seen = ((load_word(header + items.at + i * 8) ^ found.heads[i]) & items.head_mask) == 0;
  }
  Load* const into = is_kept ? found.seen.data() : found.room.data();
  loads = into;
  if (is_seen) return Refusal::none;
  if (is_kept) found.body = nullptr;
  std::copy_n(body.loads.begin(), body.fields.size(), into);
  if (const Refusal refusal = find_tagged(items, body, packet, header, count, into); refusal != Refusal::none) return refusal;
  if (!is_kept) return find_moving(body, packet, header, into);
  for (std::size_t i = 0; i < count; ++i) found.heads[i] = load_word(header + items.at + i * 8);
  found.count = count;
  found.body = &body;
  return Refusal::none;
}

// What decode() says of a header whose body is known, the long way.
Refusal Decoder::read_header(const Body& body, std::span<const std::byte> packet, const std::byte* header, Packet& to) {
  if (const Refusal refusal = pass(body.early, body.loads.data(), header); refusal != Refusal::none) return refusal;
  if (packet.size() < body.min_bytes) return Refusal::too_short;
  const Load* loads = body.loads.data();
  if (body.moves()) {
    if (const Refusal refusal = find_fields(body, packet, header, loads); refusal != Refusal::none) return refusal;
  }
  if (const Refusal refusal = pass(body.late, loads, header); refusal != Refusal::none) return refusal;
  if (const Refusal refusal = read_payload(body, loads, header, packet.size(), to); refusal != Refusal::none) return refusal;
  return read_roles(*program_, body, loads, header, to);
}

// The long way, which knows everything and says what is wrong.
Refusal Decoder::read_any(std::span<const std::byte> whole, Packet& to) {
  const Program& program = *program_;
  if (whole.size() > program.packet_bytes_most || (whole.size() & program.length_mask) != 0) return Refusal::bad_length;
  const std::span<const std::byte> packet = whole.subspan(before_bytes(program, whole));
  if (packet.size() < program.common_bytes) return Refusal::too_short;
  const Readable readable(packet);
  const Body* const body = body_of(program, readable.data);
  if (body == nullptr) return Refusal::no_variant;
  if (body->flat) last_ = body;
  to.before_bytes = static_cast<std::uint16_t>(whole.size() - packet.size());
  to.variant = body->index;
  if (const Refusal refusal = read_header(*body, packet, readable.data, to); refusal != Refusal::none) return refusal;
  to.event_count = 0;
  to.first_event = 0;
  if (body->events) {  // its fields have fixed places
    to.event_count = static_cast<std::uint32_t>(body->loads[body->events->count_field].from(readable.data));
  }
  return read_rest(program, *body, whole, packet, to);
}

// A packet like the one before is read the short way, if there is one.
Refusal Decoder::decode(std::span<const std::byte> packet, Packet& to) {
  if (last_ == nullptr || !read_flat(*last_->flat, packet, to)) return read_any(packet, to);
  return read_rest(*program_, *last_, packet, packet, to);
}

}  // namespace nanet::format
