// SPDX-License-Identifier: Apache-2.0
#include "links.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "nanet/engine/processor.hpp"
#include "nanet/link/dpdk.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/gateware.hpp"
#include "nanet/link/pcap_link.hpp"
#include "nanet/link/ucx.hpp"
#include "nanet/link/udp.hpp"
#include "nanet/link/xdp.hpp"

namespace nanet::engine {
namespace {

using Opened = std::unique_ptr<link::Link>;

// The configuration that all kinds of links that listen on an address share.
template <typename Config>
Config complete(Config kind, const LinkConfig& config, LinkParts&& parts) {
  kind.name = config.name;
  link::Endpoint listen = link::parse_endpoint(config.endpoint);
  link::refuse_multicast(config.name, listen);
  kind.listen = std::move(listen);
  kind.destinations = std::move(parts.destinations);
  kind.packet_bytes_max = config.packet_bytes_max;
  return kind;
}

// Packets that the receiver may hold at once: what all buffers name, and the batch that it works on.
std::uint32_t lent_max(const LinkConfig& config) {
  const std::uint64_t records = records_bytes(config) / sizeof(PlacedPacket);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(config.memory_region.buffer_count * records + config.batch_size, UINT32_MAX));
}

Opened open_udp(const LinkConfig& config, LinkParts parts) {
  link::UdpConfig udp{.rx_socket_bytes = config.socket_buffer_bytes,
                      .busy_poll_us = config.busy_poll_us,
                      .gro = config.gro ? link::Coalesce::on : link::Coalesce::off,
                      .source_port = link::SourcePort::listen};  // answers sent through a link come from where it listens
  udp.interface = config.interface;
  return std::make_unique<link::UdpLink>(complete(std::move(udp), config, std::move(parts)));
}

Opened open_xdp(const LinkConfig& config, LinkParts parts) {
  link::XdpConfig xdp = complete(config.xdp, config, std::move(parts));
  xdp.interface = config.interface;
  xdp.busy_poll_us = config.busy_poll_us;
  xdp.lent_max = lent_max(config);
  return link::open_xdp(xdp);
}

link::DpdkConfig dpdk_config(const LinkConfig& config) {
  link::DpdkConfig dpdk = config.dpdk;
  dpdk.packet_bytes_max = config.packet_bytes_max;
  dpdk.lent_max = lent_max(config);
  if (dpdk.payload_memory == link::DpdkMemory::gpu) dpdk.payloads = link::Payloads::in_place;  // no one here could copy them
  return dpdk;
}

Opened open_dpdk(const LinkConfig& config, LinkParts parts) {
  const std::span<std::byte> gpu_memory = parts.gpu_memory;
  link::DpdkConfig dpdk = complete(dpdk_config(config), config, std::move(parts));
  dpdk.gpu_memory = gpu_memory;
  return link::open_dpdk(dpdk);
}

std::size_t dpdk_gpu_bytes(const LinkConfig& config) {
  return config.dpdk.payload_memory == link::DpdkMemory::gpu ? link::dpdk_gpu_bytes(dpdk_config(config)) : 0;
}

Opened open_ucx(const LinkConfig& config, LinkParts parts) {
  return link::open_ucx(complete(config.ucx, config, std::move(parts)));
}

Opened open_gateware(const LinkConfig& config, LinkParts parts) {
  return link::open_gateware(complete(config.gateware, config, std::move(parts)));
}

Opened open_pcap(const LinkConfig& config, LinkParts) {
  link::PcapLinkConfig pcap = config.pcap;
  pcap.name = config.name;
  pcap.path = config.endpoint.substr(std::string_view("pcap://").size());
  pcap.packet_bytes_max = config.packet_bytes_max;
  return std::make_unique<link::PcapLink>(pcap);
}

}  // namespace

std::vector<LinkKind> built_in_links() {
  return {
      {.name = "udp", .open = open_udp},
      {.name = "xdp", .open = open_xdp, .is_back_end = true},
      {.name = "dpdk", .open = open_dpdk, .is_back_end = true, .gpu_bytes = dpdk_gpu_bytes},
      {.name = "ucx", .open = open_ucx, .sends = false, .names_senders = false, .is_back_end = true},
      {.name = "gateware", .open = open_gateware, .is_back_end = true},
      {.name = "pcap", .open = open_pcap, .sends = false},
  };
}

Kinds built_in_kinds() {
  Kinds kinds;
  for (const LinkKind& kind : built_in_links()) kinds.add(kind);
  kinds.add(kRaw);
  kinds.add(ProcessorKind{
      .name = "count", .make = [](const ProcessorSettings&) { return std::make_shared<CountProcessor>(); }, .done = std::nullopt});
  return kinds;
}

std::shared_ptr<const LinkKind> kind_of(const LinkConfig& config) {
  if (config.kind) return config.kind;
  static const Kinds built_in = built_in_kinds();
  const std::size_t scheme_end = config.endpoint.find("://");
  if (scheme_end == std::string::npos) link::parse_endpoint(config.endpoint);  // which says what is wrong
  return built_in.link(std::string_view(config.endpoint).substr(0, scheme_end));
}

std::uint32_t records_bytes(const LinkConfig& config) {
  constexpr std::uint32_t kPageBytes = 4096;
  const std::uint32_t packets = std::max(config.memory_region.buffer_bytes / config.packet_bytes_max, config.batch_size);
  const auto bytes = static_cast<std::uint32_t>(packets * sizeof(PlacedPacket));
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace nanet::engine
