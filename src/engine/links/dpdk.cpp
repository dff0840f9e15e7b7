// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/dpdk.hpp"

#include "engine/links/link_kinds.hpp"

namespace nanet::engine {
namespace {

link::DpdkConfig dpdk_config(const LinkConfig& config) {
  auto dpdk = section_of<link::DpdkConfig>(config);
  dpdk.packet_bytes_max = config.packet_bytes_max;
  dpdk.lent_max = lent_max(config);
  dpdk.queue = config.queue;
  if (dpdk.payload_memory == link::DpdkMemory::gpu) dpdk.payloads = link::Payloads::in_place;  // no one here could copy them
  return dpdk;
}

std::unique_ptr<link::Link> open_dpdk(const LinkConfig& config, LinkParts parts) {
  const std::span<std::byte> gpu_memory = parts.gpu_memory;
  link::DpdkConfig dpdk = complete(dpdk_config(config), config, std::move(parts));
  dpdk.gpu_memory = gpu_memory;
  return link::open_dpdk(dpdk);
}

std::uint32_t dpdk_queues(const LinkConfig& config) { return section_of<link::DpdkConfig>(config).queues; }

std::size_t gpu_bytes(const LinkConfig& config) {
  const link::DpdkConfig dpdk = dpdk_config(config);
  return dpdk.payload_memory == link::DpdkMemory::gpu ? link::dpdk_gpu_bytes(dpdk) : 0;
}

bool dpdk_in_place(const LinkConfig& config) { return dpdk_config(config).payloads == link::Payloads::in_place; }

std::optional<config::Problem> dpdk_rules(const LinkConfig& config) {
  if (section_of<link::DpdkConfig>(config).device.empty()) {
    return config::Problem{"dpdk", "link '" + config.name + "' has no device", "DPDK does not know a NIC by its address",
                           "add dpdk: {device: 'net_af_packet0,iface=eth1'}"};
  }
  const std::string why = "with DPDK the device determines it";
  if (auto broken = refuse_useless(config, {{"interface", !config.interface.empty(), why}})) return broken;
  if (auto broken = refuse_socket_keys(config)) return broken;
  if (auto broken = refuse_groups(config)) return broken;
  return refuse_long_packets(config);
}

}  // namespace

LinkKind dpdk_kind() {
  return {.name = "dpdk",
          .open = open_dpdk,
          .gpu_bytes = gpu_bytes,
          .endpoint_help = "dpdk://ADDRESS:PORT, DPDK",
          .section = section_for<link::DpdkConfig>("What only a dpdk:// link needs; required there"),
          .back_end = link::dpdk_back_end(),
          .broken_rule = dpdk_rules,
          .in_place = dpdk_in_place,
          .queue_count = dpdk_queues};
}

}  // namespace nanet::engine
