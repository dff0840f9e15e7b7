// SPDX-License-Identifier: Apache-2.0
#include "nanet/wire/mgp.hpp"

#include <algorithm>
#include <bit>

#include "packet_header.hpp"
#include "wire/packet_check.hpp"

namespace nanet::wire {
namespace {

ParseError decode_header(const std::byte* data, MgpHeader& header) {
  load_header(data, header);
  const unsigned layout = static_cast<unsigned>(data[2]) & kLayoutMask;
  if (layout != 1 && layout != 2) return ParseError::bad_format;
  header.layout = static_cast<MgpLayout>(layout);
  if (layout == 2 && header.source_sub_id >= kBoardsMax) return ParseError::bad_format;
  return flags_are_good(data, header) ? ParseError::none : ParseError::bad_format;
}

// Four 9-bit ids in bits 35..0 to four 16-bit lanes: first in pairs to 32-bit lanes, then each pair.
std::uint64_t spread_four_ids(std::uint64_t packed) {
  const std::uint64_t pairs = (packed & 0x3FFFFu) | (packed & 0xFFFFC0000u) << 14;
  return (pairs & 0x000001FF000001FFu) | (pairs & 0x0003FE000003FE00u) << 7;
}

void unpack_eight_ids(const std::byte* packed, std::uint64_t board_lanes, std::uint16_t* channels) {
  const std::uint64_t first = spread_four_ids(load_le<std::uint64_t>(packed)) | board_lanes;
  const std::uint64_t second = spread_four_ids(load_le<std::uint64_t>(packed + 1) >> 28) | board_lanes;
  std::memcpy(channels, &first, sizeof first);
  std::memcpy(channels + 4, &second, sizeof second);
}

void pack_ids(std::span<const std::uint16_t> hits, std::byte* to) {
  std::uint64_t waiting = 0;
  unsigned waiting_bits = 0;
  for (const std::uint16_t hit : hits) {
    waiting |= std::uint64_t{hit & 0x1FFu} << waiting_bits;
    for (waiting_bits += 9; waiting_bits >= 8; waiting_bits -= 8, waiting >>= 8) *to++ = static_cast<std::byte>(waiting);
  }
  if (waiting_bits != 0) *to = static_cast<std::byte>(waiting);
}

// What 24 bytes tell: the first event is whole in its header, and there is room for the headers of the others.
ParseError check_head(std::span<const std::byte> head, std::size_t packet_bytes, const MgpHeader& header) {
  const auto first_hit_count = static_cast<std::size_t>(head[kMgpHeaderBytes + 5]);
  if (header.layout == MgpLayout::padded) {
    if (packet_bytes != kMgpPaddedBytes) return ParseError::bad_length;
    return header.event_count <= kMgpEventsMax && first_hit_count <= kMgpHitsMax ? ParseError::none : ParseError::bad_format;
  }
  return head_bytes_fit(packet_bytes, mgp_packed_event_bytes(first_hit_count), header.event_count) ? ParseError::none
                                                                                                   : ParseError::bad_length;
}

}  // namespace

ParseError MgpView::parse(std::span<const std::byte> payload, MgpView& view) {
  const std::size_t bytes = payload.size();
  const auto address = std::bit_cast<std::uintptr_t>(payload.data());
  if (bytes < kMgpHeaderBytes || bytes > kMgpPackedBytesMax || ((bytes | address) & 1u) != 0) return ParseError::bad_length;
  MgpHeader header;
  ParseError error = decode_header(payload.data(), header);
  if (error != ParseError::none) return error;
  if (header.event_count == 0) {
    if (bytes != kMgpMarkerBytes) return ParseError::bad_length;
  } else {
    error = header.layout == MgpLayout::padded ? check_padded_events(payload.data(), bytes, header.event_count)
                                               : check_packed_events(payload.data(), bytes, header.event_count);
    if (error != ParseError::none) return error;
  }
  if (!checksum_is_good(payload)) return ParseError::bad_checksum;
  view.data_ = payload.data();
  view.bytes_ = bytes;
  view.header_ = header;
  return ParseError::none;
}

ParseError MgpView::parse_head(std::span<const std::byte> head, std::size_t packet_bytes, MgpView& view) {
  if (packet_bytes <= kPacketHeadBytes) return parse(head.first(packet_bytes), view);
  const auto address = std::bit_cast<std::uintptr_t>(head.data());
  if (packet_bytes > kMgpPackedBytesMax || ((packet_bytes | address) & 1u) != 0) return ParseError::bad_length;
  MgpHeader header;
  ParseError error = decode_header(head.data(), header);
  if (error != ParseError::none) return error;
  if (header.event_count == 0) return ParseError::bad_length;  // a marker is 24 bytes
  error = check_head(head, packet_bytes, header);
  if (error != ParseError::none) return error;
  view.data_ = head.data();
  view.bytes_ = kPacketHeadBytes;
  view.header_ = header;
  return ParseError::none;
}

MgpView MgpView::from_checked(std::span<const std::byte> payload) {
  MgpView view;
  decode_header(payload.data(), view.header_);
  view.data_ = payload.data();
  view.bytes_ = payload.size();
  return view;
}

void unpack_ids(const std::byte* packed, const std::byte* end, std::size_t hit_count, unsigned board, std::uint16_t* channels) {
  const std::uint64_t board_lanes = (board & 3u) * (kChannelsPerBoard * 0x0001000100010001u);
  std::size_t done = 0;
  for (; done < hit_count && end - packed >= 9; done += 8, packed += 9) {  // eight ids are nine bytes
    unpack_eight_ids(packed, board_lanes, channels + done);
  }
  if (done < hit_count) {  // fewer than eight ids at the very end of the packet
    std::array<std::byte, 9> last{};
    std::memcpy(last.data(), packed, static_cast<std::size_t>(end - packed));
    unpack_eight_ids(last.data(), board_lanes, channels + done);
  }
}

MgpBuilder::MgpBuilder(std::span<std::byte> room) : room_(room) {
  require_packet_room(room.size());
  begin(room.size() < kMgpPaddedBytes ? MgpLayout::packed : MgpLayout::padded);
}

void MgpBuilder::begin(MgpLayout layout) {
  if (layout == MgpLayout::padded && room_.size() < kMgpPaddedBytes) {
    throw SetupError("no room for a padded packet", "it needs 1168 bytes, given " + std::to_string(room_.size()),
                     "give the builder 1472 bytes or use packed packets");
  }
  layout_ = layout;
  used_ = kMgpHeaderBytes;
  event_count_ = 0;
  last_event_offset_ = 0;
  if (layout == MgpLayout::padded) std::memset(room_.data(), 0, kMgpPaddedBytes);
}

bool MgpBuilder::add_event(const MgpEvent& event, std::span<const std::uint16_t> hits) {
  std::size_t bytes;
  if (layout_ == MgpLayout::padded) {
    if (hits.size() > kMgpHitsMax || event_count_ == kMgpEventsMax) return false;
    bytes = kMgpSlotBytes;
  } else {
    const std::size_t limit = std::min(room_.size(), kMgpPackedBytesMax) & ~std::size_t{1};
    bytes = mgp_packed_event_bytes(hits.size());
    if (hits.size() > kMgpPackedHitsMax || limit - used_ < bytes) return false;
  }
  std::byte* to = room_.data() + used_;
  store_le(to, event.timestamp);
  store_le(to + 4, event.fine_time);
  store_le(to + 5, static_cast<std::uint8_t>(hits.size()));
  store_le(to + 6, event.event_number);
  if (layout_ == MgpLayout::packed) {
    pack_ids(hits, to + kMgpEventHeaderBytes);
  } else if (!hits.empty()) {
    std::memcpy(to + kMgpEventHeaderBytes, hits.data(), hits.size_bytes());
  }
  last_event_offset_ = used_;
  used_ += bytes;
  ++event_count_;
  return true;
}

std::span<std::byte> MgpBuilder::finish(const MgpHeader& header, std::size_t packet_bytes) {
  if (event_count_ == 0) return {};
  std::size_t bytes = kMgpPaddedBytes;
  if (layout_ == MgpLayout::packed) {
    const std::size_t limit = std::min(room_.size(), kMgpPackedBytesMax) & ~std::size_t{1};
    bytes = std::min(limit, (std::max(used_, packet_bytes) + 1) & ~std::size_t{1});
    std::memset(room_.data() + used_, 0, bytes - used_);
  }
  write_header(room_.data(), header, static_cast<unsigned>(layout_), event_count_);
  const auto payload = room_.first(bytes);
  seal(payload);
  return payload;
}

std::span<std::byte> make_marker(std::span<std::byte> room, const MgpHeader& header, std::uint64_t next_event_number) {
  return write_marker(room, header, static_cast<unsigned>(header.layout), next_event_number);
}

}  // namespace nanet::wire
