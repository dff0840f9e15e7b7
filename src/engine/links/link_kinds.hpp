// SPDX-License-Identifier: Apache-2.0
// The kinds of links that nanet has itself: one list, in the order in which they are named. NAME_kind() stands in NAME.cpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "nanet/config/describe.hpp"
#include "nanet/config/read.hpp"
#include "nanet/engine/kinds.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/multicast.hpp"

#define NANET_LINKS(X) X(udp) X(xdp) X(dpdk) X(ucx) X(gateware) X(torus) X(pcap)

namespace nanet::engine {

#define NANET_DECLARE(name) LinkKind name##_kind();
NANET_LINKS(NANET_DECLARE)
#undef NANET_DECLARE

// Of a buffer whose payloads stay in place: one record for each payload of packet_bytes_max that it would have held, and for one batch at least.
std::uint32_t records_bytes(const LinkConfig& config);

// Packets that the receiver may hold at once: what all buffers name, and the batch that it works on.
std::uint32_t lent_max(const LinkConfig& config);

// A key that a kind has no use for, whether it is set all the same, and why.
struct UselessKey {
  const char* key;
  bool is_set;
  std::string why;
  std::string suggestion = {};  // empty: remove it
};
std::optional<config::Problem> refuse_useless(const LinkConfig& config, std::initializer_list<UselessKey> keys);

// What only sockets have.
std::optional<config::Problem> refuse_socket_keys(const LinkConfig& config);

// Of a link whose buffers take its longest packet.
LinkRoom packet_room(const LinkConfig& config);

// A kind that joins no multicast group.
std::optional<config::Problem> refuse_groups(const LinkConfig& config);

// A kind that joins them.
std::optional<config::Problem> check_group(const LinkConfig& config);

// Packets longer than the link takes.
std::optional<config::Problem> refuse_longer(const LinkConfig& config, std::uint32_t bytes_most, std::string why,
                                             std::string suggestion);

// A link that takes whole frames, whose payloads no kernel puts together.
std::optional<config::Problem> refuse_long_packets(const LinkConfig& config);

// The section of a link of a kind that has a T; its defaults if there is none. Throws SetupError.
template <class T>
T section_of(const LinkConfig& config) {
  if (!config.section.has_value()) return {};
  if (const auto* const section = std::any_cast<T>(&config.section)) return *section;
  throw SetupError("link " + config.name + " has the section of another kind", "its endpoint is " + config.endpoint,
                   "give it one of its own kind");
}

template <config::IsComponent T>
LinkSection section_for(std::string_view help) {
  return {
      .help = help, .keys = config::entry<T>(), .read = [](const config::Value& keys) -> std::any { return config::read<T>(keys); }};
}

// The senders of a group to join, if every one of LinkConfig::senders is a single address; none: packets of any are to come, and the receiver
// refuses those of strangers.
std::vector<link::IpAddress> group_senders(const LinkConfig& config, const link::Endpoint& listen);

// A kind's configuration with what all kinds of links that listen on an address share.
template <typename Config>
Config complete(Config kind, const LinkConfig& config, LinkParts&& parts) {
  kind.name = config.name;
  link::Endpoint listen = link::parse_endpoint(config.endpoint);
  if constexpr (requires { kind.group_join; }) {
    kind.group_join.senders = group_senders(config, listen);
    kind.group_sending = parts.group_sending;
  }
  kind.listen = std::move(listen);
  kind.destinations = std::move(parts.destinations);
  kind.packet_bytes_max = config.packet_bytes_max;
  return kind;
}

}  // namespace nanet::engine
