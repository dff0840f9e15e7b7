// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/completion_queue.hpp"

#include "ring_config.hpp"

namespace nanet::flow {
namespace {

RegionConfig sized(RegionConfig region, std::uint32_t capacity) {
  region.bytes = std::size_t{checked_capacity(region.name, capacity)} * sizeof(Completion) + sizeof(Indexes);
  return region;
}

}  // namespace

CompletionQueue::CompletionQueue(std::uint32_t capacity, RegionConfig region)
    : region_(sized(std::move(region), capacity)),
      entries_(reinterpret_cast<Completion*>(region_.data())),
      indexes_(reinterpret_cast<Indexes*>(region_.data() + std::size_t{capacity} * sizeof(Completion))),
      mask_(capacity - 1) {}

}  // namespace nanet::flow
