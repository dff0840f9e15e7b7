// SPDX-License-Identifier: Apache-2.0
#define ALLOW_EXPERIMENTAL_API  // rte_pktmbuf_pool_create_extbuf, rte_dev_dma_map: there since 20.05, still marked so in 22.11
#include "payload_memory.hpp"

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_memory.h>

#include <cerrno>
#include <cstddef>

#include "nanet/flow/region.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::dpdk {
namespace {

constexpr std::size_t kBasePageBytes = 4096;
constexpr std::size_t kGpuPageBytes = std::size_t{64} << 10;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + flow::kHugePageBytes - 1) / flow::kHugePageBytes * flow::kHugePageBytes;
}

}  // namespace

PayloadMemory::PayloadMemory(const std::string& link_name, std::uint32_t count, std::uint32_t buffer_bytes)
    : link_name_(link_name),
      count_(count),
      buffer_bytes_(buffer_bytes),
      region_(flow::RegionConfig{
          .name = "payloads of link " + link_name, .bytes = whole_pages(std::size_t{count} * buffer_bytes), .huge_pages = true}),
      memory_(region_->span()) {
  make_known(region_->page_kind() == flow::PageKind::huge ? flow::kHugePageBytes : kBasePageBytes);
}

PayloadMemory::PayloadMemory(const std::string& link_name, std::span<std::byte> gpu_memory, std::uint32_t count,
                             std::uint32_t buffer_bytes)
    : link_name_(link_name), count_(count), buffer_bytes_(buffer_bytes), memory_(gpu_memory) {
  if (const std::size_t needed = std::size_t{count} * buffer_bytes; needed > gpu_memory.size()) {
    throw SetupError("link " + link_name + " has too little memory of a GPU",
                     std::to_string(count) + " buffers of " + std::to_string(buffer_bytes) + " bytes do not fit into " +
                         std::to_string(gpu_memory.size()) + ": the device may have longer rings than asked for",
                     "set descriptors to what the device has");
  }
  make_known(kGpuPageBytes);
}

void PayloadMemory::make_known(std::size_t page_bytes) {
  if (rte_extmem_register(memory_.data(), memory_.size(), nullptr, 0, page_bytes) != 0) {
    throw SetupError("link " + link_name_ + " cannot use memory of its own for payloads",
                     std::string("DPDK does not take it: ") + rte_strerror(rte_errno), "set payload_memory: dpdk");
  }
}

PayloadMemory::~PayloadMemory() {
  if (mapped_for_ != nullptr) rte_dev_dma_unmap(mapped_for_, memory_.data(), io_address(), memory_.size());
  rte_extmem_unregister(memory_.data(), memory_.size());
}

// With an IOMMU, a device uses the program's own addresses. Without, it would need physical ones, which only DPDK's own memory has.
std::uint64_t PayloadMemory::io_address() const {
  return rte_eal_iova_mode() == RTE_IOVA_VA ? reinterpret_cast<std::uint64_t>(memory_.data()) : RTE_BAD_IOVA;
}

void PayloadMemory::map_for(rte_device& device) {
  if (io_address() == RTE_BAD_IOVA) {
    throw SetupError("link " + link_name_ + " cannot use memory of its own for payloads", "the NIC would need physical addresses",
                     "switch the IOMMU on (intel_iommu=on iommu=pt for the kernel), or set payload_memory: dpdk");
  }
  if (rte_dev_dma_map(&device, memory_.data(), io_address(), memory_.size()) == 0) {
    mapped_for_ = &device;
  } else if (rte_errno != ENOTSUP) {
    throw SetupError("link " + link_name_ + " cannot use memory of its own for payloads",
                     std::string("the NIC cannot be let into it: ") + rte_strerror(rte_errno), "set payload_memory: dpdk");
  }
}

rte_mempool* PayloadMemory::make_pool(const std::string& pool_name, std::uint32_t cache) const {
  const rte_pktmbuf_extmem memory{.buf_ptr = memory_.data(),
                                  .buf_iova = io_address(),
                                  .buf_len = memory_.size(),
                                  .elt_size = static_cast<std::uint16_t>(buffer_bytes_)};
  return rte_pktmbuf_pool_create_extbuf(pool_name.c_str(), count_, cache, 0, static_cast<std::uint16_t>(buffer_bytes_),
                                        SOCKET_ID_ANY, &memory, 1);
}

}  // namespace nanet::link::dpdk
