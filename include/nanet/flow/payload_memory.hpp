// SPDX-License-Identifier: Apache-2.0
// Memory that a NIC writes payloads into and that a consumer reads them from, without a copy between (contract.hpp, PlacedPacket), and the
// one function by which a consumer on the host finds a payload, wherever it is. docs/design/payloads-in-place.md.
//
// Thread rules: pure functions on a buffer that is the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nanet/contract.hpp"

namespace nanet::flow {

struct PayloadMemory {
  std::span<std::byte> memory;         // empty: there is none, payloads are written into the buffers of a CLOP
  MemoryKind kind = MemoryKind::host;  // device: addresses of a GPU's memory, which the host cannot read

  bool in_place() const { return !memory.empty(); }
};

// The record of a packet in a buffer that holds them. `ref` by value: by reference, g++ 13 warns that the result might refer to it.
inline const PlacedPacket& placed_packet(std::span<const std::byte> buffer, PacketRef ref) {
  return *reinterpret_cast<const PlacedPacket*>(buffer.data() + ref.offset);
}

// The payload of one packet of the buffer of `completion`. In place: not of packets whose payloads lie in the memory of a GPU.
inline std::span<const std::byte> payload_of(const Completion& completion, std::span<const std::byte> buffer, const PacketRef& ref) {
  if ((completion.status & status::in_place) == 0) return buffer.subspan(ref.offset, ref.bytes);
  return {reinterpret_cast<const std::byte*>(placed_packet(buffer, ref).address), ref.bytes};
}

}  // namespace nanet::flow
