// SPDX-License-Identifier: Apache-2.0
// Memory outside DPDK for the data of received packets, and pools of buffers whose data lie there. DPDK keeps only its bookkeeping of each
// buffer, so the memory can be what a GPU or another device was told about.
//
// Thread rules: one thread, holding Eal::control(). Pools must be freed before.
#pragma once

#include <rte_dev.h>
#include <rte_mempool.h>

#include <cstdint>
#include <string>

#include "nanet/flow/region.hpp"

namespace nanet::link::dpdk {

class PayloadMemory {
 public:
  // Huge pages where there are any, known to DPDK. count buffers of buffer_bytes (a multiple of 64) will fit. Throws SetupError.
  PayloadMemory(const std::string& link_name, std::uint32_t count, std::uint32_t buffer_bytes);
  ~PayloadMemory();
  PayloadMemory(const PayloadMemory&) = delete;
  PayloadMemory& operator=(const PayloadMemory&) = delete;

  // Lets a NIC write there. Devices made by software need nothing. Throws SetupError.
  void map_for(rte_device& device);

  // All buffers; null: rte_errno says why. cache: buffers that a thread keeps for itself.
  rte_mempool* make_pool(const std::string& pool_name, std::uint32_t cache) const;

  const flow::Region& region() const { return region_; }
  bool holds(const void* address) const { return address >= region_.data() && address < region_.data() + region_.bytes(); }

 private:
  std::uint64_t io_address() const;

  std::string link_name_;
  std::uint32_t count_;
  std::uint32_t buffer_bytes_;
  flow::Region region_;
  rte_device* mapped_for_ = nullptr;
};

}  // namespace nanet::link::dpdk
