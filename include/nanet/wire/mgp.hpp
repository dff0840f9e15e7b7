// SPDX-License-Identifier: Apache-2.0
// MGP, the packets of a readout board: many events a packet, padded or packed. Byte tables are in docs/formats.md.
//
// Terms
//   padded   1168 bytes: 16 event slots of 8 header bytes and 32 hits of 16 bits.
//   packed   events one after the other, hits as 9-bit PM ids; up to 1472 bytes, even, zeros at the end.
//   marker   24 bytes, start or end of run, holds no event but the running number of the next one.
//   hit      16 bits: channel (board * 512 + PM id) in bits 10..0, time relative to the event in bits 15..11.
//
// A MgpView checks everything once, in parse(): length, address, format, counts, then the checksum. After that no accessor
// can fail or read past the end, so long as the bytes stay as they were. A view points into the packet and owns nothing.
// Unused slots of a padded packet are covered by the checksum but not looked at.
//
// Thread rules: any number of threads may read one view; a builder belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "nanet/host_device.hpp"
#include "nanet/wire/checksum.hpp"
#include "nanet/wire/little_endian.hpp"
#include "nanet/wire/parse_error.hpp"

namespace nanet::wire {

inline constexpr std::size_t kMgpHeaderBytes = 16;
inline constexpr std::size_t kMgpMarkerBytes = 24;
inline constexpr std::size_t kMgpEventHeaderBytes = 8;
inline constexpr std::size_t kPacketHeadBytes = kMgpHeaderBytes + kMgpEventHeaderBytes;  // what parse_head() wants
inline constexpr std::size_t kMgpEventsMax = 16;                                         // padded
inline constexpr std::size_t kMgpHitsMax = 32;                                           // padded, each event
inline constexpr std::size_t kMgpSlotBytes = kMgpEventHeaderBytes + 2 * kMgpHitsMax;     // 72
inline constexpr std::size_t kMgpPaddedBytes = kMgpHeaderBytes + kMgpEventsMax * kMgpSlotBytes;
inline constexpr std::size_t kMgpPackedBytesMax = 1472;  // one Ethernet frame of UDP
inline constexpr std::size_t kMgpPackedEventsMax = (kMgpPackedBytesMax - kMgpHeaderBytes) / kMgpEventHeaderBytes;  // 182
inline constexpr std::size_t kMgpPackedHitsMax = 255;
inline constexpr std::size_t kMgpScratchHits = 256;  // room that unpacking one event may write to
inline constexpr std::size_t kChannelsPerBoard = 512;
inline constexpr std::size_t kBoardsMax = 4;
static_assert(kMgpPaddedBytes == 1168);

enum class MgpLayout : std::uint8_t { padded = 1, packed = 2 };

struct MgpHeader {
  std::uint8_t source_id = 0;
  std::uint8_t source_sub_id = 0;  // packed: the board, 0..3
  MgpLayout layout = MgpLayout::padded;
  bool run_start = false;  // on a marker: a run starts; on a data packet only a hint
  bool run_end = false;
  std::uint8_t event_count = 0;    // 0: this is a marker
  std::uint32_t sequence = 0;      // packets of this source since start of run, modulo 2^32
  std::uint32_t send_time_ns = 0;  // sender's CLOCK_MONOTONIC, modulo 2^32
};

struct MgpEvent {
  std::uint32_t timestamp = 0;  // 24.951059536 ns
  std::uint8_t fine_time = 0;   // 1/256 of a timestamp
  std::uint8_t hit_count = 0;
  std::uint16_t event_number = 0;  // of this source since start of run, modulo 65536
};

NANET_HD constexpr std::uint16_t hit_channel(std::uint16_t hit) { return hit & 0x7FFu; }
// In 2/256 of a timestamp (0.195 ns), -16..15.
NANET_HD constexpr int hit_time(std::uint16_t hit) { return static_cast<std::int16_t>(hit) >> 11; }
// channel 0..2047, time -16..15; further bits are cut off.
NANET_HD constexpr std::uint16_t make_hit(unsigned channel, int time) {
  return static_cast<std::uint16_t>((channel & 0x7FFu) | (static_cast<unsigned>(time) & 0x1Fu) << 11);
}
NANET_HD constexpr std::size_t mgp_slot_offset(std::size_t event_index) { return kMgpHeaderBytes + event_index * kMgpSlotBytes; }
NANET_HD constexpr std::size_t mgp_packed_event_bytes(std::size_t hit_count) {
  return kMgpEventHeaderBytes + (9 * hit_count + 7) / 8;
}

NANET_HD constexpr MgpEvent event_from_word(std::uint64_t word) {
  return {static_cast<std::uint32_t>(word), static_cast<std::uint8_t>(word >> 32), static_cast<std::uint8_t>(word >> 40),
          static_cast<std::uint16_t>(word >> 48)};
}
// The event header at any address. A GPU reads whole aligned words of 4 bytes: up to the next multiple of 4 after the header.
NANET_HD inline MgpEvent load_event(const std::byte* from) {
#ifdef __CUDA_ARCH__
  return event_from_word(load_le64_by_words(from));
#else
  return event_from_word(load_le<std::uint64_t>(from));
#endif
}

class MgpView {
 public:
  // Fills `view` when it returns ParseError::none, otherwise leaves it alone.
  static ParseError parse(std::span<const std::byte> payload, MgpView& view);

