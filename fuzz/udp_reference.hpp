// SPDX-License-Identifier: Apache-2.0
// UDP over IPv4 in a frame, read a second time from RFC 791 and RFC 768 and without a thought for speed: what the links' readers are compared with.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "fuzz_common.hpp"
#include "link/udp_frame.hpp"

namespace nanet::fuzz {

inline std::uint64_t big_endian(std::span<const std::byte> data, std::size_t offset, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value * 256 + std::to_integer<std::uint64_t>(data[offset + i]);
  return value;
}

struct Datagram {
  std::array<std::uint64_t, 4> flow;  // addresses from and to, ports from and to
  std::size_t offset;                 // of the payload
  std::size_t bytes;
};

inline std::array<std::uint64_t, 4> flow_of(const link::UdpFlow& flow) {
  return {flow.from_address, flow.to_address, flow.from_port, flow.to_port};
}

// None: it is no whole datagram.
inline std::optional<Datagram> datagram_in(std::span<const std::byte> frame) {
  std::size_t ip = 14;
  if (frame.size() < ip) return std::nullopt;
  std::uint64_t type = big_endian(frame, 12, 2);
  for (; type == 0x8100 || type == 0x88A8 || type == 0x9100; ip += 4) {
    if (frame.size() < ip + 4) return std::nullopt;
    type = big_endian(frame, ip + 2, 2);
  }
  if (type != 0x0800 || frame.size() < ip + 20) return std::nullopt;
  const std::uint64_t version = big_endian(frame, ip, 1) / 16;
  const std::size_t udp = ip + 4 * (big_endian(frame, ip, 1) % 16);
  const std::uint64_t said = big_endian(frame, ip + 2, 2);  // 0: a capture before the sender's hardware filled it in
  const std::size_t end = said == 0 ? frame.size() : ip + said;
  const bool is_whole = big_endian(frame, ip + 6, 2) % 0x4000 == 0;
  if (version != 4 || udp < ip + 20 || !is_whole || big_endian(frame, ip + 9, 1) != 17) return std::nullopt;
  if (end > frame.size() || udp + 8 > end) return std::nullopt;
  const std::size_t bytes = big_endian(frame, udp + 4, 2);
  if (bytes < 8 || udp + bytes > end) return std::nullopt;
  return Datagram{
      {big_endian(frame, ip + 12, 4), big_endian(frame, ip + 16, 4), big_endian(frame, udp, 2), big_endian(frame, udp + 2, 2)},
      udp + 8,
      bytes - 8};
}

// RFC 1071: 0 where a checksum among the bytes is right. An odd byte counts as the upper one of a word.
inline std::uint64_t ones_complement(std::initializer_list<std::span<const std::byte>> pieces, std::uint64_t sum = 0) {
  for (const auto piece : pieces) {
    for (std::size_t i = 0; i < piece.size(); ++i) sum += std::to_integer<std::uint64_t>(piece[i]) << (i % 2 == 0 ? 8 : 0);
  }
  while (sum > 0xFFFF) sum = sum % 0x10000 + sum / 0x10000;
  return 0xFFFF - sum;
}

// A frame cut into buffers of their own, each of exactly its size.
class Pieces {
 public:
  Pieces(std::span<const std::byte> frame, Bytes& sizes, std::size_t count_max) {
    const std::size_t count = 1 + sizes.take() % count_max;
    for (std::size_t i = 0; i + 1 < count; ++i) {
      const std::size_t bytes = std::min<std::size_t>(sizes.take(), frame.size());
      pieces_.emplace_back(frame.first(bytes));
      frame = frame.subspan(bytes);
    }
    pieces_.emplace_back(frame);
  }
  std::size_t size() const { return pieces_.size(); }
  std::span<std::byte> operator[](std::size_t index) { return pieces_[index].bytes(); }

 private:
  std::vector<Input> pieces_;
};

}  // namespace nanet::fuzz
