// SPDX-License-Identifier: Apache-2.0
// Memory outside DPDK for the data of received packets, and pools of buffers whose data lie there. DPDK keeps only its bookkeeping of each
// buffer, so the memory can be registered with a GPU or another device.
//
// Thread rules: one thread, holding Eal::control(). Pools must be freed before.
#pragma once

#include <rte_dev.h>
#include <rte_mempool.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nanet/flow/region.hpp"

namespace nanet::link::dpdk {

class PayloadMemory {
 public:
  // Huge pages where there are any, known to DPDK. count buffers of buffer_bytes (a multiple of 64) will fit. Throws SetupError.
  PayloadMemory(const std::string& link_name, std::uint32_t count, std::uint32_t buffer_bytes);

  // The same in memory of a GPU, which is the caller's: whole pages of 64 KiB. Nothing here reads or writes it. Throws SetupError: too little.
  PayloadMemory(const std::string& link_name, std::span<std::byte> gpu_memory, std::uint32_t count, std::uint32_t buffer_bytes);
  ~PayloadMemory();
  PayloadMemory(const PayloadMemory&) = delete;
  PayloadMemory& operator=(const PayloadMemory&) = delete;

  // Lets a NIC write there. Devices made by software need nothing. Throws SetupError.
  void map_for(rte_device& device);

  // All buffers; null: rte_errno says why. cache: buffers that a thread keeps for itself.
  rte_mempool* make_pool(const std::string& pool_name, std::uint32_t cache) const;

  std::span<std::byte> memory() const { return memory_; }
  bool holds(const void* address) const { return address >= memory_.data() && address < memory_.data() + memory_.size(); }
  std::vector<std::string> notes() const { return region_ ? region_->notes() : std::vector<std::string>{}; }

 private:
  void make_known(std::size_t page_bytes);
  std::uint64_t io_address() const;

  std::string link_name_;
  std::uint32_t count_;
  std::uint32_t buffer_bytes_;
  std::optional<flow::Region> region_;  // none: a GPU's
  std::span<std::byte> memory_;
  rte_device* mapped_for_ = nullptr;
};

}  // namespace nanet::link::dpdk
