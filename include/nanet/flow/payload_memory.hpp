// SPDX-License-Identifier: Apache-2.0
// Memory that a NIC writes payloads into and that a consumer reads them from, without a copy between (contract.hpp, PlacedPacket).
#pragma once

#include <cstddef>
#include <span>

#include "nanet/contract.hpp"

namespace nanet::flow {

struct PayloadMemory {
  std::span<std::byte> memory;         // empty: there is none, payloads are written into the buffers of a CLOP
  MemoryKind kind = MemoryKind::host;  // device: addresses of a GPU's memory, which the host cannot read

  bool in_place() const { return !memory.empty(); }
};

}  // namespace nanet::flow