  // The same of a packet whose first 24 bytes (all, of a shorter one) alone can be read, as where a NIC puts the rest into the memory of a GPU.
  // Not checked, and left to whoever can read it: the checksum, and the hit counts and lengths of all events but the first. A marker is whole.
  // The view has a header and a first event number or next event number; its payload() is the head. What parse() accepts, this does.
  static ParseError parse_head(std::span<const std::byte> head, std::size_t packet_bytes, MgpView& view);

  // The view of a packet that parse() has accepted before, without checking it again.
  static MgpView from_checked(std::span<const std::byte> payload);

  const MgpHeader& header() const { return header_; }
  std::span<const std::byte> payload() const { return {data_, bytes_}; }
  bool is_marker() const { return header_.event_count == 0; }

  // Marker only: full running number of the source's next event.
  std::uint64_t next_event_number() const { return load_le<std::uint64_t>(data_ + kMgpHeaderBytes); }
  // Data packets of either layout: running number of the first event, modulo 65536.
  std::uint16_t first_event_number() const { return load_le<std::uint16_t>(data_ + kMgpHeaderBytes + 6); }

  // Padded only, event_index < header().event_count.
  MgpEvent event(std::size_t event_index) const { return load_event(data_ + mgp_slot_offset(event_index)); }
  const std::uint16_t* slot_hits(std::size_t event_index) const {
    return reinterpret_cast<const std::uint16_t*>(data_ + mgp_slot_offset(event_index) + kMgpEventHeaderBytes);
  }
  std::span<const std::uint16_t> hits(std::size_t event_index) const {
    return {slot_hits(event_index), event(event_index).hit_count};
  }

 private:
  const std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  MgpHeader header_;
};

// Unpacks hit_count PM ids of 9 bits (LSB first) from `packed` to channels of a board. Reads nothing at or after `end`
// and needs mgp_packed_event_bytes(hit_count) - 8 bytes before it; writes up to the next multiple of 8 channels.
void unpack_ids(const std::byte* packed, const std::byte* end, std::size_t hit_count, unsigned board, std::uint16_t* channels);

// Walks the events of a packed data packet, first to last.
class MgpPackedCursor {
 public:
  explicit MgpPackedCursor(const MgpView& view)
      : next_(view.payload().data() + kMgpHeaderBytes),
        end_(view.payload().data() + view.payload().size()),
        begin_(view.payload().data()),
        events_left_(view.header().event_count),
        board_(view.header().source_sub_id) {}

