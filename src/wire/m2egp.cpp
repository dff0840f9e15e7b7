// SPDX-License-Identifier: Apache-2.0
#include "nanet/wire/m2egp.hpp"

#include <algorithm>
#include <bit>

#include "packet_header.hpp"
#include "wire/packet_check.hpp"

namespace nanet::wire {
namespace {

ParseError decode_header(const std::byte* data, M2egpHeader& header) {
  load_header(data, header);
  if ((static_cast<unsigned>(data[2]) & kLayoutMask) != kM2egpLayout) return ParseError::bad_format;
  return flags_are_good(data, header) ? ParseError::none : ParseError::bad_format;
}

}  // namespace

ParseError M2egpView::parse(std::span<const std::byte> payload, M2egpView& view) {
  const std::size_t bytes = payload.size();
  const auto address = std::bit_cast<std::uintptr_t>(payload.data());
  if (bytes < kMgpHeaderBytes || bytes > kM2egpBytesMax || ((bytes | address) & 1u) != 0) return ParseError::bad_length;
  M2egpHeader header;
  ParseError error = decode_header(payload.data(), header);
  if (error != ParseError::none) return error;
  if (header.event_count == 0) {
    if (bytes != kMgpMarkerBytes) return ParseError::bad_length;
  } else {
    error = check_merged_events(payload.data(), bytes, header.event_count);
    if (error != ParseError::none) return error;
  }
  if (!checksum_is_good(payload)) return ParseError::bad_checksum;
  view.data_ = payload.data();
  view.bytes_ = bytes;
  view.header_ = header;
  return ParseError::none;
}

ParseError M2egpView::parse_head(std::span<const std::byte> head, std::size_t packet_bytes, M2egpView& view) {
  if (packet_bytes <= kPacketHeadBytes) return parse(head.first(packet_bytes), view);
  const auto address = std::bit_cast<std::uintptr_t>(head.data());
  if (packet_bytes > kM2egpBytesMax || ((packet_bytes | address) & 1u) != 0) return ParseError::bad_length;
  M2egpHeader header;
  const ParseError error = decode_header(head.data(), header);
  if (error != ParseError::none) return error;
  if (header.event_count == 0) return ParseError::bad_length;  // a marker is 24 bytes
  const auto first_hit_count = static_cast<std::size_t>(head[kMgpHeaderBytes + 5]);
  if (!head_bytes_fit(packet_bytes, m2egp_event_bytes(first_hit_count), header.event_count)) return ParseError::bad_length;
  if (first_hit_count > kM2egpHitsMax) return ParseError::bad_format;
  view.data_ = head.data();
  view.bytes_ = kPacketHeadBytes;
  view.header_ = header;
  return ParseError::none;
}

M2egpView M2egpView::from_checked(std::span<const std::byte> payload) {
  M2egpView view;
  decode_header(payload.data(), view.header_);
  view.data_ = payload.data();
  view.bytes_ = payload.size();
  return view;
}

M2egpBuilder::M2egpBuilder(std::span<std::byte> room)
    : data_(room.data()), room_bytes_(std::min(room.size(), kM2egpBytesMax) & ~std::size_t{1}) {
  require_packet_room(room.size());
}

std::span<std::byte> M2egpBuilder::finish(const M2egpHeader& header, std::size_t packet_bytes) {
  if (event_count_ == 0) return {};
  const std::size_t bytes = std::min(room_bytes_, (std::max(used_, packet_bytes) + 1) & ~std::size_t{1});
  std::memset(data_ + used_, 0, bytes - used_);
  write_header(data_, header, kM2egpLayout, event_count_);
  const std::span<std::byte> payload(data_, bytes);
  seal(payload);
  return payload;
}

std::span<std::byte> make_m2egp_marker(std::span<std::byte> room, const M2egpHeader& header, std::uint64_t next_event_number) {
  return write_marker(room, header, kM2egpLayout, next_event_number);
}

}  // namespace nanet::wire
