// SPDX-License-Identifier: Apache-2.0
// What a person is told of a packet.
#include <algorithm>

#include "format/program.hpp"

namespace nanet::format {
namespace {

// The part of a packet that its fields are counted from, and its body: the first that fits, or else the first.
struct Seen {
  std::span<const std::byte> packet;
  const Body* body;
};

Seen look(const Program& program, std::span<const std::byte> whole) {
  const std::span<const std::byte> packet = whole.subspan(before_bytes(program, whole));
  const Body* body = &program.bodies.front();
  if (packet.size() >= program.common_bytes) {
    const Readable readable(packet);
    if (const Body* const found = body_of(program, readable.data)) body = found;
  }
  return {packet, body};
}

std::string bytes_text(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

std::vector<NamedValue> Decoder::fields(std::span<const std::byte> whole) const {
  const Seen seen = look(*program_, whole);
  if (seen.packet.size() < seen.body->min_bytes) return {};
  const Readable readable(seen.packet);
  const Load* loads = seen.body->loads.data();
  Decoder fresh(*this);
  if (seen.body->moves() && fresh.find_fields(*seen.body, seen.packet, readable.data, loads) != Refusal::none) return {};
  std::vector<NamedValue> values;
  for (std::size_t i = 0; i < seen.body->fields.size(); ++i) {
    values.push_back({seen.body->fields[i].name, loads[i].from(readable.data)});
  }
  return values;
}

std::string Decoder::explain(std::span<const std::byte> whole) const {
  Packet packet;
  const Refusal refusal = Decoder(*this).decode(whole, packet);
  const Seen seen = look(*program_, whole);
  switch (refusal) {
    case Refusal::none: return {};
    case Refusal::too_short: {
      const std::uint64_t least = std::max<std::uint64_t>(program_->common_bytes, seen.body->min_bytes);
      return "it has " + bytes_text(whole.size()) +
             (seen.packet.size() < least ? ", its header has more: " + bytes_text(least) + " at least"
                                         : ", its header says of itself that it has more");
    }
    case Refusal::bad_length:
      return "it has " + bytes_text(whole.size()) +
             (whole.size() > program_->packet_bytes_most ? ", at most " + bytes_text(program_->packet_bytes_most) + " are allowed"
                                                         : ", which is not what its format says");
    case Refusal::no_variant: return "its fields are those of no variant";
    case Refusal::not_accepted:
    case Refusal::out_of_range: break;
    case Refusal::item_missing: return "a tagged item that is needed is missing";
    case Refusal::item_elsewhere: return "a tagged item has no value of its own";
    case Refusal::arithmetic: return "a length or place is negative or has more than 63 bits";
    case Refusal::payload_too_long: return "its header says more payload than there is";
    case Refusal::unit_too_long:
      return "its unit has " + bytes_text(packet.unit_bytes) + ", at most " + bytes_text(program_->facts.unit_bytes_most) +
             " are allowed";
    case Refusal::outside_unit:
      return bytes_text(packet.payload_bytes) + " at " + std::to_string(packet.place) + " do not lie in a unit of " +
             bytes_text(packet.unit_bytes != 0 ? packet.unit_bytes : program_->facts.unit_bytes_most);
    case Refusal::events_cut: return "its events are longer than its payload";
    case Refusal::event_refused: return "it has too many events, or a field of one is not what it must be";
    case Refusal::checksum: return "its checksum is wrong";
  }
  for (const NamedValue& one : fields(whole)) {
    const auto& named = *std::find_if(seen.body->fields.begin(), seen.body->fields.end(),
                                      [&](const NamedField& field) { return field.name == one.name; });
    if (one.value >= named.least && one.value <= named.most) continue;
    const std::string must = named.least == named.most ? std::to_string(named.least)
                                                       : std::to_string(named.least) + " to " + std::to_string(named.most);
    return one.name + " is " + std::to_string(one.value) + ", it must be " + must;
  }
  return "a field is not what it must be";
}

}  // namespace nanet::format
