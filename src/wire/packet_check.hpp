// SPDX-License-Identifier: Apache-2.0
// What MgpView::parse and M2egpView::parse ask of a data packet, by plain functions over its bytes: for lanes of a GPU, into whose memory a NIC
// has written the packet past the CPU, and for those two.
//
// Terms
//   share   what one of several lanes looks at. A packet is good if every lane's share is, and if the checksum's shares of all lanes together match.
//
// A packet is good here exactly if one of the two views accepts it, it is no marker, and it has at most 1472 bytes. tests/unit/wire/packet_check_test.cpp
// compares them.
//
// On the host nothing is read outside the payload, and it may lie at any address. A GPU reads the checksum's words in pieces of 4 bytes: there the payload starts at
// a multiple of 4.
//
// Thread rules: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/wire/checksum.hpp"
#include "nanet/wire/little_endian.hpp"
#include "nanet/wire/m2egp.hpp"
#include "nanet/wire/mgp.hpp"
#include "nanet/wire/parse_error.hpp"
#include "wire/event_walk.hpp"

namespace nanet::wire {

struct LaneShare {
  std::uint32_t lane = 0;
  std::uint32_t lanes = 1;
};

// ---- events: each looks at nothing at or after payload + bytes, whatever the packet says.

NANET_HD inline ParseError check_padded_events(const std::byte* payload, std::size_t bytes, std::size_t event_count,
                                               LaneShare share = {}) {
  if (bytes != kMgpPaddedBytes) return ParseError::bad_length;
  if (event_count > kMgpEventsMax) return ParseError::bad_format;
  bool hit_counts_good = true;
  for (std::size_t i = share.lane; i < event_count; i += share.lanes) {
    hit_counts_good &= static_cast<std::size_t>(payload[mgp_slot_offset(i) + 5]) <= kMgpHitsMax;
  }
  return hit_counts_good ? ParseError::none : ParseError::bad_format;
}

NANET_HD inline ParseError check_packed_events(const std::byte* payload, std::size_t bytes, std::size_t event_count) {
  std::size_t offset = kMgpHeaderBytes;
  for (std::size_t i = 0; i < event_count; ++i) {
    if (bytes - offset < kMgpEventHeaderBytes) return ParseError::bad_length;
    const std::size_t event_bytes = mgp_packed_event_bytes(static_cast<std::size_t>(payload[offset + 5]));
    if (bytes - offset < event_bytes) return ParseError::bad_length;
    offset += event_bytes;
  }
  return ParseError::none;
}

NANET_HD inline ParseError check_merged_events(const std::byte* payload, std::size_t bytes, std::size_t event_count) {
  std::size_t offset = kMgpHeaderBytes;
  bool hit_counts_good = true;
  for (std::size_t i = 0; i < event_count; ++i) {
    if (bytes - offset < kMgpEventHeaderBytes) return ParseError::bad_length;
    const auto hit_count = static_cast<std::size_t>(payload[offset + 5]);
    const std::size_t event_bytes = m2egp_event_bytes(hit_count);
    if (bytes - offset < event_bytes) return ParseError::bad_length;
    hit_counts_good &= hit_count <= kM2egpHitsMax;
    offset += event_bytes;
  }
  return hit_counts_good ? ParseError::none : ParseError::bad_format;
}

// ---- a whole packet

// The header alone, and the length against it.
NANET_HD inline ParseError check_data_header(const std::byte* payload, std::size_t bytes) {
  if (bytes < kMgpHeaderBytes || bytes > kMgpPackedBytesMax || bytes % 2 != 0) return ParseError::bad_length;
  const auto format = static_cast<unsigned>(payload[2]);
  const unsigned layout = format & 0x0Fu;
  if (layout < 1 || layout > kM2egpLayout || (format & 0xC0u) != 0) return ParseError::bad_format;
  if (layout == 2 && static_cast<std::size_t>(payload[1]) >= kBoardsMax) return ParseError::bad_format;
  return payload[3] == std::byte{0} ? ParseError::bad_format : ParseError::none;
}

// A lane's share of the events of a packet whose header is good. Events that lie one after another are all the first lane's.
NANET_HD inline ParseError check_events(const std::byte* payload, std::size_t bytes, LaneShare share = {}) {
  const auto format = static_cast<PacketFormat>(static_cast<unsigned>(payload[2]) & 0x0Fu);
  const auto event_count = static_cast<std::size_t>(payload[3]);
  if (format == PacketFormat::padded) return check_padded_events(payload, bytes, event_count, share);
  if (share.lane != 0) return ParseError::none;
  return format == PacketFormat::packed ? check_packed_events(payload, bytes, event_count)
                                        : check_merged_events(payload, bytes, event_count);
}

// A lane's summands of the two sums of the checksum, each below 2^17: added up over all lanes (up to 2^15 of them) they are those of
// mgp_checksum, but for multiples of 65535.
struct ChecksumShare {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};

// Precondition: bytes is even and 16 to 1472.
NANET_HD inline ChecksumShare checksum_share(const std::byte* payload, std::uint32_t bytes, LaneShare share = {}) {
  constexpr std::uint32_t kSkipped = kChecksumOffset / 4;  // the piece with the checksum itself
  const std::uint32_t words = (bytes - static_cast<std::uint32_t>(kChecksumBytes)) / 2;
  std::uint32_t first = 0;
  std::uint64_t second = 0;
  for (std::uint32_t piece = share.lane; piece < bytes / 4; piece += share.lanes) {
    if (piece == kSkipped) continue;
    const auto two = load_le_aligned<std::uint32_t>(payload + 4 * piece);
    const std::uint32_t left = words - 2 * (piece < kSkipped ? piece : piece - 1);  // words from the first of the two on
    first += (two & 0xFFFFu) + (two >> 16);
    second += std::uint64_t{left} * (two & 0xFFFFu) + std::uint64_t{left - 1} * (two >> 16);
  }
  if (bytes % 4 != 0 && bytes / 4 % share.lanes == share.lane) {
    const auto last = load_le_aligned<std::uint16_t>(payload + bytes - 2);
    first += last;
    second += last;
  }
  // 2^32 is 1 modulo 65535.
  return {first % 65535u, static_cast<std::uint32_t>(second) % 65535u + static_cast<std::uint32_t>(second >> 32) % 65535u};
}

// sum: of all lanes' shares.
NANET_HD inline bool checksum_matches(const std::byte* payload, ChecksumShare sum) {
  return load_le_aligned<std::uint32_t>(payload + kChecksumOffset) == ((sum.second % 65535u) << 16 | sum.first % 65535u);
}

}  // namespace nanet::wire
