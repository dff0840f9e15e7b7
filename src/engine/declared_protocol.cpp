// SPDX-License-Identifier: Apache-2.0
// Formats that a configuration declares, as protocols: packets whose payload is a list of events, and packets that are pieces of units.
#include <array>
#include <string>
#include <utility>

#include "engine/declared_units.hpp"
#include "format/event_reader.hpp"
#include "nanet/engine/kinds.hpp"
#include "nanet/engine/protocol_of.hpp"
#include "nanet/engine/unit_facts.hpp"
#include "nanet/event/event.hpp"
#include "nanet/format/decoder.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;
using format::Refusal;

constexpr unsigned kStreamBits = 16;  // source_id and source_sub_id
constexpr std::uint64_t kSequenceModulo = std::uint64_t{1} << 32;

// What a refusal is counted as, by its number.
constexpr auto kCounters = [] {
  std::array<Counter, format::kRefusalCount> made{};
  made.fill(Counter::packets_bad_format);
  for (const Refusal length : {Refusal::too_short, Refusal::bad_length, Refusal::payload_too_long, Refusal::events_cut}) {
    made[static_cast<std::size_t>(length)] = Counter::packets_bad_length;
  }
  made[static_cast<std::size_t>(Refusal::checksum)] = Counter::packets_bad_checksum;
  return made;
}();

template <bool kHasSequence>
class DeclaredProtocol {
 public:
  static constexpr bool has_sequence = kHasSequence;
  static constexpr bool has_events = true;
  static constexpr std::size_t kScratchHits = 256;
  static constexpr bool kHitsPadded = false;

  explicit DeclaredProtocol(const Protocol& protocol)
      : decoder_(*static_cast<const format::Decoder*>(protocol.state)), reader_(decoder_) {}

  Inspection inspect(std::span<const std::byte> payload, PacketFacts& facts) {
    format::Packet packet;
    const Refusal refusal = decoder_.decode(payload, packet);
    if (refusal != Refusal::none) return {false, kCounters[static_cast<std::size_t>(refusal)]};
    facts.source_id = static_cast<std::uint8_t>(packet.stream >> 8);
    facts.source_sub_id = static_cast<std::uint8_t>(packet.stream);
    facts.sequence = static_cast<std::uint32_t>(packet.sequence);
    facts.event_count = packet.event_count;
    facts.first_event_number = packet.first_event;
    facts.next_event_number = packet.next_event;
    if (packet.event_count == 0 && (packet.flags & (format::Packet::start | format::Packet::stop)) != 0) {
      facts.kind = (packet.flags & format::Packet::start) != 0 ? PacketKind::start_marker : PacketKind::end_marker;
    }
    return {true, Counter::packets_accepted};
  }

  // Events are checked in the packet, not in its head.
  static Inspection inspect_head(std::span<const std::byte>, std::size_t, PacketFacts&) {
    return {false, Counter::packets_bad_format};
  }

  format::EventReader::Opened open(std::span<const std::byte> payload) const { return reader_.open(payload); }
  static std::size_t event_count(const format::EventReader::Opened& packet) { return packet.count; }

  template <class Room, class Visit>
  static void for_each_event(const format::EventReader::Opened& packet, Room room, Visit visit) {
    format::EventReader::for_each_event(packet, room, [&](const format::ReadEvent& event) {
      visit(event::Event{.hits = event.hits, .count = event.hit_count, .timestamp = event.timestamp, .fine_time = event.fine_time});
    });
  }

 private:
  format::Decoder decoder_;  // a copy for this thread; without tagged items it allocates nothing
  format::EventReader reader_;
};

class DeclaredUnits {
 public:
  explicit DeclaredUnits(const Protocol& protocol) : decoder_(*static_cast<const format::Decoder*>(protocol.state)) {}

  Inspection decode(std::span<const std::byte> bytes, UnitFacts& to) {
    format::Packet packet;
    const Refusal refusal = decoder_.decode(bytes, packet);
    if (refusal != Refusal::none) return {false, kCounters[static_cast<std::size_t>(refusal)]};
    to = unit_facts_of(packet, decoder_.facts());
    return {true, Counter::packets_accepted};
  }

  UnitTime unit_time() const {
    const format::Facts& facts = decoder_.facts();
    return {.tick_ns = facts.time_unit_ns, .merges = facts.merge && facts.merge->by == format::MergeBy::time};
  }

  bool counts_packets() const { return decoder_.facts().has_packet_index; }

 private:
  format::Decoder decoder_;
};

void check_usable(const std::string& name, const format::Facts& facts) {
  const auto refuse = [&](const std::string& why, const std::string& suggestion) {
    throw SetupError("links cannot have protocol " + name, why, suggestion);
  };
  if (!facts.has_events && !facts.has_unit) {
    refuse("its declaration says neither events nor units, so it is for nanet format alone",
           "add events: or unit: to it, or choose protocol raw, which keeps packets whole");
  }
  if (!facts.has_events) return;
  if (facts.stream_bits > kStreamBits) {
    refuse("its streams have " + std::to_string(facts.stream_bits) + " bits, and sources of events 16",
           "name fewer fields in stream:");
  }
  if (facts.has_sequence && (facts.sequence_modulo != kSequenceModulo || facts.sequence_step != 1)) {
    refuse("an engine counts packets of events one by one modulo 2^32, and it does not", "leave out sequence:");
  }
}

Protocol protocol_for(std::string_view name, const format::Facts& facts) {
  if (!facts.has_events) return unit_protocol_of<DeclaredUnits>(name);
  return facts.has_sequence ? protocol_of<DeclaredProtocol<true>>(name) : protocol_of<DeclaredProtocol<false>>(name);
}

// The protocol and what it points to.
struct Declared {
  std::string name;
  format::Decoder decoder;
  Protocol protocol;
};

}  // namespace

std::shared_ptr<const Protocol> declared_protocol(const std::string& name, const format::Declaration& declaration) {
  auto made = std::make_shared<Declared>(Declared{name, format::Decoder(declaration), {}});
  check_usable(name, made->decoder.facts());
  made->protocol = protocol_for(made->name, made->decoder.facts());
  made->protocol.state = &made->decoder;
  return {made, &made->protocol};
}

}  // namespace nanet::engine
