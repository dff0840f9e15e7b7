// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/set_up.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "nanet/link/endpoint.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {

link::UdpConfig udp_config(const LinkConfig& config) {
  return {
      .name = config.name,
      .listen = link::parse_endpoint(config.endpoint),
      .rx_socket_bytes = config.socket_buffer_bytes,
      .packet_bytes_max = config.packet_bytes_max,
      .busy_poll_us = config.busy_poll_us,
      .gro = config.gro ? link::Coalesce::on : link::Coalesce::off,
  };
}

flow::ClopConfig clop_config(const LinkConfig& config, std::uint8_t clop_id, std::size_t min_room_bytes) {
  const MemoryRegionConfig& region = config.memory_region;
  if (region.buffer_bytes < min_room_bytes) {
    throw SetupError("memory region " + region.name + " has too small buffers",
                     "link " + config.name + " needs " + std::to_string(min_room_bytes) + " bytes for one batch",
                     "set buffer_bytes to at least that, better four times as much");
  }
  return {
      .name = region.name,
      .id = clop_id,
      .buffer_count = region.buffer_count,
      .buffer_bytes = region.buffer_bytes,
      .index_capacity = std::max(region.buffer_bytes / 64, 2 * config.batch_size),
      .huge_pages = region.huge_pages,
  };
}

flow::Router make_router(const LinkConfig& config, std::uint16_t clop_id) {
  std::vector<flow::Route> routes;
  for (const SourceConfig& source : config.sources) {
    routes.push_back({.source_id = source.source_id,
                      .source_sub_id = source.source_sub_id,
                      .source = static_cast<std::uint16_t>(routes.size()),
                      .clop = clop_id});
  }
  return flow::Router(std::move(routes));
}

std::size_t source_count(const LinkConfig& config) { return std::max<std::size_t>(config.sources.size(), 1); }

}  // namespace nanet::engine
