// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/clop.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::flow {
namespace {

constexpr std::uint32_t kIndexCapacityMax = 65535;  // of Completion::packet_count

ClopConfig checked(ClopConfig config) {
  const std::string problem = "CLOP '" + config.name + "' cannot be made";
  if (!std::has_single_bit(config.buffer_count) || config.buffer_count < 2 || config.buffer_count > 65536) {
    throw SetupError(problem, "buffer_count is " + std::to_string(config.buffer_count), "use a power of two from 2 to 65536");
  }
  if (config.buffer_bytes == 0 || config.buffer_bytes % 4096 != 0) {
    throw SetupError(problem, "buffer_bytes is " + std::to_string(config.buffer_bytes), "use a multiple of 4096");
  }
  if (config.index_capacity == 0) config.index_capacity = config.buffer_bytes / 64;
  config.index_capacity = std::min(config.index_capacity, kIndexCapacityMax);
  return config;
}

std::size_t buffers_bytes(const ClopConfig& config) { return std::size_t{config.buffer_count} * config.buffer_bytes; }

// To a cache line, where the indexes begin.
std::size_t index_bytes(const ClopConfig& config) {
  return (std::size_t{config.buffer_count} * config.index_capacity * sizeof(PacketRef) + 63) / 64 * 64;
}

RegionConfig region_config(const ClopConfig& config) {
  return {.name = config.name,
          .bytes = buffers_bytes(config) + index_bytes(config) + sizeof(Indexes),
          .kind = config.kind,
          .huge_pages = config.huge_pages,
          .locked = config.locked};
}

}  // namespace

Clop::Clop(const ClopConfig& config)
    : config_(checked(config)),
      region_(region_config(config_)),
      index_(reinterpret_cast<PacketRef*>(region_.data() + buffers_bytes(config_))),
      indexes_(reinterpret_cast<Indexes*>(region_.data() + buffers_bytes(config_) + index_bytes(config_))),
      mask_(config_.buffer_count - 1) {}

}  // namespace nanet::flow
