// SPDX-License-Identifier: Apache-2.0
#include "wire/l0_decision.hpp"

#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::wire {

L0DecisionWriter::L0DecisionWriter(std::span<std::byte> room)
    : data_(room.data()), room_bytes_(static_cast<std::uint32_t>(std::min(room.size(), kL0DecisionBytesMax))) {
  if (room.size() < kL0DecisionHeaderBytes) {
    throw SetupError("no room for an L0 decision packet", "its header is 8 bytes, given " + std::to_string(room.size()),
                     "give the writer 1472 bytes");
  }
  begin(0, 0);
}

void L0DecisionWriter::begin(std::uint8_t source_sub_id, std::uint64_t first_trigger_number) {
  used_bytes_ = kL0DecisionHeaderBytes;
  source_sub_id_ = source_sub_id;
  const auto number = static_cast<std::uint32_t>(first_trigger_number) & kL0TriggerNumberMask;
  store_le(data_, number | std::uint32_t{kSourceL0tp} << 24);
}

std::span<const std::byte> L0DecisionWriter::finish() {
  store_le(data_ + 4, used_bytes_ | entry_count() << 16 | std::uint32_t{source_sub_id_} << 24);
  return {data_, used_bytes_};
}

ParseError L0DecisionView::parse(std::span<const std::byte> payload, L0DecisionView& view) {
  const std::size_t bytes = payload.size();
  if (bytes < kL0DecisionHeaderBytes || bytes > kL0DecisionBytesMax || bytes % kL0DecisionEntryBytes != 0)
    return ParseError::bad_length;
  if (load_le<std::uint16_t>(payload.data() + 4) != bytes) return ParseError::bad_length;
  if (static_cast<std::uint8_t>(payload[3]) != kSourceL0tp) return ParseError::bad_format;
  if (static_cast<std::size_t>(payload[6]) != (bytes - kL0DecisionHeaderBytes) / kL0DecisionEntryBytes)
    return ParseError::bad_format;
  view.data_ = payload.data();
  return ParseError::none;
}

}  // namespace nanet::wire
