// SPDX-License-Identifier: Apache-2.0
// What NA62's boards send, and what a nanet node sends to another.
#pragma once

#include "nanet/engine/protocol.hpp"

namespace nanet::na62 {

extern const engine::Protocol kMgp;    // padded and packed packets of hits, of a board (docs/formats.md)
extern const engine::Protocol kM2egp;  // merged events, of another node (docs/formats-merged.md)

}  // namespace nanet::na62
