// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/set_up.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nanet/link/dpdk.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/ucx.hpp"
#include "nanet/link/udp.hpp"
#include "nanet/link/xdp.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {

namespace {

link::UdpConfig udp_config(const LinkConfig& config) {
  return {
      .rx_socket_bytes = config.socket_buffer_bytes,
      .busy_poll_us = config.busy_poll_us,
      .gro = config.gro ? link::Coalesce::on : link::Coalesce::off,
      .source_port = link::SourcePort::listen,  // answers by way of a link come from where it listens
  };
}

// What every kind of link is told alike.
template <typename Config>
Config complete(Config kind, const LinkConfig& config, link::Endpoint listen, std::vector<link::Endpoint> destinations) {
  kind.name = config.name;
  kind.listen = std::move(listen);
  kind.destinations = std::move(destinations);
  kind.packet_bytes_max = config.packet_bytes_max;
  return kind;
}

}  // namespace

std::unique_ptr<link::Link> open_link(const LinkConfig& config, std::vector<link::Endpoint> destinations) {
  constexpr std::string_view kFile = "pcap://";
  if (config.endpoint.starts_with(kFile)) {
    link::PcapLinkConfig pcap = config.pcap;
    pcap.name = config.name;
    pcap.path = config.endpoint.substr(kFile.size());
    pcap.packet_bytes_max = config.packet_bytes_max;
    return std::make_unique<link::PcapLink>(pcap);
  }
  link::Endpoint listen = link::parse_endpoint(config.endpoint);
  const std::string scheme = listen.scheme;
  if (scheme == "udp") {
    link::UdpConfig udp = complete(udp_config(config), config, std::move(listen), std::move(destinations));
    udp.interface = config.interface;
    return std::make_unique<link::UdpLink>(udp);
  }
  if (scheme == "xdp") {
    link::XdpConfig xdp = complete(config.xdp, config, std::move(listen), std::move(destinations));
    xdp.interface = config.interface;
    xdp.busy_poll_us = config.busy_poll_us;
    return link::open_xdp(xdp);
  }
  if (scheme == "dpdk") return link::open_dpdk(complete(config.dpdk, config, std::move(listen), std::move(destinations)));
  if (scheme == "ucx") return link::open_ucx(complete(config.ucx, config, std::move(listen), std::move(destinations)));
  throw SetupError("link " + config.name + " cannot listen on " + config.endpoint, "no link serves '" + scheme + "'",
                   "use udp://, xdp://, dpdk://, ucx:// or pcap://FILE");
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
