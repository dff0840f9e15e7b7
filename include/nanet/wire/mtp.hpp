// SPDX-License-Identifier: Apache-2.0
// MTP, NA62's packets of primitives, exactly as that experiment sends them: readout board or trigger node to L0TP, one UDP
// datagram. Byte tables are in docs/formats.md.
//
// Terms
//   primitive        one answer: timestamp (24.951059536 ns), fine time (1/256 of it), 16-bit primitive ID.
//   TSH, TSL         the high 24 and low 8 bits of a timestamp. TSH counts 6.4 us.
//   timestamp word   a word whose top byte is 0: the TSH of the primitives after it, until the next one. The header's TSH
//                    holds for the primitives before the first. So a primitive ID below 256 cannot be sent.
//
// Thread rules: any number of threads may read one view; a writer belongs to one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nanet/host_device.hpp"
#include "nanet/wire/little_endian.hpp"
#include "nanet/wire/parse_error.hpp"

namespace nanet::wire {

inline constexpr std::size_t kMtpHeaderBytes = 8;
inline constexpr std::size_t kMtpWordBytes = 4;
inline constexpr std::size_t kMtpBytesMax = 1472;
inline constexpr std::size_t kMtpPrimitivesMax = 255;
inline constexpr std::uint16_t kPrimitiveIdMin = 0x0100;

// NA62's source IDs.
inline constexpr std::uint8_t kSourceCedar = 0x04;
inline constexpr std::uint8_t kSourceGtk = 0x08;
inline constexpr std::uint8_t kSourceChanti = 0x0C;
inline constexpr std::uint8_t kSourceLav = 0x10;
inline constexpr std::uint8_t kSourceStraw = 0x14;
inline constexpr std::uint8_t kSourceChod = 0x18;
inline constexpr std::uint8_t kSourceRich = 0x1C;
inline constexpr std::uint8_t kSourceNewChod = 0x20;
inline constexpr std::uint8_t kSourceLkr = 0x24;
inline constexpr std::uint8_t kSourceMuv1 = 0x28;
inline constexpr std::uint8_t kSourceMuv2 = 0x2C;
inline constexpr std::uint8_t kSourceMuv3 = 0x30;
inline constexpr std::uint8_t kSourceSac = 0x34;
inline constexpr std::uint8_t kSourceHasc = 0x3C;
inline constexpr std::uint8_t kSourceL0tp = 0x40;

struct Primitive {
  std::uint32_t timestamp = 0;  // 24.951059536 ns
  std::uint8_t fine_time = 0;   // 1/256 of a timestamp
  std::uint16_t id = 0;         // at least kPrimitiveIdMin

  friend bool operator==(const Primitive&, const Primitive&) = default;
};

// The words of a packet; every writer makes them here. Header: TSH of the first primitive and source ID, then length, number of
// primitives and sub-ID.
NANET_HD constexpr std::uint32_t mtp_header_time_word(std::uint8_t source_id, std::uint32_t first_timestamp) {
  return first_timestamp >> 8 | std::uint32_t{source_id} << 24;
}
NANET_HD constexpr std::uint32_t mtp_header_length_word(std::uint32_t packet_bytes, std::uint32_t primitive_count,
                                                        std::uint8_t source_sub_id) {
  return packet_bytes | primitive_count << 16 | std::uint32_t{source_sub_id} << 24;
}
// Stands before a primitive whose TSH is not that of the primitive (or header) before it.
NANET_HD constexpr std::uint32_t mtp_timestamp_word(std::uint32_t timestamp) { return timestamp >> 8; }
NANET_HD constexpr bool mtp_needs_timestamp_word(std::uint32_t timestamp, std::uint32_t timestamp_before) {
  return timestamp >> 8 != timestamp_before >> 8;
}
NANET_HD constexpr std::uint32_t mtp_primitive_word(const Primitive& primitive) {
  return std::uint32_t{primitive.fine_time} | (primitive.timestamp & 0xFFu) << 8 | std::uint32_t{primitive.id} << 16;
}

// Writes one packet after another into the same room, which is at least 8 bytes (SetupError).
class MtpWriter {
 public:
  explicit MtpWriter(std::span<std::byte> room);

