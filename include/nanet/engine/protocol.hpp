// SPDX-License-Identifier: Apache-2.0
// Protocols: what a receiver must know of a packet before it hands it on. A protocol is a type with a static inspect(), so
// that the per-packet work is inlined; the receiver is virtual once a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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

using MgpProtocol = SequencedProtocol<wire::MgpView>;      // padded and packed, of a board
using M2egpProtocol = SequencedProtocol<wire::M2egpView>;  // merged events, of another node

// Any datagram: handed on as it is, counted, no sequence numbers. All of them belong to the link's first source.
struct RawProtocol {
  static constexpr bool has_sequence = false;

  static Inspection inspect(std::span<const std::byte>, PacketFacts&) { return {true, flow::Counter::packets_accepted}; }
  static Inspection inspect_head(std::span<const std::byte>, std::size_t, PacketFacts&) {
    return {true, flow::Counter::packets_accepted};
  }
};

}  // namespace nanet::engine
