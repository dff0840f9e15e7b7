// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/udp.hpp"

#include "engine/links/link_kinds.hpp"

namespace nanet::engine {
namespace {

constexpr std::size_t kSuperPacketBytes = 65536;

std::unique_ptr<link::Link> open_udp(const LinkConfig& config, LinkParts parts) {
  link::UdpConfig udp{.rx_socket_bytes = config.socket_buffer_bytes,
                      .busy_poll_us = config.busy_poll_us,
                      .gro = config.gro ? link::Coalesce::on : link::Coalesce::off,
                      .source_port = link::SourcePort::listen};  // answers sent through a link come from where it listens
  udp.interface = config.interface;
  return std::make_unique<link::UdpLink>(complete(std::move(udp), config, std::move(parts)));
}

LinkRoom room_for(const LinkConfig& config) {
  return config.gro ? LinkRoom{kSuperPacketBytes, "with gro, one super-packet"} : packet_room(config);
}

}  // namespace

LinkKind udp_kind() { return {.name = "udp", .open = open_udp, .endpoint_help = "udp://ADDRESS:PORT, a socket", .room = room_for}; }

}  // namespace nanet::engine
