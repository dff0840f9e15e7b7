// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/protocol_of.hpp"

namespace nanet::engine {
namespace {

struct RawProtocol {
  static constexpr bool has_sequence = false;
  static constexpr bool has_events = false;

  static Inspection inspect(std::span<const std::byte>, PacketFacts&) { return {true, flow::Counter::packets_accepted}; }
  static Inspection inspect_head(std::span<const std::byte>, std::size_t, PacketFacts&) {
    return {true, flow::Counter::packets_accepted};
  }
};

}  // namespace

constinit const Protocol kRaw = protocol_of<RawProtocol>("raw", "any datagrams, counted and handed over");

}  // namespace nanet::engine
