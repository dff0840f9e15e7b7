// SPDX-License-Identifier: Apache-2.0
// DOMH, a single-ring finder: POMH laid out for the device. The same ring, bit for bit.
//
// Our reading of the name in the papers ("device oriented"): candidate centres lie in the lanes of a vector (a GPU's threads), hits stream past. A
// histogram is bits of 64-bit words, one bit a bin, one word for each binary digit of the counts: a hit is a word with the bits of the bins about its
// distance, added to 64 bins of all centres in the vector at once by full adders made of logic operations. Method: center_scan.hpp.
// Thread rules: pure functions, no allocation, no exception.
#pragma once

#include <span>

#include "nanet/host_device.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/center_scan.hpp"
#include "rich/hit_plane.hpp"

namespace nanet::rich {

NANET_HD inline EventRings find_domh(event::Event event, const PmPoint* points, const DomhCuts& cuts) {
  return find_by_center_scan(event, points, cuts);
}

// rings[k] becomes what is found in events[k], the same bits. `rings` must be at least as long as `events`.
void find_domh(std::span<const event::Event> events, std::span<EventRings> rings, const DomhCuts& cuts);

}  // namespace nanet::rich
