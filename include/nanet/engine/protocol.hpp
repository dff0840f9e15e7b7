// SPDX-License-Identifier: Apache-2.0
// Protocols: what a receiver must know of a packet before it hands it on, and what an event builder finds in it. A protocol is a type with
// static functions, so that the work on a packet is inlined; receiver and builder are virtual once a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nanet/event/event.hpp"
#include "nanet/flow/counters.hpp"
#include "nanet/wire/m2egp.hpp"
#include "nanet/wire/mgp.hpp"

namespace nanet::engine {

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

// nanet's own formats with sequence numbers (docs/formats.md, docs/formats-merged.md): View is wire::MgpView or wire::M2egpView.
template <class View>
struct SequencedProtocol {
  static constexpr bool has_sequence = true;

  // A packet that inspect() has accepted before.
  static View open(std::span<const std::byte> payload) { return View::from_checked(payload); }
  static std::size_t event_count(const View& packet) { return packet.header().event_count; }

  static Inspection inspect(std::span<const std::byte> payload, PacketFacts& facts) {
    View view;
    return judge(View::parse(payload, view), view, facts);
  }

  // Of a packet whose first 24 bytes alone can be read: what they tell (wire::MgpView::parse_head).
  static Inspection inspect_head(std::span<const std::byte> head, std::size_t packet_bytes, PacketFacts& facts) {
    View view;
    return judge(View::parse_head(head, packet_bytes, view), view, facts);
  }

 private:
  static Inspection judge(wire::ParseError error, const View& view, PacketFacts& facts) {
    switch (error) {
      case wire::ParseError::none: break;
      case wire::ParseError::bad_length: return {false, flow::Counter::packets_bad_length};
      case wire::ParseError::bad_format: return {false, flow::Counter::packets_bad_format};
      case wire::ParseError::bad_checksum: return {false, flow::Counter::packets_bad_checksum};
    }
    const auto& header = view.header();
    facts.source_id = header.source_id;
    facts.source_sub_id = header.source_sub_id;
    facts.sequence = header.sequence;
    facts.event_count = header.event_count;
    if (view.is_marker()) {
      facts.kind = header.run_start ? PacketKind::start_marker : PacketKind::end_marker;
      facts.next_event_number = view.next_event_number();
    } else {
      facts.first_event_number = view.first_event_number();
    }
    return {true, flow::Counter::packets_accepted};
  }
};

// Padded and packed, of a board.
struct MgpProtocol : SequencedProtocol<wire::MgpView> {
  static constexpr std::size_t kScratchHits = wire::kMgpScratchHits;
  static constexpr bool kHitsPadded = true;  // readable up to the next multiple of 8 hits (event::Merger::add_padded_part)

  // Calls visit(event::Event) for every event. room(): kScratchHits for the hits of the next one, which stay there; unused where they lie in the
  // packet.
  template <class Room, class Visit>
  static void for_each_event(const wire::MgpView& packet, Room room, Visit visit) {
    if (packet.header().layout == wire::MgpLayout::padded) {
      for (std::size_t i = 0; i < packet.header().event_count; ++i) visit(event_of(packet.event(i), packet.slot_hits(i)));
      return;
    }
    wire::MgpPackedCursor cursor(packet);
    wire::MgpEvent event;
    for (std::uint16_t* hits = room(); cursor.next(event, hits); hits = room()) visit(event_of(event, hits));
  }

  static event::Event event_of(const wire::MgpEvent& event, const std::uint16_t* hits) {
    return {.hits = hits, .count = event.hit_count, .timestamp = event.timestamp, .fine_time = event.fine_time};
  }
};

// Merged events, of another node.
struct M2egpProtocol : SequencedProtocol<wire::M2egpView> {
  static constexpr std::size_t kScratchHits = 0;
  static constexpr bool kHitsPadded = false;

  template <class Room, class Visit>
  static void for_each_event(const wire::M2egpView& packet, Room, Visit visit) {
    wire::for_each_event(packet, [&](const wire::MgpEvent& event, const std::uint16_t* hits) {
      visit(MgpProtocol::event_of(event, hits));
    });
  }
};

// Any datagram: handed on as it is, counted, no sequence numbers. All of them belong to the link's first source.
struct RawProtocol {
  static constexpr bool has_sequence = false;

  static Inspection inspect(std::span<const std::byte>, PacketFacts&) { return {true, flow::Counter::packets_accepted}; }
  static Inspection inspect_head(std::span<const std::byte>, std::size_t, PacketFacts&) {
    return {true, flow::Counter::packets_accepted};
  }
};

}  // namespace nanet::engine
