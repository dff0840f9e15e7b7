// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/set_up.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nanet/link/dpdk.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/gateware.hpp"
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

// Of a buffer whose payloads stay in place: one record for each payload of packet_bytes_max that it would have held, and for one batch at least.
std::uint32_t records_bytes(const LinkConfig& config) {
  constexpr std::uint32_t kPageBytes = 4096;
  const std::uint32_t packets = std::max(config.memory_region.buffer_bytes / config.packet_bytes_max, config.batch_size);
  const auto bytes = static_cast<std::uint32_t>(packets * sizeof(PlacedPacket));
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// Packets that the receiver may hold at once: what all buffers name, and the batch in its hands.
std::uint32_t lent_max(const LinkConfig& config) {
  const std::uint64_t records = records_bytes(config) / sizeof(PlacedPacket);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(config.memory_region.buffer_count * records + config.batch_size, UINT32_MAX));
}

link::DpdkConfig dpdk_config(const LinkConfig& config) {
  link::DpdkConfig dpdk = config.dpdk;
  dpdk.packet_bytes_max = config.packet_bytes_max;
  dpdk.lent_max = lent_max(config);
  if (dpdk.payload_memory == link::DpdkMemory::gpu) dpdk.payloads = link::Payloads::in_place;  // no one here could copy them
  return dpdk;
}

}  // namespace

bool wants_gpu_memory(const LinkConfig& config) {
  return config.endpoint.starts_with("dpdk://") && config.dpdk.payload_memory == link::DpdkMemory::gpu;
}

std::unique_ptr<gpu::DeviceMemory> make_gpu_memory(const LinkConfig& config, int device) {
  const std::string name = "payloads of link " + config.name;
#ifdef NANET_CUDA
  return gpu::DeviceMemory::make(device, link::dpdk_gpu_bytes(dpdk_config(config)), name);
#else
  throw SetupError(name + " cannot lie in the memory of GPU " + std::to_string(device), "nanet was built without CUDA",
                   "run make cuda, or set payload_memory: host");
#endif
}

std::unique_ptr<link::Link> open_link(const LinkConfig& config, std::vector<link::Endpoint> destinations,
                                      std::span<std::byte> gpu_memory) {
  constexpr std::string_view kFile = "pcap://";
  if (config.endpoint.starts_with(kFile)) {
    link::PcapLinkConfig pcap = config.pcap;
    pcap.name = config.name;
    pcap.path = config.endpoint.substr(kFile.size());
    pcap.packet_bytes_max = config.packet_bytes_max;
    return std::make_unique<link::PcapLink>(pcap);
  }
  link::Endpoint listen = link::parse_endpoint(config.endpoint);
  link::refuse_multicast(config.name, listen);
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
    xdp.lent_max = lent_max(config);
    return link::open_xdp(xdp);
  }
  if (scheme == "dpdk") {
    link::DpdkConfig dpdk = complete(dpdk_config(config), config, std::move(listen), std::move(destinations));
    dpdk.gpu_memory = gpu_memory;
    return link::open_dpdk(dpdk);
  }
  if (scheme == "ucx") return link::open_ucx(complete(config.ucx, config, std::move(listen), std::move(destinations)));
  if (scheme == "gateware") {
    return link::open_gateware(complete(config.gateware, config, std::move(listen), std::move(destinations)));
  }
  throw SetupError("link " + config.name + " cannot listen on " + config.endpoint, "no link serves '" + scheme + "'",
                   "use udp://, xdp://, dpdk://, ucx://, gateware:// or pcap://FILE");
}

flow::ClopConfig clop_config(const LinkConfig& config, std::uint8_t clop_id, const link::Link& link) {
  const MemoryRegionConfig& region = config.memory_region;
  const std::size_t min_room_bytes = link.min_room_bytes();
  if (link.payload_memory().in_place()) {
    const std::uint32_t bytes = records_bytes(config);
    return {
        .name = region.name,
        .id = clop_id,
        .buffer_count = region.buffer_count,
        .buffer_bytes = bytes,
        .index_capacity = static_cast<std::uint32_t>(bytes / sizeof(PlacedPacket)) + config.batch_size,
        .huge_pages = region.huge_pages,
    };
  }
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
