// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/device.hpp"

namespace nanet::link::gateware {

std::vector<std::uint64_t> SimDevice::map(std::span<std::byte> memory, std::size_t page_bytes, Access access) {
  const std::size_t count = memory.size() / page_bytes;
  std::vector<std::uint64_t> pages(count);
  for (std::size_t k = 0; k < count; ++k) {
    pages[k] = next_ + 2 * (count - 1 - k) * page_bytes;  // backwards, each second place empty
    model_.bus().map(pages[k], memory.subspan(k * page_bytes, page_bytes), access == Access::read, access != Access::read,
                     access == Access::write_gpu);
  }
  constexpr std::uint64_t kLargestPage = 1 << 21;
  next_ = (next_ + 2 * count * page_bytes + kLargestPage) & ~(kLargestPage - 1);
  return pages;
}

void SimDevice::unmap(std::span<const std::uint64_t> pages) {
  for (const std::uint64_t page : pages) model_.bus().unmap(page);
}

bool SimDevice::wait(std::uint64_t timeout_ns) {
  const auto cycles = static_cast<std::uint64_t>(static_cast<double>(timeout_ns) / nanet::gateware::kNsPerCycle);
  const std::uint64_t until = model_.cycle() + cycles;
  while (!model_.bus().take_message()) {
    if (model_.cycle() >= until) return false;
    model_.step();
  }
  return true;
}

}  // namespace nanet::link::gateware
