// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/device.hpp"

namespace nanet::link::gateware {

std::vector<std::uint64_t> map_apart(nanet::gateware::HostBus& bus, std::uint64_t& next, std::span<std::byte> memory,
                                     std::size_t page_bytes, Access access) {
  const std::size_t count = memory.size() / page_bytes;
  std::vector<std::uint64_t> pages(count);
  for (std::size_t k = 0; k < count; ++k) {
    pages[k] = next + 2 * (count - 1 - k) * page_bytes;  // backwards, each second place empty
    bus.map(pages[k], memory.subspan(k * page_bytes, page_bytes), access == Access::read, access != Access::read,
            access == Access::write_gpu);
  }
  constexpr std::uint64_t kLargestPage = 1 << 21;
  next = (next + 2 * count * page_bytes + kLargestPage) & ~(kLargestPage - 1);
  return pages;
}

}  // namespace nanet::link::gateware
