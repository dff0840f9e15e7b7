// SPDX-License-Identifier: Apache-2.0
#include "engine/set_up.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/links/link_kinds.hpp"
#include "nanet/engine/assembler.hpp"
#include "nanet/engine/protocol.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {

bool wants_gpu_memory(const LinkConfig& config) {
  const std::shared_ptr<const LinkKind> kind = kind_of(config);
  return kind->gpu_bytes && kind->gpu_bytes(config) > 0;
}

std::unique_ptr<gpu::DeviceMemory> make_gpu_memory(const LinkConfig& config, int device) {
  const std::string name = "payloads of link " + config.name;
#ifdef NANET_CUDA
  return gpu::DeviceMemory::make(device, kind_of(config)->gpu_bytes(config), name);
#else
  throw SetupError(name + " cannot lie in the memory of GPU " + std::to_string(device), "nanet was built without CUDA",
                   "run make cuda, or set payload_memory: host");
#endif
}

std::unique_ptr<link::Link> open_link(const LinkConfig& config, LinkParts parts) {
  return kind_of(config)->open(config, std::move(parts));
}

flow::ClopConfig clop_config(const LinkConfig& config, std::uint8_t clop_id, const link::Link& link) {
  const MemoryRegionConfig& region = config.memory_region;
  const std::size_t min_room_bytes = link.min_room_bytes();
  if (config.protocol != nullptr && config.protocol->has_units) {
    return {.name = region.name,
            .id = clop_id,
            .buffer_count = region.buffer_count,
            .buffer_bytes = region.buffer_bytes,
            .index_capacity = Assembler::index_capacity(region.buffer_bytes),
            .huge_pages = region.huge_pages};
  }
  if (link.payload_memory().in_place()) {
    const std::uint32_t bytes = records_bytes(config);
    return {
        .name = region.name,
        .id = clop_id,
        .buffer_count = region.buffer_count,
        .buffer_bytes = bytes,
        .index_capacity = static_cast<std::uint32_t>(bytes / sizeof(PlacedPacket)) + config.batch_size,
        .huge_pages = region.huge_pages,
    };
  }
  if (region.buffer_bytes < min_room_bytes) {
    throw SetupError("memory region " + region.name + " has too small buffers",
                     "link " + config.name + " needs " + std::to_string(min_room_bytes) + " bytes for one batch",
                     "set buffer_bytes to at least that, better four times as much");
  }
  return {
      .name = region.name,
      .id = clop_id,
      .buffer_count = region.buffer_count,
      .buffer_bytes = region.buffer_bytes,
      .index_capacity = std::max(region.buffer_bytes / 64, 2 * config.batch_size),
      .huge_pages = region.huge_pages,
  };
}

ReceiverConfig receiver_config(const LinkConfig& config, std::uint32_t backlog_max) {
  return {.batch_size = config.batch_size,
          .timeout_ns = 1000 * config.timeout_us,
          .backlog_max = backlog_max,
          .senders = sender_networks(config.senders),
          .packet_bytes_max = config.packet_bytes_max,
          .assemble = config.assemble};
}

flow::Router make_router(const LinkConfig& config, std::uint16_t clop_id) {
  std::vector<flow::Route> routes;
  for (const SourceConfig& source : config.sources) {
    routes.push_back({.source_id = source.source_id,
                      .source_sub_id = source.source_sub_id,
                      .source = static_cast<std::uint16_t>(routes.size()),
                      .clop = clop_id});
  }
  return flow::Router(std::move(routes));
}

std::size_t source_count(const LinkConfig& config) { return std::max<std::size_t>(config.sources.size(), 1); }

EngineConfig with_queues(EngineConfig config) {
  std::vector<LinkConfig> all;
  for (const LinkConfig& link : config.links) {
    const std::uint32_t queues = queue_count(link);
    for (std::uint32_t queue = 0; queue < queues; ++queue) {
      all.push_back(link);
      all.back().queue = queue;
      if (queues > 1) all.back().name.append(".").append(std::to_string(queue));
      if (queue == 0 && config.send && config.send->via == link.name) config.send->via = all.back().name;
    }
  }
  config.links = std::move(all);
  return config;
}

}  // namespace nanet::engine
