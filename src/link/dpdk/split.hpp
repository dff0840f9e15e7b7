// SPDX-License-Identifier: Apache-2.0
// Header/data split: a NIC that can puts the first bytes of each frame into one buffer and the rest into one of another pool.
//
// Thread rules: pure functions.
#pragma once

#include <rte_ethdev.h>

#include <array>
#include <cstdint>
#include <string>

namespace nanet::link::dpdk {

// Why the device cannot split frames into two pools; empty: it can.
std::string why_no_split(const rte_eth_dev_info& info);

// For rte_eth_rxconf.rx_seg: split_bytes of a frame into a buffer of heads, after its headroom; all that follows into one of payloads, from its start.
std::array<rte_eth_rxseg, 2> split_segments(std::uint32_t split_bytes, rte_mempool* heads, rte_mempool* payloads);

}  // namespace nanet::link::dpdk
