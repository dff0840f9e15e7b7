// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/tx_ring.hpp"

#include <algorithm>

#include "ring_config.hpp"

namespace nanet::flow {
namespace {

std::size_t stride_of(const TxRingConfig& config) { return (std::size_t{config.slot_bytes} + 63) / 64 * 64; }

RegionConfig region_config(const TxRingConfig& config) {
  const std::size_t capacity = checked_capacity(config.name, config.capacity);
  if (config.slot_bytes == 0 || config.slot_bytes > 65536) {
    throw SetupError("'" + config.name + "' cannot be made", "slot_bytes is " + std::to_string(config.slot_bytes), "use 1 to 65536");
  }
  return {.name = config.name,
          .bytes = capacity * (sizeof(TxDescriptor) + stride_of(config)) + sizeof(Indexes),
          .kind = MemoryKind::host,
          .huge_pages = config.huge_pages,
          .locked = config.locked};
}

}  // namespace

TxRing::TxRing(const TxRingConfig& config)
    : region_(region_config(config)),
      descriptors_(reinterpret_cast<TxDescriptor*>(region_.data())),
      slots_(region_.data() + std::size_t{config.capacity} * sizeof(TxDescriptor)),
      event_counts_(config.capacity),
      mask_(config.capacity - 1),
      slot_bytes_(config.slot_bytes),
      slot_stride_bytes_(stride_of(config)),
      indexes_(reinterpret_cast<Indexes*>(slots_ + std::size_t{config.capacity} * stride_of(config))) {}

std::uint32_t TxRing::poll(std::span<const TxDescriptor*> out) {
  const std::uint64_t there = doorbell().load(std::memory_order_acquire) - polled_;
  const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(there, out.size()));
  for (std::uint32_t k = 0; k < count; ++k) out[k] = &descriptors_[(polled_ + k) & mask_];
  polled_ += count;
  return count;
}

}  // namespace nanet::flow
