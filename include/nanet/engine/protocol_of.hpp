// SPDX-License-Identifier: Apache-2.0
// protocol_of, unit_protocol_of: from a protocol's type to the object that a configuration names. Include it where the protocol is defined, and nowhere else.
#pragma once

#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "nanet/engine/assembling_receiver.hpp"
#include "nanet/engine/event_builder.hpp"
#include "nanet/engine/protocol.hpp"
#include "nanet/engine/protocol_receiver.hpp"

namespace nanet::engine {

// The object whose functions a receiver or a builder calls.
template <class Type>
Type type_of(const Protocol& protocol) {
  if constexpr (std::is_constructible_v<Type, const Protocol&>) {
    return Type(protocol);
  } else {
    return Type();
  }
}

template <class Type>
constexpr Protocol protocol_of(std::string_view name, std::string_view help = {}) {
  Protocol made{
      .name = name, .receiver_of = nullptr, .read = nullptr, .scratch_hits = 0, .numbered = Type::has_sequence, .help = help};
  made.receiver_of = [](const Protocol& self, const ReceiverConfig& config, ReceiverParts parts) -> std::unique_ptr<Receiver> {
    return std::make_unique<ProtocolReceiver<Type>>(type_of<Type>(self), config, std::move(parts));
  };
  if constexpr (requires { Type::kMerged; }) made.merged = Type::kMerged;
  if constexpr (Type::has_events) {
    made.scratch_hits = Type::kScratchHits;
    made.read = [](const Protocol& self, EventBuilder& builder, const Completion& completion, flow::Clop& clop,
                   std::uint32_t first_source) { builder.read(type_of<Type>(self), completion, clop, first_source); };
  }
  return made;
}

// Of packets that are pieces of units. Decoder: what unit_facts.hpp says.
template <class Decoder>
constexpr Protocol unit_protocol_of(std::string_view name, std::string_view help = {}) {
  return {.name = name,
          .receiver_of = [](const Protocol& self, const ReceiverConfig& config, ReceiverParts parts) -> std::unique_ptr<Receiver> {
            return std::make_unique<AssemblingReceiver<Decoder>>(type_of<Decoder>(self), config, std::move(parts));
          },
          .read = nullptr,
          .scratch_hits = 0,
          .numbered = false,
          .help = help,
          .has_units = true,
          .units = [](const Protocol& self) { return unit_traits_of(type_of<Decoder>(self)); }};
}

}  // namespace nanet::engine
