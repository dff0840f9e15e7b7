// SPDX-License-Identifier: Apache-2.0
// The kinds of links that nanet has itself: one list, in the order in which they are named.
#pragma once

#include <cstdint>
#include <vector>

#include "nanet/engine/kinds.hpp"

namespace nanet::engine {

std::vector<LinkKind> built_in_links();

// Of a buffer whose payloads stay in place: one record for each payload of packet_bytes_max that it would have held, and for one batch at least.
std::uint32_t records_bytes(const LinkConfig& config);

}  // namespace nanet::engine
