// SPDX-License-Identifier: Apache-2.0
// Any bytes as a data packet, as they are and with a checksum that fits: the lanes of a GPU say what the views say, and the checksum is the
// definition's, with vectors and without, at any length and from any address.
//
// Input: one byte for the number of lanes, then the packet.
#include <array>

#include "../tests/unit/wire/packet_check_reference.hpp"
#include "fuzz_common.hpp"

namespace {

using namespace nanet::wire;
using nanet::fuzz::require;

void check(std::span<const std::byte> payload, std::uint32_t lanes) {
  const ParseError by_view = test::by_view(payload);
  const ParseError by_lanes = test::by_lanes(payload, lanes);
  if (payload.size() >= kMgpHeaderBytes && payload[3] == std::byte{0}) {  // whatever else is wrong with a marker
    require(by_view != ParseError::none && by_lanes != ParseError::none, "a marker is no data packet");
    return;
  }
  require(by_lanes == by_view, "lanes and views say the same");
}

void check_checksum(std::span<const std::byte> bytes) {
  const std::uint32_t expected = test::slow_fletcher32(bytes);
  require(fletcher32(bytes) == expected, "Fletcher-32 by vectors");
  require(fletcher32_scalar(bytes.data(), bytes.size()) == expected, "Fletcher-32 without");
  if (bytes.size() < 16) return;
  require(mgp_checksum(bytes) == test::slow_mgp_checksum(bytes), "a packet's checksum by vectors");
  require(mgp_checksum_scalar(bytes.data(), bytes.size()) == mgp_checksum(bytes), "a packet's checksum without");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array<std::uint32_t, 4> kLanes{1, 4, 7, 32};
  if (size < 1) return 0;
  const std::uint32_t lanes = kLanes[data[0] % kLanes.size()];
  nanet::fuzz::Input input(data + 1, size - 1);
  check_checksum(input.bytes());
  check_checksum(input.bytes().subspan(input.bytes().size() / 3));
  check(input.bytes(), lanes);
  if (input.bytes().size() >= kMgpHeaderBytes && input.bytes().size() % 2 == 0) {
    seal(input.bytes());
    check(input.bytes(), lanes);
  }
  return 0;
}
