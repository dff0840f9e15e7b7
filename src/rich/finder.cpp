// SPDX-License-Identifier: Apache-2.0
#include "nanet/rich/finder.hpp"

#include <algorithm>
#include <array>

#include "rich/find_event.hpp"
#include "rich/math_fit.hpp"

namespace nanet::rich {
namespace {

EventRings from_single(const Ring& ring) {
  EventRings event;
  event.mapped_hits = ring.hits;
  event.truncated = is_truncated(ring.status) ? 1 : 0;
  if (!has_ring(ring.status) || ring.hits < 4) return event;
  event.count = 1;
  event.rings[0] = ring;
  event.rings[0].status = RingStatus::ring;
  return event;
}

void find_math(std::span<const event::Event> events, std::span<EventRings> rings, const NoCuts&) {
  constexpr std::size_t kBlock = 64;
  std::array<Ring, kBlock> block;
  for (std::size_t at = 0; at < events.size(); at += kBlock) {
    const std::size_t count = std::min(kBlock, events.size() - at);
    fit_rings(events.subspan(at, count), std::span(block).first(count));
    for (std::size_t k = 0; k < count; ++k) rings[at + k] = from_single(block[k]);
  }
}

// Full answers are rare, and the finders that give them slow: one event at a time is good enough.
void look_for_more(const FinderConfig& config, event::Event event, EventRings& found) {
  if (found.count < kMaxRings) return;
  std::array<std::uint16_t, kMaxHits> room;
  const std::uint32_t count = std::min(event.count, kMaxHits);
  std::copy_n(event.hits, count, room.begin());
  const std::uint32_t far = far_hits_first(room.data(), count, kPmPoints.data(), found);
  if (far < kMoreHitsMin) return;
  const EventRings more = with_finder(config.kind, [&](auto kind) {
    return find_event<kind()>(config, {room.data(), far}, kPmPoints.data());
  });
  found.more_rings = more.count > 0 ? 1 : 0;
}

void find_batch(const FinderConfig& config, std::span<const event::Event> events, std::span<EventRings> rings) {
  switch (config.kind) {
#define X(name, cuts, several, help) \
  case FinderKind::name: return find_##name(events, rings, config.name);
    NANET_FINDERS(X)
#undef X
  }
}

}  // namespace

void find_rings(const FinderConfig& config, std::span<const event::Event> events, std::span<EventRings> rings) {
  find_batch(config, events, rings);
  if (!finds_several(config.kind)) return;
  for (std::size_t e = 0; e < events.size(); ++e) look_for_more(config, events[e], rings[e]);
}

EventRings find_rings_scalar(const FinderConfig& config, event::Event event) {
  EventRings found = with_finder(config.kind, [&](auto kind) { return find_event<kind()>(config, event, kPmPoints.data()); });
  look_for_more(config, event, found);
  return found;
}

}  // namespace nanet::rich
