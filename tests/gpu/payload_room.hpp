// SPDX-License-Identifier: Apache-2.0
// The memory that a NIC writes payloads into and leaves them in, and the NIC: in the host's memory whole, in the GPU's without the head, which stays with the host.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gpu/cuda_types.hpp"
#include "nanet/flow/payload_memory.hpp"
#include "nanet/flow/region.hpp"

namespace nanet::gpu::rig {

using Payload = std::vector<std::byte>;

enum class Placing { ordinary, host, device };  // where the payloads of a CLOP are: in its buffers, or in place
const char* name_of(Placing placing);

class PayloadRoom {
 public:
  // Room for as many buffers, each with packets of so many bytes, holes included. Not for Placing::ordinary.
  PayloadRoom(Placing placing, std::uint32_t buffer_count, std::uint32_t buffer_bytes);

  flow::PayloadMemory memory() const;

  // Writes the packets of one buffer: the first `hole` bytes from the start of the room, each other one so far after the one before, and junk between them.
  // Returns what the CLOP's buffer is to hold.
  std::vector<PlacedPacket> write(std::uint32_t buffer_index, std::span<const Payload> packets, std::uint32_t hole);

 private:
  const Placing placing_;
  const std::uint32_t buffer_bytes_;
  std::optional<flow::Region> host_;
  DeviceArray<std::byte> device_;
  std::vector<std::byte> image_;  // of what the NIC writes into the GPU's memory
  std::unique_ptr<Stream> stream_;
};

}  // namespace nanet::gpu::rig
