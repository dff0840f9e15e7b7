// SPDX-License-Identifier: Apache-2.0
#include "nanet/wire/mtp.hpp"

#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::wire {

MtpWriter::MtpWriter(std::span<std::byte> room)
    : data_(room.data()), room_bytes_(static_cast<std::uint32_t>(std::min(room.size(), kMtpBytesMax))) {
  if (room.size() < kMtpHeaderBytes) {
    throw SetupError("no room for an MTP packet", "its header is 8 bytes, given " + std::to_string(room.size()),
                     "give the writer 1472 bytes");
  }
  begin(0, 0, 0);
}

ParseError MtpView::parse(std::span<const std::byte> payload, MtpView& view) {
  const std::size_t bytes = payload.size();
  if (bytes < kMtpHeaderBytes || bytes > kMtpBytesMax || bytes % kMtpWordBytes != 0) return ParseError::bad_length;
  if (load_le<std::uint16_t>(payload.data() + 4) != bytes) return ParseError::bad_length;
  std::size_t primitive_count = 0;
  for (std::size_t offset = kMtpHeaderBytes; offset < bytes; offset += kMtpWordBytes) {
    primitive_count += payload[offset + 3] != std::byte{0};
  }
  if (primitive_count != static_cast<std::size_t>(payload[6])) return ParseError::bad_format;
  view.data_ = payload.data();
  view.bytes_ = bytes;
  return ParseError::none;
}

}  // namespace nanet::wire
