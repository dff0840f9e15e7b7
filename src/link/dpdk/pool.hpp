// SPDX-License-Identifier: Apache-2.0
// Pools of buffers whose memory is not DPDK's: bookkeeping and data of each side by side, without gaps, on transparent huge pages.
//
// Without huge pages of its own, DPDK lies on base pages that the kernel may not make huge, one buffer on each, and each packet then costs
// walks through page tables.
// Thread rules: one thread, holding Eal::control().
#pragma once

#include <rte_mempool.h>

#include <cstdint>
#include <string>

namespace nanet::link::dpdk {

// For devices made by software: no NIC can find this memory. data_bytes: of a buffer, headroom included. cache: buffers that a thread keeps
// for itself. Null: rte_errno says why. rte_mempool_free() gives the memory back.
rte_mempool* make_pool_on_huge_pages(const std::string& name, std::uint32_t count, std::uint32_t data_bytes, std::uint32_t cache);

}  // namespace nanet::link::dpdk
