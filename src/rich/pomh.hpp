// SPDX-License-Identifier: Apache-2.0
// POMH, a single-ring finder: about every candidate centre a histogram of the hits' distances; the sharpest peak gives the ring.
//
// Our reading of the name in the papers ("problem oriented"): the outer loop is over candidate centres, each with its own histogram. On a CPU the
// histogram is one vector register, to which each hit adds the row of its bin; on a GPU it is one thread block. Method: center_scan.hpp.
// Thread rules: pure functions, no allocation, no exception.
#pragma once

#include <span>

#include "nanet/host_device.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/center_scan.hpp"
#include "rich/hit_plane.hpp"

namespace nanet::rich {

NANET_HD inline EventRings find_pomh(event::Event event, const PmPoint* points, const PomhCuts& cuts) {
  return find_by_center_scan(event, points, cuts);
}

// rings[k] becomes what is found in events[k], the same bits. `rings` must be at least as long as `events`.
void find_pomh(std::span<const event::Event> events, std::span<EventRings> rings, const PomhCuts& cuts);

}  // namespace nanet::rich
