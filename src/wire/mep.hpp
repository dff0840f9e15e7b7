// SPDX-License-Identifier: Apache-2.0
// MEP, NA62's packets of recorded raw data: readout board to farm, many triggered events a packet, and in each event the words of
// the board's time-to-digital converters (TDCs). Byte tables, and what of it is NA62's and what our reading, are in
// docs/formats-mep.md.
//
// Terms
//   timestamp   24.951059536 ns; tick: 1/256 of it (97.46 ps), the unit of a TDC's time.
//   TDC word    32 bits: time in ticks modulo 2^19, channel 0..31 of a TDC, TDC 0..3 of an FPGA, kind of edge.
//   FPGA block  an FPGA's frames (25 ns each, empty ones left out), each with its TDC words. A board has up to four FPGAs.
//   hit         a leading edge, with the trailing edge of the same channel that follows it, if there is one.
//   channel     board * 512 + (FPGA * 4 + TDC) * 32 + channel of the TDC; the board is the packet's source sub-ID.
//
// Views check everything once, in parse(); after that no accessor can fail or read past the end, so long as the bytes stay as they
// were. There is no checksum. Any address will do.
// Thread rules: any number of threads may read one view; a builder belongs to one thread. The builder is for tests and for making
// recordings: it allocates.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nanet/wire/little_endian.hpp"
#include "nanet/wire/parse_error.hpp"

namespace nanet::wire {

inline constexpr std::size_t kMepHeaderBytes = 8;
inline constexpr std::size_t kMepEventHeaderBytes = 8;
inline constexpr std::size_t kMepBytesMax = 65535;
inline constexpr std::size_t kMepEventsMax = 255;
inline constexpr std::size_t kTdcWordBytes = 4;
inline constexpr std::size_t kTdcWordsMax = kMepBytesMax / kTdcWordBytes;  // more than any event holds
inline constexpr std::size_t kFpgasMax = 4;                                // of a board
inline constexpr std::size_t kTdcChannels = 512;                           // of a board
inline constexpr std::int32_t kTdcTimeRange = 1 << 18;                     // ticks before and after an event that a word can tell

struct MepHeader {
  std::uint32_t first_event_number = 0;  // since start of burst, 24 bits
  std::uint8_t source_id = 0;
  std::uint8_t source_sub_id = 0;  // the board
  std::uint8_t event_count = 0;
};

struct MepEvent {
  std::uint32_t event_number = 0;  // since start of burst, 24 bits
  std::uint32_t timestamp = 0;
  bool last_of_burst = false;
  std::span<const std::byte> data;  // what follows the event header
};

class MepView {
 public:
  // Fills `view` when it returns ParseError::none, otherwise leaves it alone. Does not look into the events' data.
  static ParseError parse(std::span<const std::byte> payload, MepView& view);

  const MepHeader& header() const { return header_; }
  std::span<const std::byte> payload() const { return payload_; }

 private:
  std::span<const std::byte> payload_;
  MepHeader header_;
};

// Whole length of a packet as its header says; 0 when less than a header is there. For files of packets one after the other.
inline std::size_t mep_bytes(std::span<const std::byte> from) {
  return from.size() < kMepHeaderBytes ? 0 : load_le<std::uint16_t>(from.data() + 4);
}

// Calls visit(const MepEvent&) for every event.
template <class F>
inline void for_each_event(const MepView& view, F&& visit) {
  std::span<const std::byte> rest = view.payload().subspan(kMepHeaderBytes);
  for (std::uint32_t e = 0; e < view.header().event_count; ++e) {
    const std::size_t bytes = load_le<std::uint16_t>(rest.data());
    visit(MepEvent{.event_number = (view.header().first_event_number + e) & 0xFFFFFFu,
                   .timestamp = load_le<std::uint32_t>(rest.data() + 4),
                   .last_of_burst = (static_cast<unsigned>(rest[3]) & 0x80u) != 0,
                   .data = rest.subspan(kMepEventHeaderBytes, bytes - kMepEventHeaderBytes)});
    rest = rest.subspan(bytes);
  }
}

enum class TdcEdge : std::uint8_t { leading = 4, trailing = 5 };

struct TdcWord {
  std::uint32_t time_ticks;  // modulo 2^19
  std::uint16_t channel;     // in the board, 0..511
  TdcEdge edge;
};

// The data of one event as a board with TDCs writes it.
class TdcView {
 public:
  static ParseError parse(std::span<const std::byte> data, TdcView& view);

