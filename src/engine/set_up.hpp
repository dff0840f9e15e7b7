// SPDX-License-Identifier: Apache-2.0
// From configuration to parts: what an engine and a port build alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nanet/engine/config.hpp"
#include "nanet/engine/kinds.hpp"
#include "nanet/engine/receiver.hpp"
#include "nanet/flow/clop.hpp"
#include "nanet/flow/router.hpp"
#include "nanet/gpu/device_memory.hpp"
#include "nanet/link/link.hpp"

namespace nanet::engine {

// Whether this link's payloads are to lie in the memory of a GPU.
bool wants_gpu_memory(const LinkConfig& config);

// That memory, on GPU number `device`, as much as the link needs. Throws SetupError; always in a build without CUDA.
std::unique_ptr<gpu::DeviceMemory> make_gpu_memory(const LinkConfig& config, int device);

// The link of the configuration's kind. Throws SetupError.
std::unique_ptr<link::Link> open_link(const LinkConfig& config, LinkParts parts = {});

// For the packets of `link`, which was opened with this configuration. Where payloads stay in place, a buffer has room for the records of as many packets
// as it would have held payloads of packet_bytes_max, so it has fewer bytes. Throws SetupError when the buffers cannot hold one batch.
flow::ClopConfig clop_config(const LinkConfig& config, std::uint8_t clop_id, const link::Link& link);

// backlog_max: see ReceiverConfig.
ReceiverConfig receiver_config(const LinkConfig& config, std::uint32_t backlog_max);

flow::Router make_router(const LinkConfig& config, std::uint16_t clop_id);

// At least one: a link without declared sources keeps its books under one.
std::size_t source_count(const LinkConfig& config);

// With an entry for each queue of a link that has several, by the name NAME.0 and so on. What leaves `via` such a link does so by its queue 0.
EngineConfig with_queues(EngineConfig config);

}  // namespace nanet::engine
