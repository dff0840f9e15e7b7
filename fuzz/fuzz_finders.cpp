// SPDX-License-Identifier: Apache-2.0
// Any hits for any ring finder: first byte the finder, then 16-bit hits. What comes out is finite and within its promises, does not depend on the
// order of the hits, and the batch and the function on one event give the same bits; then it is judged.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "fuzz_common.hpp"
#include "nanet/rich/decision.hpp"
#include "nanet/rich/finder.hpp"

using namespace nanet::rich;
using nanet::fuzz::require;

// As many hits as a finder takes in a millisecond under the sanitizers; the quick ones get more than kMaxHits too.
constexpr std::array<std::size_t, kFinderCount> kHitsOfKind{140, 32, 40, 24, 140, 12, 140, 32, 16};

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1 || size > 401) return 0;
  const FinderConfig config{.kind = static_cast<FinderKind>(data[0] % kFinderCount)};
  std::vector<std::uint16_t> hits(std::min((size - 1) / 2, kHitsOfKind[data[0] % kFinderCount]));
  if (!hits.empty()) std::memcpy(hits.data(), data + 1, hits.size() * 2);
  const nanet::event::Event event{hits.data(), static_cast<std::uint32_t>(hits.size())};
  EventRings found;
  find_rings(config, {&event, 1}, {&found, 1});
  const EventRings scalar = find_rings_scalar(config, event);
  require(std::memcmp(&found, &scalar, sizeof(EventRings)) == 0, "batch and single event give the same bits");
  require(found.count <= kMaxRings && found.mapped_hits <= kMaxHits, "counts are in range");
  require((found.truncated != 0) == (hits.size() > kMaxHits), "more than kMaxHits hits are said");
  for (std::uint32_t k = 0; k < found.count; ++k) {
    const Ring& ring = found.rings[k];
    require(ring.status == RingStatus::ring && ring.hits >= 4 && ring.hits <= found.mapped_hits, "a ring has four hits or more");
    for (const float value : {ring.x_mm, ring.y_mm, ring.radius_mm, ring.rms_mm, ring.time_ns})
      require(std::isfinite(value), "finite");
    require(ring.radius_mm > 0 && ring.rms_mm >= 0, "no negative sizes");
    require(k == 0 || ring.hits <= found.rings[k - 1].hits, "most hits first");
  }
  require((primitive_id(found, Decision{}) & 0xC000) == 0x4000, "an answer");
  if (hits.size() <= kMaxHits) {
    std::reverse(hits.begin(), hits.end());
    const EventRings turned = find_rings_scalar(config, event);
    require(std::memcmp(&turned, &scalar, sizeof(EventRings)) == 0, "the order of the hits does not matter");
  }
  return 0;
}