  void begin(std::uint8_t source_id, std::uint8_t source_sub_id, std::uint32_t first_timestamp) {
    last_timestamp_ = first_timestamp;
    used_bytes_ = kMtpHeaderBytes;
    primitive_count_ = 0;
    source_sub_id_ = source_sub_id;
    store_le(data_, mtp_header_time_word(source_id, first_timestamp));
  }

  // False, with nothing changed, when the packet is full (255 primitives, 1472 bytes or the room) or when the primitive's ID
  // is below kPrimitiveIdMin, which the format cannot carry.
  bool add(Primitive primitive) { return add(std::span(&primitive, 1)) == 1; }

  // The same for many, from the front up to the first that cannot be added; returns how many were. The state is kept in local
  // variables, since the bytes written could be any object's as far as a compiler knows.
  std::size_t add(std::span<const Primitive> primitives) {
    const std::uint32_t count_max = static_cast<std::uint32_t>(kMtpPrimitivesMax) - primitive_count_;
    std::uint32_t last_timestamp = last_timestamp_;
    std::uint32_t used_bytes = used_bytes_;
    std::uint32_t added = 0;
    for (const Primitive& primitive : primitives) {
      const bool new_time = mtp_needs_timestamp_word(primitive.timestamp, last_timestamp);
      const std::uint32_t word_bytes = new_time ? 2 * kMtpWordBytes : kMtpWordBytes;
      if (used_bytes + word_bytes > room_bytes_ || added == count_max || primitive.id < kPrimitiveIdMin) break;
      if (new_time) {
        last_timestamp = primitive.timestamp;
        store_le(data_ + used_bytes, mtp_timestamp_word(primitive.timestamp));
        used_bytes += kMtpWordBytes;
      }
      store_le(data_ + used_bytes, mtp_primitive_word(primitive));
      used_bytes += kMtpWordBytes;
      ++added;
    }
    last_timestamp_ = last_timestamp;
    used_bytes_ = used_bytes;
    primitive_count_ += added;
    return added;
  }

  // Completes the header; more primitives may follow and finish() be called again.
  std::span<const std::byte> finish() {
    store_le(data_ + 4, mtp_header_length_word(used_bytes_, primitive_count_, source_sub_id_));
    return {data_, used_bytes_};
  }

  std::uint32_t primitive_count() const { return primitive_count_; }

 private:
  std::byte* data_;
  std::uint32_t room_bytes_;
  std::uint32_t used_bytes_ = kMtpHeaderBytes;
  std::uint32_t primitive_count_ = 0;
  std::uint32_t last_timestamp_ = 0;  // of the header or of the last timestamp word
  std::uint8_t source_sub_id_ = 0;
};

// A checked packet; points into it and owns nothing.
class MtpView {
 public:
  // bad_length: below 8 or above 1472 bytes, not a multiple of 4, or not what the length field says. bad_format: the number
  // of primitives is not what the header says. MTP has no checksum: who sent it is for the caller to judge.
  // Fills `view` when it returns ParseError::none, otherwise leaves it alone.
  static ParseError parse(std::span<const std::byte> payload, MtpView& view);

  std::uint8_t source_id() const { return static_cast<std::uint8_t>(data_[3]); }
  std::uint8_t source_sub_id() const { return static_cast<std::uint8_t>(data_[7]); }
  std::uint8_t primitive_count() const { return static_cast<std::uint8_t>(data_[6]); }
  // The header's TSH as a timestamp, low 8 bits zero.
  std::uint32_t first_timestamp() const { return load_le<std::uint32_t>(data_) << 8; }
  std::span<const std::byte> payload() const { return {data_, bytes_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Calls visit(Primitive) for every primitive in order.
template <class F>
inline void for_each_primitive(const MtpView& view, F&& visit) {
  const std::span<const std::byte> payload = view.payload();
  std::uint32_t time_high = view.first_timestamp();
  for (std::size_t offset = kMtpHeaderBytes; offset < payload.size(); offset += kMtpWordBytes) {
    const auto word = load_le<std::uint32_t>(payload.data() + offset);
    if (word >> 24 == 0) {
      time_high = word << 8;
    } else {
      visit(Primitive{time_high | (word >> 8 & 0xFFu), static_cast<std::uint8_t>(word), static_cast<std::uint16_t>(word >> 16)});
    }
  }
}

}  // namespace nanet::wire
