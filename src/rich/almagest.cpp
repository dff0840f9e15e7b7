// SPDX-License-Identifier: Apache-2.0
// The vectorised Almagest finder. Steps 2 and 3 (almagest_search-inl.hpp) run with a start in each lane of 16 bits, over one event's hits; step 5 with a
// hit in each lane; and the fits' closed form with an event in each lane. To that end a block of events goes through the steps together, ring by ring.
// Every lane does what the scalar function of almagest.hpp does, in the same order.
#include "rich/almagest.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "nanet/rich/pm_map.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rich/almagest.cpp"
#include "hwy/foreach_target.h"
// these come after it, in this order
#include "almagest_search-inl.hpp"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "solve_rings-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace nanet::rich {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace almagest;  // NOLINT

#if HWY_TARGET == HWY_SCALAR

void find_batch(const event::Event* events, std::size_t count, EventRings* rings, const AlmagestCuts& cuts) {
  for (std::size_t k = 0; k < count; ++k) rings[k] = find_almagest(events[k], kPmPoints.data(), cuts);
}

#else

HWY_INLINE void lay_out(const event::Event& event, const Limits& limits, Work& work) {
  read_hits(event, work);
  if (limits.window_codes < 32) cut_time(work, limits);
}

// Bits of the hits for which `test` of vectors (i, j) holds.
template <class Test>
HWY_INLINE HitSet choose(const Work& work, Test test) {
  const hn::CappedTag<float, 16> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<std::int16_t, decltype(df)> d16;
  HitSet bits = 0;
  for (std::size_t k = 0; k < work.count; k += hn::Lanes(df)) {
    std::uint8_t bytes[8] = {};
    const auto number = [&](const std::int16_t* column)
                            HWY_ATTR { return hn::ConvertTo(df, hn::PromoteTo(di, hn::Load(d16, column + k))); };
    hn::StoreMaskBits(df, test(df, number(work.column_i), number(work.column_j)), bytes);
    std::uint64_t some = 0;
    std::memcpy(&some, bytes, sizeof(some));
    bits |= HitSet{some} << k;
  }
  return bits & all_hits(work);
}

// Hits near a circle.
HWY_INLINE HitSet choose_near(const Work& work, const Circle& circle, float distance) {
  const float inner = circle.radius > distance ? circle.radius - distance : 0.0F;
  const float outer = circle.radius + distance;
  return choose(work, [&](auto df, auto i, auto j) HWY_ATTR {
    const auto di = hn::Sub(i, hn::Set(df, circle.i));
    const auto dj = hn::Sub(j, hn::Set(df, circle.j));
    const auto d2 = hn::Add(hn::Mul(di, di), hn::Mul(hn::Set(df, 3.0F), hn::Mul(dj, dj)));
    return hn::And(hn::Ge(d2, hn::Set(df, inner * inner)), hn::Le(d2, hn::Set(df, outer * outer)));
  });
}

// Steps 2 to 4 of the active events; keeps those that have a triplet and returns their number.
HWY_INLINE std::size_t start_rings(Work* work, std::uint8_t* active, std::size_t count, const Limits& limits) {
  std::size_t left = 0;
  find_triplets(work, active, count, limits);
  for (std::size_t k = 0; k < count; ++k) {
    Work& one = work[active[k]];
    const std::int32_t best = find_best_start(one, limits);
    if (best < 0 || best >> 4 < limits.score_min) continue;
    const Triplet triplet = triplet_of(one.triplets, 15u - (static_cast<std::size_t>(best) & 15u));
    const auto point = [&one](std::uint32_t at) { return point_of(static_cast<std::int32_t>(one.words[at] & 0xffffu)); };
    if (!passes_ptolemy(triplet, one.count, limits, point)) continue;
    one.chosen = choose_near(one, triplet.circle, limits.take_in);
    active[left++] = active[k];
  }
  return left;
}

// Writes the ring and takes its hits away.
HWY_INLINE void emit(Work& work, Ring ring) {
  EventRings& rings = *work.rings;
  const hn::CappedTag<std::uint32_t, kPadding> du;
  const HitSet left = all_hits(work) & ~work.chosen;
  std::size_t at = 0;
  auto times = hn::Zero(du);  // code + 16 of the ring's hits
  const auto mask_of = [&](HitSet set, std::size_t k) HWY_ATTR {
    const std::uint64_t some = static_cast<std::uint64_t>(set >> k) & ((std::uint64_t{1} << hn::Lanes(du)) - 1);
    std::uint8_t bytes[8];
    std::memcpy(bytes, &some, sizeof(some));
    return hn::LoadMaskBits(du, bytes);
  };
  for (std::size_t k = 0; k < work.count; k += hn::Lanes(du)) {
    const auto mask = mask_of(left, k);
    const auto words = hn::Load(du, work.words + k);
    const auto time = hn::Xor(hn::ShiftRight<16>(words), hn::Set(du, 16));
    times = hn::Add(times, hn::IfThenElseZero(mask_of(work.chosen, k), time));
    hn::StoreU(hn::Compress(words, mask), du, work.words + at);
    at += hn::CountTrue(du, mask);
  }
  const auto time_sum = static_cast<std::int32_t>(hn::GetLane(hn::SumOfLanes(du, times)));
  ring.time_ns = mean_time_ns(time_sum - 16 * ring.hits, ring.hits);
  rings.rings[rings.count++] = ring;
  work.count = static_cast<std::uint32_t>(at);
}

