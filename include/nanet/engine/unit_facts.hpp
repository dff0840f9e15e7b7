// SPDX-License-Identifier: Apache-2.0
// UnitFacts: what a format says of a packet that carries a piece of a unit. A decoder is an object with
//   Inspection decode(std::span<const std::byte> packet, UnitFacts& facts);
//   UnitTime unit_time() const;    // not needed where packets have no time
//   bool counts_packets() const;   // not needed where none says a number of packets (UnitFacts::place_is_index) for its place
// which fills `facts` of a packet that it accepts, and neither throws nor reads past the packet. It need not compare what the packet says of its unit
// with anything: the assembler does.
#pragma once

#include <cstdint>

namespace nanet::engine {

struct UnitFacts {
  std::uint64_t stream = 0;      // who sends: each has units of its own
  std::uint64_t unit = 0;        // which unit of that stream
  std::uint64_t place = 0;       // of the payload's first byte in the unit
  std::uint64_t unit_bytes = 0;  // length of the unit; 0: not said
  std::uint64_t time = 0;        // of the unit; 0: not said
  std::uint32_t payload_offset = 0;
  std::uint32_t payload_bytes = 0;
  bool ends_unit = false;  // the unit ends with this payload: says its length, too

  // Of formats that count packets where others count bytes. All packets of a unit but the last then have payloads of one length.
  std::uint64_t unit_packets = 0;  // with payload; 0: not said
  bool place_is_index = false;     // `place` is the number of packets before this one
};

// What a format says of the times of all packets.
struct UnitTime {
  double tick_ns = 0;   // of UnitFacts::time; 0: packets have no time
  bool merges = false;  // units of several streams belong together by it, where a configuration does not say otherwise
};

// What a configuration has to know of a format.
struct UnitTraits {
  UnitTime time = {};
  bool counts_packets = false;
};

template <class Decoder>
UnitTraits unit_traits_of(const Decoder& decoder) {
  UnitTraits traits;
  if constexpr (requires { decoder.unit_time(); }) traits.time = decoder.unit_time();
  if constexpr (requires { decoder.counts_packets(); }) traits.counts_packets = decoder.counts_packets();
  return traits;
}

}  // namespace nanet::engine
