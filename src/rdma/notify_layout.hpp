// SPDX-License-Identifier: Apache-2.0
// How a ring lies in its region: what the side that reads it and the side that fills it must agree on. The picture is in notify_ring.hpp.
//
// Thread rules: pure functions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "nanet/rdma/notify_ring.hpp"

namespace nanet::rdma {

inline constexpr std::uint64_t RING_MAGIC = 0x474e49524e41554eu;
inline constexpr std::uint32_t RING_VERSION = 1;
inline constexpr std::size_t CONSUMED_AT = 64, NOTICES_AT = 128;
inline constexpr std::uint64_t SEQUENCE_MASK = (std::uint64_t{1} << 48) - 1;

struct RingHead {
  std::uint64_t magic = RING_MAGIC;
  std::uint32_t version = RING_VERSION;
  std::uint32_t slot_count = 0;
  std::uint32_t payload_bytes_max = 0;
  std::uint32_t slot_bytes = 0;
};
static_assert(sizeof(RingHead) == 24 && std::endian::native == std::endian::little);

constexpr std::uint64_t rounded(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }
constexpr std::uint64_t slots_at(std::uint64_t slot_count) { return rounded(NOTICES_AT + 8 * slot_count); }
constexpr std::uint64_t notice(std::uint64_t number, std::size_t bytes) { return ((number + 1) & SEQUENCE_MASK) << 16 | bytes; }
constexpr bool is_of(std::uint64_t word, std::uint64_t number) { return word >> 16 == ((number + 1) & SEQUENCE_MASK); }

inline bool is_right(const NotifyRingConfig& config) {
  return config.slot_count >= 1 && config.slot_count <= 1u << 20 && config.payload_bytes_max >= 1 &&
         config.payload_bytes_max <= 65535;
}

// The ring that a head describes, in a region of so many bytes; none if it is no head of this version, or promises more than there is.
inline std::optional<NotifyRingConfig> ring_of(const RingHead& head, std::uint64_t region_bytes) {
  const NotifyRingConfig config{head.slot_count, head.payload_bytes_max};
  const bool is_ring = head.magic == RING_MAGIC && head.version == RING_VERSION && is_right(config) &&
                       head.slot_bytes == rounded(head.payload_bytes_max) && region_bytes >= notify_ring_bytes(config);
  return is_ring ? std::optional(config) : std::nullopt;
}

}  // namespace nanet::rdma
