// SPDX-License-Identifier: Apache-2.0
// L0 decision packets: the triggers of an L0 trigger processor, one UDP datagram each. This format is ours (NA62's L0TP tells its
// triggers by other means); byte tables are in docs/formats-l0.md.
//
// The header looks like that of MTP, so that source and length stand where a reader of MTP expects them; instead of a time it begins with
// the number of the first trigger, so that a receiver knows each trigger's number and sees what was lost.
//
// Thread rules: any number of threads may read one view; a writer belongs to one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nanet/wire/little_endian.hpp"
#include "nanet/wire/mtp.hpp"
#include "nanet/wire/parse_error.hpp"

namespace nanet::wire {

inline constexpr std::size_t kL0DecisionHeaderBytes = 8;
inline constexpr std::size_t kL0DecisionEntryBytes = 8;
inline constexpr std::size_t kL0DecisionBytesMax = 1472;
inline constexpr std::size_t kL0DecisionEntriesMax = (kL0DecisionBytesMax - kL0DecisionHeaderBytes) / kL0DecisionEntryBytes;  // 183
inline constexpr std::uint32_t kL0TriggerNumberMask = 0xFFFFFF;
inline constexpr std::uint8_t kL0CalibrationBit = 0x80;

struct L0DecisionEntry {
  std::uint32_t timestamp = 0;     // 24.951059536 ns
  std::uint8_t fine_time = 0;      // 1/256 of a timestamp
  std::uint8_t matched_kind = 0;   // bits 6..0: inputs with a primitive; bit 7: calibration
  std::uint16_t trigger_word = 0;  // physics: bit i, mask i fired; calibration: the primitive ID

  friend bool operator==(const L0DecisionEntry&, const L0DecisionEntry&) = default;
};

// Writes one packet after another into the same room, which is at least 8 bytes (SetupError).
class L0DecisionWriter {
 public:
  explicit L0DecisionWriter(std::span<std::byte> room);

  // Entries are numbered on from first_trigger_number, of which 24 bits are sent.
  void begin(std::uint8_t source_sub_id, std::uint64_t first_trigger_number);

  // False, with nothing changed, when the packet is full (183 entries or the room).
  bool add(const L0DecisionEntry& entry) {
    if (used_bytes_ + kL0DecisionEntryBytes > room_bytes_) return false;
    std::byte* const to = data_ + used_bytes_;
    store_le(to, entry.timestamp);
    store_le(to + 4, static_cast<std::uint32_t>(entry.fine_time | std::uint32_t{entry.matched_kind} << 8 |
                                                std::uint32_t{entry.trigger_word} << 16));
    used_bytes_ += static_cast<std::uint32_t>(kL0DecisionEntryBytes);
    return true;
  }

  // Completes the header; more entries may follow and finish() be called again.
  std::span<const std::byte> finish();

  std::uint32_t entry_count() const {
    return (used_bytes_ - static_cast<std::uint32_t>(kL0DecisionHeaderBytes)) / static_cast<std::uint32_t>(kL0DecisionEntryBytes);
  }

 private:
  std::byte* data_;
  std::uint32_t room_bytes_;
  std::uint32_t used_bytes_ = kL0DecisionHeaderBytes;
  std::uint8_t source_sub_id_ = 0;
};

// A checked packet; points into it and owns nothing.
class L0DecisionView {
 public:
  // bad_length: below 8 or above 1472 bytes, not a multiple of 8, or not what the length field says. bad_format: source is not
  // the L0TP, or the number of entries is not what the length makes it. There is no checksum.
  // Fills `view` when it returns ParseError::none, otherwise leaves it alone.
  static ParseError parse(std::span<const std::byte> payload, L0DecisionView& view);

  std::uint32_t first_trigger_number() const { return load_le<std::uint32_t>(data_) & kL0TriggerNumberMask; }
  std::uint8_t source_sub_id() const { return static_cast<std::uint8_t>(data_[7]); }
  std::uint32_t entry_count() const { return static_cast<std::uint32_t>(data_[6]); }

  // Precondition: index < entry_count().
  L0DecisionEntry entry(std::uint32_t index) const {
    const std::byte* const from = data_ + kL0DecisionHeaderBytes + index * kL0DecisionEntryBytes;
    return {load_le<std::uint32_t>(from), static_cast<std::uint8_t>(from[4]), static_cast<std::uint8_t>(from[5]),
            load_le<std::uint16_t>(from + 6)};
  }

 private:
  const std::byte* data_ = nullptr;
};

}  // namespace nanet::wire
