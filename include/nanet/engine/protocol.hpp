// SPDX-License-Identifier: Apache-2.0
// Protocols: what a receiver must know about a packet before handing it on, and what an event builder finds in it.
//
// A protocol is a type with static functions, so that the work on a packet is inlined; receiver and builder are called through a pointer once
// per batch. protocol_of() (protocol_of.hpp) makes the object that a link's configuration names. A type with a state has functions of its objects,
// which receiver and builder make of the Protocol, each its own: Type(const Protocol&).
//
//   static constexpr bool has_sequence;                               packets are numbered, and have markers
//   static constexpr bool has_events;                                 without them only the first two functions are needed
//   static constexpr bool kMerged;                                    may be left out: Protocol::merged
//   static Inspection inspect(std::span<const std::byte>, PacketFacts&);
//   static Inspection inspect_head(std::span<const std::byte> head, std::size_t packet_bytes, PacketFacts&);
//   static constexpr std::size_t kScratchHits;                        room for an event's hits where the packet has them in another form
//   static constexpr bool kHitsPadded;                                readable up to the next multiple of 8 (event::Merger::add_padded_part)
//   static Packet open(std::span<const std::byte>);                   of a packet that inspect() has accepted
//   static std::size_t event_count(const Packet&);
//   static void for_each_event(const Packet&, Room room, Visit visit);
// for_each_event calls visit(event::Event) for every event; room() is where the next one's hits may be written and stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "nanet/contract.hpp"
#include "nanet/engine/receiver.hpp"
#include "nanet/engine/unit_facts.hpp"
#include "nanet/flow/clop.hpp"
#include "nanet/flow/counters.hpp"

namespace nanet::format {
struct Declaration;
}

namespace nanet::engine {

class EventBuilder;

enum class PacketKind : std::uint8_t { data, start_marker, end_marker };

struct PacketFacts {
  std::uint8_t source_id = 0;
  std::uint8_t source_sub_id = 0;
  PacketKind kind = PacketKind::data;
  std::uint32_t sequence = 0;
  std::uint32_t event_count = 0;
  std::uint16_t first_event_number = 0;  // data packets
  std::uint64_t next_event_number = 0;   // markers
};

// Result of inspect(): `accepted`, or the counter under which the packet is refused.
struct Inspection {
  bool accepted;
  flow::Counter refused_as;
};

// What an engine knows about a protocol.
struct Protocol {
  std::string_view name;
  std::unique_ptr<Receiver> (*receiver_of)(const Protocol& self, const ReceiverConfig& config, ReceiverParts parts);
  // Gives the builder every event of a completion's buffer; null: its packets have none.
  void (*read)(const Protocol& self, EventBuilder& builder, const Completion& completion, flow::Clop& clop,
               std::uint32_t first_source);
  std::size_t scratch_hits;
  bool numbered;               // has_sequence: packets name their source and have sequence numbers
  std::string_view help = {};  // what its packets are, for a person
  bool has_units = false;  // they are pieces of units, which its receiver puts together (LinkConfig::assemble): a buffer holds one unit
  bool merged = false;                                  // its events are put together from the parts of several boards already
  UnitTraits (*units)(const Protocol& self) = nullptr;  // of those that has_units; null: nothing is known
  const void* state = nullptr;                          // what its type's objects are made from; outlives the protocol

  std::unique_ptr<Receiver> make_receiver(const ReceiverConfig& config, ReceiverParts parts) const {
    return receiver_of(*this, config, std::move(parts));
  }
  UnitTraits unit_traits() const { return units != nullptr ? units(*this) : UnitTraits{}; }
};

// A declared format whose packets hold events, or are pieces of units. The protocol keeps what it needs itself. Throws SetupError: it cannot be
// decoded, has neither, or says something that an engine cannot follow.
std::shared_ptr<const Protocol> declared_protocol(const std::string& name, const format::Declaration& declaration);

// Any datagram: handed on as it is, counted, no sequence numbers. All of them belong to the link's first source.
extern const Protocol kRaw;

}  // namespace nanet::engine
