// SPDX-License-Identifier: Apache-2.0
// Packets in place (contract.hpp, PlacedPacket): they come into shared memory from where the NIC wrote them, head and rest, and what no host could
// check is checked here. Only a buffer that is in place gets here; the functions are called, not taken in line, so that the others pay a branch and no registers.
//
// All threads of a block call these functions together.
#pragma once

#include <cuda_runtime.h>

#include "gpu/device_layout.hpp"
#include "gpu/kernels/ordered_access.cuh"
#include "wire/packet_check.hpp"

namespace nanet::gpu {

inline constexpr std::uint32_t kStagedVectors = kPacketBytesMax / 16 + 2;  // a packet may begin and end inside a vector of 16 bytes

// A packet in shared memory.
struct alignas(16) StagedPacket {
  std::byte bytes[kStagedVectors * 16];
};

// What a block knows of the staged packets of a buffer in place, and of all that it has refused since its books were given away.
struct PlacedMemory {
  PlacedPacket packets[kChunkPacketsMax];
  std::uint32_t bad_packets;
  std::uint32_t bad_events;
};

// The part of a payload that has to be fetched: `bytes` from first + skip on, to multiples of 16 in shared memory. With a head the payload begins at 8, so that what
// follows the 24 bytes of it does too.
struct PlacedRest {
  const std::byte* first;  // a multiple of 16
  std::uint32_t skip;
  std::uint32_t bytes;
  std::uint32_t to;
};

__device__ inline std::uint32_t placed_first_byte(const PlacedPacket& packet) { return packet.head_bytes != 0 ? 8 : 0; }

__device__ inline PlacedRest placed_rest(const PlacedPacket& packet, std::uint64_t to_device) {
  static_assert(PlacedPacket::head_bytes_max == 24 && (kStagedVectors - 2) * 16 == kPacketBytesMax);
  const std::uint32_t head = packet.head_bytes != 0 ? PlacedPacket::head_bytes_max : 0;
  const std::uint32_t bytes = min(std::uint32_t{packet.bytes}, kPacketBytesMax);
  const std::uint64_t address = packet.address + to_device;
  const auto skip = static_cast<std::uint32_t>(address % 16);
  return {reinterpret_cast<const std::byte*>(address - skip), skip, bytes > head ? bytes - head : 0, head != 0 ? 8 + head : 0};
}

// 16 bytes from byte `skip` on (0 to 15, the same in all lanes) of this lane's and the next lane's vector. The last lane gets nothing of use. One warp.
__device__ inline uint4 shift_vector(uint4 v, std::uint32_t skip) {
  const std::uint32_t words[8] = {v.x,
                                  v.y,
                                  v.z,
                                  v.w,
                                  __shfl_down_sync(0xffffffffu, v.x, 1),
                                  __shfl_down_sync(0xffffffffu, v.y, 1),
                                  __shfl_down_sync(0xffffffffu, v.z, 1),
                                  __shfl_down_sync(0xffffffffu, v.w, 1)};
  std::uint32_t by_eight[6];
  std::uint32_t by_four[5];
#pragma unroll
  for (std::uint32_t k = 0; k < 6; ++k) by_eight[k] = (skip & 8) != 0 ? words[k + 2] : words[k];
#pragma unroll
  for (std::uint32_t k = 0; k < 5; ++k) by_four[k] = (skip & 4) != 0 ? by_eight[k + 1] : by_eight[k];
  const std::uint32_t bits = skip % 4 * 8;
  return {__funnelshift_r(by_four[0], by_four[1], bits), __funnelshift_r(by_four[1], by_four[2], bits),
          __funnelshift_r(by_four[2], by_four[3], bits), __funnelshift_r(by_four[3], by_four[4], bits)};
}

__device__ inline PacketRef load_ref(const PacketRef* from) {
  const std::uint64_t word = load_relaxed_sys(reinterpret_cast<const std::uint64_t*>(from));
  return {static_cast<std::uint32_t>(word), static_cast<std::uint16_t>(word >> 32), static_cast<std::uint16_t>(word >> 48)};
}

// The index entries and records of packets first .. first + count - 1. Records lie one after another unless a packet was refused, so they are fetched from there
// together with the entries, and once more if an entry names another place.
template <std::uint32_t threads>
__device__ inline void load_records(const std::byte* buffer, const PacketRef* index, std::uint32_t first, std::uint32_t count,
                                    PacketRef* refs, PlacedMemory& m) {
  constexpr std::uint32_t kPieces = sizeof(PlacedPacket) / 16;
  static_assert(kPieces * kChunkPacketsMax <= threads);
  const std::uint32_t packet = threadIdx.x / kPieces;
  const std::uint32_t piece = threadIdx.x % kPieces * 16;
  const auto guessed = static_cast<std::uint32_t>((first + packet) * sizeof(PlacedPacket));
  uint4 loaded{};
  if (packet < count) loaded = load_relaxed_sys16(buffer + guessed + piece);
  if (threadIdx.x < count) refs[threadIdx.x] = load_ref(index + first + threadIdx.x);
  __syncthreads();
  if (packet < count) {
    if (refs[packet].offset != guessed) loaded = load_relaxed_sys16(buffer + refs[packet].offset + piece);
    reinterpret_cast<uint4*>(m.packets)[threadIdx.x] = loaded;
  }
  __syncthreads();
}

// Packets first .. first + count - 1 into `staged`, and what the index says of them into `refs`, but for the offset: that is where a payload begins in its
// StagedPacket. Loads of 16 bytes, as many at a time as there are threads, from any address: a warp loads 32 vectors in a row and stores the 31 that it has
// both neighbours of. They are strong loads, which no first-level cache answers: the memory may be the GPU's, and a NIC has written it.
template <std::uint32_t threads>
__device__ __noinline__ void stage_placed(const std::byte* buffer, const PacketRef* index, std::uint64_t to_device,
                                          std::uint32_t first, std::uint32_t count, PacketRef* refs, StagedPacket* staged,
                                          PlacedMemory& m) {
  load_records<threads>(buffer, index, first, count, refs, m);
  constexpr std::uint32_t kStoredLanes = 31;
  constexpr std::uint32_t kWarps = threads / 32;
  constexpr std::uint32_t kParts = (kStagedVectors - 2 + kStoredLanes - 1) / kStoredLanes;  // of a packet
  constexpr std::uint32_t kRounds = (kChunkPacketsMax * kParts + kWarps - 1) / kWarps;
  const std::uint32_t lane = threadIdx.x % 32;
  uint4 loaded[kRounds];
#pragma unroll
  for (std::uint32_t r = 0; r < kRounds; ++r) {
    const std::uint32_t packet = (r * kWarps + threadIdx.x / 32) / kParts;
    const std::uint32_t vector = (r * kWarps + threadIdx.x / 32) % kParts * kStoredLanes + lane;
    loaded[r] = {};
    if (packet >= count) continue;
    const PlacedRest rest = placed_rest(m.packets[packet], to_device);
    if (rest.bytes != 0 && vector * 16 < rest.skip + rest.bytes) loaded[r] = load_relaxed_sys16(rest.first + vector * 16);
  }
#pragma unroll
  for (std::uint32_t r = 0; r < kRounds; ++r) {
    const std::uint32_t packet = (r * kWarps + threadIdx.x / 32) / kParts;
    const std::uint32_t vector = (r * kWarps + threadIdx.x / 32) % kParts * kStoredLanes + lane;
    if (packet >= count) continue;  // the whole warp
    const PlacedRest rest = placed_rest(m.packets[packet], to_device);
    const uint4 shifted = shift_vector(loaded[r], rest.skip);
    if (lane < kStoredLanes && vector * 16 < rest.bytes) {
      *reinterpret_cast<uint4*>(staged[packet].bytes + rest.to + vector * 16) = shifted;
    }
  }
  constexpr std::uint32_t kHeadWords = PlacedPacket::head_bytes_max / 8;
  if (threadIdx.x < kHeadWords * count) {
    const PlacedPacket& packet = m.packets[threadIdx.x / kHeadWords];
    const std::uint32_t word = threadIdx.x % kHeadWords;
    if (packet.head_bytes != 0) {
      reinterpret_cast<std::uint64_t*>(staged[threadIdx.x / kHeadWords].bytes)[1 + word] = reinterpret_cast<const std::uint64_t*>(
          packet.head)[word];
    }
  }
  if (threadIdx.x < count) refs[threadIdx.x].offset = placed_first_byte(m.packets[threadIdx.x]);
}

// Whether a view would accept the packet, which lies at a multiple of 8. One warp; all lanes get the same.
__device__ inline bool packet_is_good(const std::byte* payload, std::uint32_t bytes) {
  if (wire::check_data_header(payload, bytes) != wire::ParseError::none) return false;
  const wire::LaneShare share{threadIdx.x % 32, 32};
  const bool events_good = wire::check_events(payload, bytes, share) == wire::ParseError::none;
  const wire::ChecksumShare mine = wire::checksum_share(payload, bytes, share);
  const wire::ChecksumShare sum{__reduce_add_sync(0xffffffffu, mine.first), __reduce_add_sync(0xffffffffu, mine.second)};
  return __all_sync(0xffffffffu, events_good) != 0 && wire::checksum_matches(payload, sum);
}

// Refuses staged packets that the host could not check and that are not good: they are counted, and here have no events. A warp a packet.
template <std::uint32_t threads>
__device__ __noinline__ void check_placed(std::uint32_t count, StagedPacket* staged, PlacedMemory& m) {
  for (std::uint32_t p = threadIdx.x / 32; p < count; p += threads / 32) {
    const PlacedPacket& packet = m.packets[p];
    if (packet.head_bytes == 0) continue;
    std::byte* const payload = staged[p].bytes + placed_first_byte(packet);
    const bool good = packet_is_good(payload, packet.bytes);
    __syncwarp();
    if (good || threadIdx.x % 32 != 0) continue;
    atomicAdd(&m.bad_packets, 1u);
    atomicAdd(&m.bad_events, static_cast<std::uint32_t>(payload[3]));
    payload[3] = std::byte{0};
  }
  __syncthreads();
}

}  // namespace nanet::gpu
