// SPDX-License-Identifier: Apache-2.0
#include "split.hpp"

namespace nanet::link::dpdk {

std::string why_no_split(const rte_eth_dev_info& info) {
  const std::string driver = std::string("driver ") + info.driver_name;
  if ((info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT) == 0) return driver + " has no buffer split";
  if (info.rx_seg_capa.multi_pools == 0) return driver + " splits within one pool only";
  if (info.rx_seg_capa.max_nseg < 2) return driver + " splits into " + std::to_string(info.rx_seg_capa.max_nseg) + " parts";
  return "";
}

std::array<rte_eth_rxseg, 2> split_segments(std::uint32_t split_bytes, rte_mempool* heads, rte_mempool* payloads) {
  std::array<rte_eth_rxseg, 2> segments{};
  segments[0].split.mp = heads;
  segments[0].split.length = static_cast<std::uint16_t>(split_bytes);
  segments[1].split.mp = payloads;  // length 0: as much as a buffer takes
  return segments;
}

}  // namespace nanet::link::dpdk