  // False after the last event. `channels` has room for kMgpScratchHits.
  bool next(MgpEvent& event, std::uint16_t* channels) {
    if (events_left_ == 0) return false;
    --events_left_;
    event = load_event(next_);
    unpack_ids(next_ + kMgpEventHeaderBytes, end_, event.hit_count, board_, channels);
    next_ += mgp_packed_event_bytes(event.hit_count);
    return true;
  }
  // Of the event that next() will give, from the start of the payload.
  std::size_t offset() const { return static_cast<std::size_t>(next_ - begin_); }

 private:
  const std::byte* next_;
  const std::byte* end_;
  const std::byte* begin_;
  unsigned events_left_;
  unsigned board_;
};

// Calls visit(MgpEvent, const std::uint16_t* hits) for every event, alike for both layouts; no call for a marker.
// `scratch` has room for kMgpScratchHits; `hits` is valid until visit returns.
template <class F>
inline void for_each_event(const MgpView& view, std::uint16_t* scratch, F&& visit) {
  if (view.header().layout == MgpLayout::padded) {
    const std::size_t event_count = view.header().event_count;
    for (std::size_t i = 0; i < event_count; ++i) visit(view.event(i), view.slot_hits(i));
  } else {
    MgpPackedCursor cursor(view);
    MgpEvent event;
    while (cursor.next(event, scratch)) visit(event, static_cast<const std::uint16_t*>(scratch));
  }
}

// Writes one packet after another into the same room.
class MgpBuilder {
 public:
  // At least 24 bytes, for padded packets 1168; throws SetupError otherwise. Packed packets fill at most the room and 1472
  // bytes: to keep the packets of one size, give a room of that size.
  explicit MgpBuilder(std::span<std::byte> room);

  void begin(MgpLayout layout);
  // False, with nothing changed, when the event does not fit. A padded event with more than 32 hits never does, nor a
  // packed one with more than 255. event.hit_count is ignored. Packed keeps the PM id only: bits 8..0 of each hit.
  bool add_event(const MgpEvent& event, std::span<const std::uint16_t> hits);
  // The whole packet, sealed. Layout and event count are the builder's, the rest is the caller's. A packed packet is filled
  // with zeros up to packet_bytes (0: only to an even length). No event added: returns nothing, as there is no such packet.
  std::span<std::byte> finish(const MgpHeader& header, std::size_t packet_bytes = 0);

  std::size_t event_count() const { return event_count_; }
  // Of the event added last, from the start of the payload: what set_event_time() wants.
  std::size_t last_event_offset() const { return last_event_offset_; }

 private:
  std::span<std::byte> room_;
  MgpLayout layout_ = MgpLayout::padded;
  std::size_t used_ = 0;
  std::size_t event_count_ = 0;
  std::size_t last_event_offset_ = 0;
};

// A sealed marker in the first 24 bytes of `room`. One of header.run_start and header.run_end must be set, not both
// (SetupError); header.event_count is ignored; header.sequence is that of the next data packet.
std::span<std::byte> make_marker(std::span<std::byte> room, const MgpHeader& header, std::uint64_t next_event_number);

// For senders that prepare packets before the run and only change what must change. Call seal() after the last change.
inline void set_event_time(std::span<std::byte> payload, std::size_t event_offset, std::uint32_t timestamp, std::uint8_t fine_time,
                           std::uint16_t event_number) {
  std::byte* event = payload.data() + event_offset;
  store_le(event, timestamp);
  store_le(event + 4, fine_time);
  store_le(event + 6, event_number);
}
inline void set_header(std::span<std::byte> payload, std::uint32_t sequence, std::uint32_t send_time_ns) {
  store_le(payload.data() + 4, sequence);
  store_le(payload.data() + 8, send_time_ns);
}
inline void seal(std::span<std::byte> payload) { store_le(payload.data() + kChecksumOffset, mgp_checksum(payload)); }

}  // namespace nanet::wire
