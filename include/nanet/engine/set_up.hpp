// SPDX-License-Identifier: Apache-2.0
// From configuration to parts: what an engine and a port build in the same way.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nanet/engine/config.hpp"
#include "nanet/flow/clop.hpp"
#include "nanet/flow/router.hpp"
#include "nanet/link/link.hpp"

namespace nanet::engine {

// The link that the endpoint's scheme names; it sends to `destinations`. Throws SetupError.
std::unique_ptr<link::Link> open_link(const LinkConfig& config, std::vector<link::Endpoint> destinations = {});

// Throws SetupError when the buffers cannot hold one batch of a link that needs min_room_bytes.
flow::ClopConfig clop_config(const LinkConfig& config, std::uint8_t clop_id, std::size_t min_room_bytes);

flow::Router make_router(const LinkConfig& config, std::uint16_t clop_id);

// At least one: a link without declared sources keeps its books under one.
std::size_t source_count(const LinkConfig& config);

}  // namespace nanet::engine
