// SPDX-License-Identifier: Apache-2.0
#include "km3_emulate/packets.hpp"

#include <algorithm>
#include <cstring>

#include "nanet/km3/hit.hpp"

namespace nanet::km3_emulate {
namespace {

constexpr std::uint32_t kMagic = 0x4B4D3346;

}  // namespace

std::uint32_t record_bytes(Kind kind, std::uint32_t samples) {
  switch (kind) {
    case Kind::hits: return 6;
    case Kind::sampled: return 8 + samples;
    case Kind::hydrophone_0:
    case Kind::hydrophone_1: return 3;
    case Kind::instruments: return 12;
  }
  return 1;
}

void CutUnit::cut(std::span<const std::byte> unit, std::uint32_t record, std::uint32_t packet_bytes_max) {
  unit_bytes_ = static_cast<std::uint32_t>(unit.size());
  piece_bytes_ = (packet_bytes_max - kHeaderBytes) / record * record;
  packet_count_ = std::max(1u, (unit_bytes_ + piece_bytes_ - 1) / piece_bytes_);
  bytes_.resize(std::size_t{packet_count_} * kHeaderBytes + unit_bytes_);
  for (std::uint32_t k = 0; k < packet_count_; ++k) {
    const std::uint32_t at = k * piece_bytes_;
    const std::uint32_t count = std::min(piece_bytes_, unit_bytes_ - at);
    if (count != 0) std::memcpy(&bytes_[std::size_t{k} * (kHeaderBytes + piece_bytes_) + kHeaderBytes], &unit[at], count);
  }
}

std::span<const std::byte> CutUnit::packet(std::uint32_t index, const PacketHead& head, std::uint32_t sequence) {
  const std::uint32_t offset = index * piece_bytes_;
  const bool last = index + 1 == packet_count_;
  std::byte* const to = &bytes_[std::size_t{index} * (kHeaderBytes + piece_bytes_)];
  km3::store_be(to, kMagic);
  to[4] = static_cast<std::byte>(head.tower);
  to[5] = static_cast<std::byte>(head.floor);
  to[6] = static_cast<std::byte>(head.kind);
  to[7] = static_cast<std::byte>((last ? 1 : 0) | (head.untimed ? 2 : 0));
  km3::store_be(to + 8, head.run);
  km3::store_be(to + 12, head.slice);
  km3::store_be(to + 16, static_cast<std::uint32_t>(head.gps_ns / 1'000'000'000));
  km3::store_be(to + 20, static_cast<std::uint32_t>(head.gps_ns % 1'000'000'000 / 16));
  km3::store_be(to + 24, offset);
  km3::store_be(to + 28, sequence);
  return {to, kHeaderBytes + std::min(piece_bytes_, unit_bytes_ - offset)};
}

}  // namespace nanet::km3_emulate
