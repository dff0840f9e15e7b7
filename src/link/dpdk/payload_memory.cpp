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

#include "nanet/setup_error.hpp"

namespace nanet::link::dpdk {
namespace {

constexpr std::size_t kBasePageBytes = 4096;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes; }

}  // namespace

PayloadMemory::PayloadMemory(const std::string& link_name, std::uint32_t count, std::uint32_t buffer_bytes)
    : link_name_(link_name),
      count_(count),
      buffer_bytes_(buffer_bytes),
      region_({.name = "payloads of link " + link_name, .bytes = whole_pages(std::size_t{count} * buffer_bytes), .huge_pages = true}) {
  const std::size_t page_bytes = region_.page_kind() == flow::PageKind::huge ? kHugePageBytes : kBasePageBytes;
  if (rte_extmem_register(region_.data(), region_.bytes(), nullptr, 0, page_bytes) != 0) {
    throw SetupError("link " + link_name + " cannot use memory of its own for payloads",
                     std::string("DPDK does not take it: ") + rte_strerror(rte_errno), "set payload_memory: dpdk");
  }
}

PayloadMemory::~PayloadMemory() {
  if (mapped_for_ != nullptr) rte_dev_dma_unmap(mapped_for_, region_.data(), io_address(), region_.bytes());
  rte_extmem_unregister(region_.data(), region_.bytes());
}

// With an IOMMU, a device uses the program's own addresses. Without, it would need physical ones, which only DPDK's own memory has.
std::uint64_t PayloadMemory::io_address() const {
  return rte_eal_iova_mode() == RTE_IOVA_VA ? reinterpret_cast<std::uint64_t>(region_.data()) : RTE_BAD_IOVA;
}

void PayloadMemory::map_for(rte_device& device) {
  if (io_address() == RTE_BAD_IOVA) {
    throw SetupError("link " + link_name_ + " cannot use memory of its own for payloads", "the NIC would need physical addresses",
                     "switch the IOMMU on (intel_iommu=on iommu=pt for the kernel), or set payload_memory: dpdk");
  }
  if (rte_dev_dma_map(&device, region_.data(), io_address(), region_.bytes()) == 0) {
    mapped_for_ = &device;
  } else if (rte_errno != ENOTSUP) {
    throw SetupError("link " + link_name_ + " cannot use memory of its own for payloads",
                     std::string("the NIC cannot be let into it: ") + rte_strerror(rte_errno), "set payload_memory: dpdk");
  }
}

rte_mempool* PayloadMemory::make_pool(const std::string& pool_name, std::uint32_t cache) const {
  const rte_pktmbuf_extmem memory{.buf_ptr = region_.data(),
                                  .buf_iova = io_address(),
                                  .buf_len = region_.bytes(),
                                  .elt_size = static_cast<std::uint16_t>(buffer_bytes_)};
  return rte_pktmbuf_pool_create_extbuf(pool_name.c_str(), count_, cache, 0, static_cast<std::uint16_t>(buffer_bytes_),
                                        SOCKET_ID_ANY, &memory, 1);
}

}  // namespace nanet::link::dpdk
