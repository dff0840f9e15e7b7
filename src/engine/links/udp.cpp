// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/udp.hpp"

#include "engine/links/link_kinds.hpp"

namespace nanet::engine {
namespace {

constexpr std::size_t kSuperPacketBytes = 65536;

std::unique_ptr<link::Link> open_udp(const LinkConfig& config, LinkParts parts) {
  auto udp = section_of<link::UdpConfig>(config);
  udp.rx_socket_bytes = config.socket_buffer_bytes;
  udp.busy_poll_us = config.busy_poll_us;
  udp.gro = config.gro ? link::Coalesce::on : link::Coalesce::off;
  udp.source_port = link::SourcePort::listen;  // answers sent through a link come from where it listens
  udp.queue = config.queue;
  udp.interface = config.interface;
  return std::make_unique<link::UdpLink>(complete(std::move(udp), config, std::move(parts)));
}

LinkRoom room_for(const LinkConfig& config) {
  return config.gro ? LinkRoom{kSuperPacketBytes, "with gro, one super-packet"} : packet_room(config);
}

std::uint32_t udp_queues(const LinkConfig& config) { return section_of<link::UdpConfig>(config).queues; }

std::optional<config::Problem> udp_rules(const LinkConfig& config) {
  const auto udp = section_of<link::UdpConfig>(config);
  if (auto broken = udp.check()) return broken;
  if (auto broken = check_group(config)) return broken;
  if (udp.steer_by == link::SteerBy::key && udp.key_at + udp.key_bytes > config.packet_bytes_max) {
    return config::Problem{
        "key_at", "the key of link '" + config.name + "' ends at " + std::to_string(udp.key_at + udp.key_bytes) + " B",
        "packet_bytes_max is " + std::to_string(config.packet_bytes_max), "lower key_at, or raise packet_bytes_max"};
  }
  if (udp.queues == 1 || !link::parse_endpoint(config.endpoint).address.is_multicast()) return std::nullopt;
  return config::Problem{"queues", "link '" + config.name + "' has " + std::to_string(udp.queues) + " queues and listens to a group",
                         "each socket of a group gets every packet", "set queues: 1, or let each sender have a group of its own"};
}

}  // namespace

LinkKind udp_kind() {
  return {.name = "udp",
          .open = open_udp,
          .endpoint_help = "udp://ADDRESS:PORT, a socket",
          .section = section_for<link::UdpConfig>("What only a udp:// link needs; null: one queue"),
          .broken_rule = udp_rules,
          .room = room_for,
          .queue_count = udp_queues};
}

}  // namespace nanet::engine
