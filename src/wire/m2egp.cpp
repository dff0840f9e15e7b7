// SPDX-License-Identifier: Apache-2.0
#include "nanet/wire/m2egp.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::wire {
namespace {

constexpr unsigned kRunStartBit = 0x10;
constexpr unsigned kRunEndBit = 0x20;

ParseError decode_header(const std::byte* data, M2egpHeader& header) {
  const auto first = load_le<std::uint32_t>(data);
  const unsigned format = first >> 16 & 0xFFu;
  header.source_id = static_cast<std::uint8_t>(first);
  header.source_sub_id = static_cast<std::uint8_t>(first >> 8);
  header.run_start = (format & kRunStartBit) != 0;
  header.run_end = (format & kRunEndBit) != 0;
  header.event_count = static_cast<std::uint8_t>(first >> 24);
  header.sequence = load_le<std::uint32_t>(data + 4);
  header.send_time_ns = load_le<std::uint32_t>(data + 8);
  if ((format & ~(kRunStartBit | kRunEndBit)) != kM2egpLayout) return ParseError::bad_format;
  // A marker says exactly one thing.
  if (header.event_count == 0 && header.run_start == header.run_end) return ParseError::bad_format;
  return ParseError::none;
}

ParseError check_events(std::span<const std::byte> payload, std::size_t event_count) {
  std::size_t offset = kMgpHeaderBytes;
  bool hit_counts_good = true;
  for (std::size_t i = 0; i < event_count; ++i) {
    if (payload.size() - offset < kMgpEventHeaderBytes) return ParseError::bad_length;
    const auto hit_count = static_cast<std::size_t>(payload[offset + 5]);
    const std::size_t event_bytes = m2egp_event_bytes(hit_count);
    if (payload.size() - offset < event_bytes) return ParseError::bad_length;
    hit_counts_good &= hit_count <= kM2egpHitsMax;
    offset += event_bytes;
  }
  return hit_counts_good ? ParseError::none : ParseError::bad_format;
}

void write_header(std::byte* data, const M2egpHeader& header, std::size_t event_count) {
  const unsigned format = kM2egpLayout | (header.run_start ? kRunStartBit : 0u) | (header.run_end ? kRunEndBit : 0u);
  store_le(data, header.source_id);
  store_le(data + 1, header.source_sub_id);
  store_le(data + 2, static_cast<std::uint8_t>(format));
  store_le(data + 3, static_cast<std::uint8_t>(event_count));
  store_le(data + 4, header.sequence);
  store_le(data + 8, header.send_time_ns);
  store_le(data + kChecksumOffset, std::uint32_t{0});
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
    error = check_events(payload, header.event_count);
    if (error != ParseError::none) return error;
  }
  if (load_le<std::uint32_t>(payload.data() + kChecksumOffset) != mgp_checksum(payload)) return ParseError::bad_checksum;
  view.data_ = payload.data();
  view.bytes_ = bytes;
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
  if (room.size() < kMgpMarkerBytes) {
    throw SetupError("no room for a packet", "a packet needs at least 24 bytes, given " + std::to_string(room.size()),
                     "give the builder 1472 bytes");
  }
}

std::span<std::byte> M2egpBuilder::finish(const M2egpHeader& header, std::size_t packet_bytes) {
  if (event_count_ == 0) return {};
  const std::size_t bytes = std::min(room_bytes_, (std::max(used_, packet_bytes) + 1) & ~std::size_t{1});
  std::memset(data_ + used_, 0, bytes - used_);
  write_header(data_, header, event_count_);
  const std::span<std::byte> payload(data_, bytes);
  seal(payload);
  return payload;
}

std::span<std::byte> make_m2egp_marker(std::span<std::byte> room, const M2egpHeader& header, std::uint64_t next_event_number) {
  if (room.size() < kMgpMarkerBytes) {
    throw SetupError("no room for a run marker", "it needs 24 bytes, given " + std::to_string(room.size()), "give it 24 bytes");
  }
  if (header.run_start == header.run_end) {
    throw SetupError("a run marker must say start or end", header.run_start ? "both are set" : "none is set",
                     "set exactly one of run_start and run_end");
  }
  write_header(room.data(), header, 0);
  store_le(room.data() + kMgpHeaderBytes, next_event_number);
  const auto payload = room.first(kMgpMarkerBytes);
  seal(payload);
  return payload;
}

}  // namespace nanet::wire
