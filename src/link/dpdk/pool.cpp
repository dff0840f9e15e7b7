// SPDX-License-Identifier: Apache-2.0
#include "pool.hpp"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>

#include "eal.hpp"
#include "nanet/flow/region.hpp"

namespace nanet::link::dpdk {
namespace {

// Begins on a huge page. Whether the kernel gives huge pages is its business: this is about speed only. Null: no memory.
char* map(std::size_t bytes) {
  if (!Eal::instance().take_memory(bytes)) return nullptr;
  void* mapping = ::mmap(nullptr, bytes + flow::kHugePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    Eal::instance().give_memory_back(bytes);
    return nullptr;
  }
  auto* first = static_cast<char*>(mapping);
  const std::size_t head = (flow::kHugePageBytes - reinterpret_cast<std::uintptr_t>(first) % flow::kHugePageBytes) %
                           flow::kHugePageBytes;
  if (head != 0) ::munmap(first, head);
  if (head != flow::kHugePageBytes) ::munmap(first + head + bytes, flow::kHugePageBytes - head);
  ::madvise(first + head, bytes, MADV_HUGEPAGE);
  return first + head;
}

void unmap(char* memory, std::size_t bytes) {
  ::munmap(memory, bytes);
  Eal::instance().give_memory_back(bytes);
}

void unmap_chunk(rte_mempool_memhdr* chunk, void* /*opaque*/) { unmap(static_cast<char*>(chunk->addr), chunk->len); }

}  // namespace

rte_mempool* make_pool_on_huge_pages(const std::string& name, std::uint32_t count, std::uint32_t data_bytes, std::uint32_t cache) {
  const auto element_bytes = static_cast<std::uint32_t>(sizeof(rte_mbuf)) + data_bytes;
  // The flag also says: no gap where a page ends.
  rte_mempool* pool = rte_mempool_create_empty(name.c_str(), count, element_bytes, cache, sizeof(rte_pktmbuf_pool_private),
                                               SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
  if (pool == nullptr) return nullptr;
  rte_pktmbuf_pool_private facts{};
  facts.mbuf_data_room_size = static_cast<std::uint16_t>(data_bytes);
  const std::size_t needed = std::size_t{count} * rte_mempool_calc_obj_size(element_bytes, pool->flags, nullptr);
  const std::size_t bytes = (needed + flow::kHugePageBytes) / flow::kHugePageBytes * flow::kHugePageBytes;
  char* memory = map(bytes);
  int error = memory != nullptr ? rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), nullptr) : -ENOMEM;
  if (error == 0) {
    rte_pktmbuf_pool_init(pool, &facts);
    const int populated = rte_mempool_populate_virt(pool, memory, bytes, flow::kHugePageBytes, unmap_chunk, nullptr);
    if (populated > 0) memory = nullptr;  // the pool's from now on
    error = populated == static_cast<int>(count) ? 0 : -ENOMEM;
  }
  if (error != 0) {
    rte_mempool_free(pool);
    if (memory != nullptr) unmap(memory, bytes);
    rte_errno = -error;
    return nullptr;
  }
  rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  return pool;
}

}  // namespace nanet::link::dpdk
