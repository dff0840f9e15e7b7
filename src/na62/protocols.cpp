// SPDX-License-Identifier: Apache-2.0
#include "na62/protocols.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

#include "nanet/engine/protocol_of.hpp"
#include "nanet/event/event.hpp"
#include "nanet/wire/m2egp.hpp"
#include "nanet/wire/mgp.hpp"

namespace nanet::na62 {
namespace {

// nanet's own formats with sequence numbers (docs/formats.md, docs/formats-merged.md): View is wire::MgpView or wire::M2egpView.
template <class View>
struct SequencedProtocol {
  static constexpr bool has_sequence = true;
  static constexpr bool has_events = true;

  static View open(std::span<const std::byte> payload) { return View::from_checked(payload); }
  static std::size_t event_count(const View& packet) { return packet.header().event_count; }

  static engine::Inspection inspect(std::span<const std::byte> payload, engine::PacketFacts& facts) {
    View view;
    return judge(View::parse(payload, view), view, facts);
  }

  // For a packet of which only the first 24 bytes can be read: what they tell (wire::MgpView::parse_head).
  static engine::Inspection inspect_head(std::span<const std::byte> head, std::size_t packet_bytes, engine::PacketFacts& facts) {
    View view;
    return judge(View::parse_head(head, packet_bytes, view), view, facts);
  }

 private:
  static engine::Inspection judge(wire::ParseError error, const View& view, engine::PacketFacts& facts) {
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
      facts.kind = header.run_start ? engine::PacketKind::start_marker : engine::PacketKind::end_marker;
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
  static constexpr bool kHitsPadded = true;

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
  static constexpr bool kMerged = true;
  static constexpr std::size_t kScratchHits = 0;
  static constexpr bool kHitsPadded = false;

  template <class Room, class Visit>
  static void for_each_event(const wire::M2egpView& packet, Room, Visit visit) {
    wire::for_each_event(
        packet, [&](const wire::MgpEvent& event, const std::uint16_t* hits) { visit(MgpProtocol::event_of(event, hits)); });
  }
};

}  // namespace

constinit const engine::Protocol kMgp = engine::protocol_of<MgpProtocol>(
    "mgp", "packets of readout boards, with sequence numbers and checksum");
constinit const engine::Protocol kM2egp = engine::protocol_of<M2egpProtocol>(
    "m2egp", "the same for merged events, from a node that forwards");

}  // namespace nanet::na62