  std::uint8_t trigger_type() const { return static_cast<std::uint8_t>(data_[1]); }
  std::uint8_t source_sub_id() const { return static_cast<std::uint8_t>(data_[2]); }
  std::span<const std::byte> data() const { return data_; }

 private:
  std::span<const std::byte> data_;
};

// Calls visit(const TdcWord&) for every word of a leading or trailing edge; words of other kinds are passed over.
template <class F>
void for_each_tdc_word(const TdcView& view, F&& visit);

struct MepHit {
  std::uint16_t channel;     // board * 512 + channel in the board
  std::int32_t time_ticks;   // of the leading edge, from the event's timestamp; -kTdcTimeRange..kTdcTimeRange - 1
  std::int32_t width_ticks;  // to the trailing edge; 0: none came

  friend bool operator==(const MepHit&, const MepHit&) = default;
};

// Hits in the order of their leading edges in the data. Writes at most hits.size() of them and returns how many there are.
std::size_t tdc_hits(const TdcView& view, std::uint32_t timestamp, unsigned board, std::span<MepHit> hits);

class MepBuilder {
 public:
  // event numbers count up from header.first_event_number; header.event_count is ignored.
  void begin(const MepHeader& header);
  // False, with nothing changed, when the packet would be longer than 65535 bytes or have more than 255 events. Channels are
  // taken modulo 512, times modulo 2^19. Hits need not be in order.
  bool add_event(std::uint32_t timestamp, std::span<const MepHit> hits, std::uint8_t trigger_type = 0);
  // The same for data of another kind.
  bool add_event_data(std::uint32_t timestamp, std::span<const std::byte> data);
  // The whole packet, valid until the next begin(). The last event's flag says so if `last` does.
  enum class Burst : std::uint8_t { goes_on, ends };
  std::span<const std::byte> finish(Burst last = Burst::goes_on);

  std::size_t event_count() const { return event_count_; }

 private:
  std::vector<std::byte> bytes_;
  MepHeader header_;
  std::size_t event_count_ = 0;
  std::size_t last_event_offset_ = 0;
};

// ---------------------------------------------------------------------------------------------------------------------------------

namespace detail {

// Number of FPGA blocks after a board header: up to the highest flag.
inline std::size_t fpga_count(std::span<const std::byte> data) {
  return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(data[0])));
}

inline std::uint32_t tdc_load(std::span<const std::byte> data, std::size_t word) {
  return load_le<std::uint32_t>(data.data() + word * kTdcWordBytes);
}

// Words of the block of error words after an FPGA's frames. Some boards set the error bit at the very end without one.
inline std::size_t error_words(std::span<const std::byte> data, std::uint32_t fpga_header, std::size_t next_word) {
  const bool any = (fpga_header >> 24 & 1u) != 0 && next_word < data.size() / kTdcWordBytes;
  return any ? tdc_load(data, next_word) >> 16 : 0;
}

}  // namespace detail

template <class F>
inline void for_each_tdc_word(const TdcView& view, F&& visit) {
  const std::span<const std::byte> data = view.data();
  std::size_t next = 1;
  for (std::size_t f = detail::fpga_count(data); f > 0; --f) {
    const std::uint32_t fpga = detail::tdc_load(data, next++);
    const std::uint32_t first_tdc = 4 * (fpga >> 16 & 3u);
    for (std::uint32_t frame = fpga & 0xFFu; frame > 0; --frame) {
      const std::size_t end = next + (detail::tdc_load(data, next) >> 16);
      for (++next; next < end; ++next) {
        const std::uint32_t word = detail::tdc_load(data, next);
        const std::uint32_t kind = word >> 28;
        if (kind != 4 && kind != 5) continue;
        visit(TdcWord{.time_ticks = word & 0x7FFFFu,
                      .channel = static_cast<std::uint16_t>((first_tdc + (word >> 24 & 3u)) * 32 + (word >> 19 & 31u)),
                      .edge = static_cast<TdcEdge>(kind)});
      }
    }
    next += detail::error_words(data, fpga, next);
  }
}

}  // namespace nanet::wire
