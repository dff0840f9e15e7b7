// SPDX-License-Identifier: Apache-2.0
// Some hits of an event, a bit each.
#pragma once

#include "nanet/rich/ring.hpp"

namespace nanet::rich {
using HitSet = unsigned __int128;  // bit k: hit k
static_assert(8 * sizeof(HitSet) == kMaxHits);
}  // namespace nanet::rich
