// SPDX-License-Identifier: Apache-2.0
// Resend: the seam between the assembler, which knows what of a unit is missing, and a protocol that can ask the sender for it. The assembler looks for
// holes from time to time (ResendConfig), never for a packet; a Requester turns each into a request of its protocol. docs/design/assembler.md#resend.
//
// Thread rules: the receiving thread. No allocation after start; nothing here blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "nanet/engine/config.hpp"

namespace nanet::engine {

// A hole in a unit, or the end of one whose length no packet has said: then `begin` may be `end`.
struct MissingPart {
  std::uint64_t stream;
  std::uint64_t unit;
  std::uint32_t begin;         // [bytes]
  std::uint32_t end;           // [bytes]; with `open_end` what is known or assumed of the unit
  std::uint32_t piece_bytes;   // payload of each packet of the unit but the last, never 0
  std::uint32_t header_bytes;  // before the payload, in the unit's first packet
  bool open_end;               // also whatever says where the unit ends

  std::uint32_t first_packet() const { return begin / piece_bytes; }
  std::uint32_t packet_count() const { return (end - begin + piece_bytes - 1) / piece_bytes; }
};

class Requester {
 public:
  virtual ~Requester() = default;

  // May keep the request until flush().
  virtual void ask(const MissingPart& part) = 0;

  // Sends what is kept, or drops it where the network takes no more: a later look asks again.
  virtual void flush() = 0;
};

// Throws SetupError. name: of the link, for messages.
std::unique_ptr<Requester> make_requester(const ResendConfig& config, const std::string& name);

// GigE Vision's PACKETRESEND_CMD for the packets of one part of a block, whose payload packets are numbered from 1 and end with a trailer. A
// stream whose headers have 20 bytes has block IDs of 64 bits, and so has the command. Returns its length.
inline constexpr std::size_t kGvcpResendBytesMax = 28;
std::size_t write_gvcp_resend(std::span<std::byte, kGvcpResendBytesMax> out, const MissingPart& part, std::uint16_t request_id);

}  // namespace nanet::engine