// Fits the chosen hits of events work[active[0..count-1]].
HWY_INLINE void fit_all(const Work* work, const std::uint8_t* active, std::size_t count, Ring* rings) {
  alignas(64) RingSums sums[kBlock];
  for (std::size_t k = 0; k < count; ++k) {
    const Work& one = work[active[k]];
    sums[k] = sum_chosen(one.column_i, one.column_j, one.column_z, one.count, one.chosen);
  }
  solve_rings(sums, count, rings);
}

// Keeps those of the active events (and their rings) that `keep` says.
template <class Keep>
HWY_INLINE std::size_t keep_if(std::uint8_t* active, std::size_t count, Ring* rings, Keep keep) {
  std::size_t left = 0;
  for (std::size_t k = 0; k < count; ++k) {
    if (!keep(active[k], rings[k])) continue;
    active[left] = active[k];
    rings[left++] = rings[k];
  }
  return left;
}

// One ring more for each of the active events; returns how many may have yet another.
HWY_INLINE std::size_t next_rings(Work* work, std::uint8_t* active, std::size_t count, const Limits& limits) {
  Ring rings[kBlock];
  count = start_rings(work, active, count, limits);
  fit_all(work, active, count, rings);
  count = keep_if(active, count, rings, [&](std::size_t at, const Ring& ring) {
    if (!has_ring(ring.status) || ring.hits < limits.hits_min) return false;
    work[at].chosen = choose_near(work[at], circle_of(ring), limits.keep);
    return true;
  });
  fit_all(work, active, count, rings);
  return keep_if(active, count, rings, [&](std::size_t at, const Ring& ring) {
    if (!has_ring(ring.status) || ring.hits < limits.hits_min || !is_accepted(ring, limits)) return false;
    emit(work[at], ring);
    return work[at].count >= limits.hits_min;
  });
}

// Rings of at most kBlock events.
HWY_INLINE void find_block(const event::Event* events, std::size_t count, EventRings* rings, const Limits& limits, Work* work) {
  std::uint8_t active[kBlock];
  std::size_t active_count = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t ahead = std::min<std::size_t>(events[k].count, 24);  // an event without hits may have no array to point into
    hwy::Prefetch(events[k].hits);
    hwy::Prefetch(events[k].hits + ahead);
  }
  static constexpr EventRings kNoRings{};  // copied: in place, compilers fill it slowly
  for (std::size_t k = 0; k < count; ++k) {
    rings[k] = kNoRings;
    rings[k].truncated = events[k].count > kMaxHits ? 1 : 0;
    Work& one = work[active_count];
    one.rings = &rings[k];
    lay_out(events[k], limits, one);
    if (one.count < limits.hits_min) continue;
    active[active_count] = static_cast<std::uint8_t>(active_count);
    ++active_count;
  }
  for (std::uint32_t ring = 0; ring < kMaxRings && active_count != 0; ++ring) {
    active_count = next_rings(work, active, active_count, limits);
  }
  for (std::size_t k = 0; k < count; ++k) {
    if (rings[k].count > 1) sort_rings(rings[k]);
  }
}

void find_batch(const event::Event* events, std::size_t count, EventRings* rings, const AlmagestCuts& cuts) {
  const Limits limits = limits_of(cuts);
  Work work[kBlock];
  for (std::size_t at = 0; at < count; at += kBlock) {
    find_block(events + at, std::min(kBlock, count - at), rings + at, limits, work);
  }
}

#endif  // scalar

const char* almagest_target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace nanet::rich
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nanet::rich {

HWY_EXPORT(find_batch);
HWY_EXPORT(almagest_target_name);

void find_almagest(std::span<const event::Event> events, std::span<EventRings> rings, const AlmagestCuts& cuts) {
  HWY_DYNAMIC_DISPATCH(find_batch)(events.data(), std::min(events.size(), rings.size()), rings.data(), cuts);
}

const char* find_almagest_target() { return HWY_DYNAMIC_DISPATCH(almagest_target_name)(); }

}  // namespace nanet::rich
#endif  // HWY_ONCE
