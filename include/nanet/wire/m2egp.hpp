// SPDX-License-Identifier: Apache-2.0
// M2EGP, the packets of merged events that one node sends to the next: whole events with 16-bit hits, nothing padded. The name
// is NaNet's, the layout is ours; byte tables are in docs/formats-merged.md.
//
// Terms
//   packet   16 header bytes as in MGP (format 3), then events one after the other: 8 header bytes as in MGP, then hit_count
//            hits of 16 bits as in MGP. Zeros at the end are allowed, so that a sender can keep its packets of one size.
//   marker   24 bytes, start or end of run, as in MGP.
//
// A view checks everything once, in parse(), in the order of MgpView::parse; after that no accessor can fail or read past the
// end, so long as the bytes stay as they were. MgpView refuses these packets by their format, and M2egpView those of MGP.
//
// Thread rules: any number of threads may read one view; a builder belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "nanet/wire/mgp.hpp"

namespace nanet::wire {

inline constexpr std::size_t kM2egpBytesUsual = 1472;  // one Ethernet frame of UDP
inline constexpr std::size_t kM2egpBytesMax = 8972;    // one jumbo frame of UDP
inline constexpr std::size_t kM2egpHitsMax = 128;      // of an event
inline constexpr std::size_t kM2egpEventsMax = 255;    // of a packet
inline constexpr std::uint8_t kM2egpLayout = 3;        // bits 3..0 of the format byte

struct M2egpHeader {
  std::uint8_t source_id = 0;
  std::uint8_t source_sub_id = 0;
  bool run_start = false;  // on a marker: a run starts; on a data packet only a hint
  bool run_end = false;
  std::uint8_t event_count = 0;    // 0: this is a marker
  std::uint32_t sequence = 0;      // packets of this source since start of run, modulo 2^32
  std::uint32_t send_time_ns = 0;  // sender's CLOCK_MONOTONIC, modulo 2^32
};

NANET_HD constexpr std::size_t m2egp_event_bytes(std::size_t hit_count) { return kMgpEventHeaderBytes + 2 * hit_count; }

class M2egpView {
 public:
  // Fills `view` when it returns ParseError::none, otherwise leaves it alone.
  static ParseError parse(std::span<const std::byte> payload, M2egpView& view);

  // Of the first 24 bytes, as MgpView::parse_head.
  static ParseError parse_head(std::span<const std::byte> head, std::size_t packet_bytes, M2egpView& view);

  // The view of a packet that parse() has accepted before, without checking it again.
  static M2egpView from_checked(std::span<const std::byte> payload);

  const M2egpHeader& header() const { return header_; }
  std::span<const std::byte> payload() const { return {data_, bytes_}; }
  bool is_marker() const { return header_.event_count == 0; }

  // Marker only: full running number of the source's next event.
  std::uint64_t next_event_number() const { return load_le<std::uint64_t>(data_ + kMgpHeaderBytes); }
  // Data packets: running number of the first event, modulo 65536.
  std::uint16_t first_event_number() const { return load_le<std::uint16_t>(data_ + kMgpHeaderBytes + 6); }

 private:
  const std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  M2egpHeader header_;
};

// Whether a payload that some view has accepted is M2EGP, not MGP.
inline bool is_m2egp(std::span<const std::byte> payload) { return (static_cast<unsigned>(payload[2]) & 0x0Fu) == kM2egpLayout; }

// Walks the events of a data packet, first to last. The hits stay in the packet.
class M2egpCursor {
 public:
  explicit M2egpCursor(const M2egpView& view)
      : next_(view.payload().data() + kMgpHeaderBytes), events_left_(view.header().event_count) {}

  // False after the last event.
  bool next(MgpEvent& event, const std::uint16_t*& hits) {
    if (events_left_ == 0) return false;
    --events_left_;
    event = load_event(next_);
    hits = reinterpret_cast<const std::uint16_t*>(next_ + kMgpEventHeaderBytes);
    next_ += m2egp_event_bytes(event.hit_count);
    return true;
  }

 private:
  const std::byte* next_;
  unsigned events_left_;
};

// Calls visit(MgpEvent, const std::uint16_t* hits) for every event; no call for a marker.
template <class F>
inline void for_each_event(const M2egpView& view, F&& visit) {
  M2egpCursor cursor(view);
  MgpEvent event;
  const std::uint16_t* hits;
  while (cursor.next(event, hits)) visit(event, hits);
}

// Writes one packet into its room.
class M2egpBuilder {
 public:
  // At least 24 bytes (SetupError). Packets fill at most the room and 8972 bytes.
  explicit M2egpBuilder(std::span<std::byte> room);

  // Forgets the events added.
  void begin() {
    used_ = kMgpHeaderBytes;
    event_count_ = 0;
  }
  // False, with nothing changed, when the event does not fit or has more than 128 hits. event.hit_count is ignored.
  bool add_event(const MgpEvent& event, std::span<const std::uint16_t> hits) {
    const std::size_t bytes = m2egp_event_bytes(hits.size());
    if (hits.size() > kM2egpHitsMax || event_count_ == kM2egpEventsMax || room_bytes_ - used_ < bytes) return false;
    std::byte* to = data_ + used_;
    store_le(to, std::uint64_t{event.timestamp} | std::uint64_t{event.fine_time} << 32 | std::uint64_t{hits.size()} << 40 |
                     std::uint64_t{event.event_number} << 48);
    if (!hits.empty()) std::memcpy(to + kMgpEventHeaderBytes, hits.data(), hits.size_bytes());
    used_ += bytes;
    ++event_count_;
    return true;
  }
  // The whole packet, sealed. Event count is the builder's, the rest is the caller's. Filled with zeros up to packet_bytes (0: not
  // at all), as far as the room goes. No event added: returns nothing, as there is no such packet.
  std::span<std::byte> finish(const M2egpHeader& header, std::size_t packet_bytes = 0);

  std::size_t event_count() const { return event_count_; }
  std::size_t used_bytes() const { return used_; }

 private:
  std::byte* data_;
  std::size_t room_bytes_;  // even
  std::size_t used_ = kMgpHeaderBytes;
  std::size_t event_count_ = 0;
};

// A sealed marker in the first 24 bytes of `room`. One of header.run_start and header.run_end must be set, not both
// (SetupError); header.event_count is ignored; header.sequence is that of the next data packet.
std::span<std::byte> make_m2egp_marker(std::span<std::byte> room, const M2egpHeader& header, std::uint64_t next_event_number);

}  // namespace nanet::wire
