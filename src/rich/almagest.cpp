// SPDX-License-Identifier: Apache-2.0
// The vectorised Almagest finder. Steps 2 and 3 run with a start in each lane, over one event's hits; steps 4 and 5 with a hit in each lane; and the
// fits' closed form with an event in each lane. To that end a block of events goes through the steps together, ring by ring.
// Every lane does what the scalar function of almagest.hpp does, in the same order.
#include "nanet/rich/almagest.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "nanet/rich/pm_map.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rich/almagest.cpp"
#include "hwy/foreach_target.h"
// foreach_target.h comes first
#include "hwy/highway.h"
#include "solve_rings-inl.hpp"

#ifndef NANET_ALMAGEST_ONCE
#define NANET_ALMAGEST_ONCE
namespace nanet::rich::almagest {

inline constexpr std::size_t kBlock = 32;     // events that go through the steps together
inline constexpr std::size_t kFastHits = 64;  // a bit each; events with more take the scalar function
inline constexpr std::size_t kPadding = 16;   // columns are readable up to the next multiple of this

// Keys of a PM in the eight directions.
struct alignas(32) KeyRow {
  std::int32_t keys[kDirections];
};

constexpr std::array<KeyRow, kPmPointRows> make_key_rows() {
  std::array<KeyRow, kPmPointRows> rows{};
  for (std::size_t channel = 0; channel < kPmPointRows; ++channel) {
    const Pm& pm = kPmMap[channel];
    for (std::uint32_t direction = 0; direction < kDirections; ++direction) {
      rows[channel].keys[direction] = key_of(direction, pm.i, pm.j);
    }
  }
  return rows;
}
alignas(64) inline constexpr std::array<KeyRow, kPmPointRows> kKeyRows = make_key_rows();

// Factors of along() at right angles to each start's direction.
struct alignas(64) AcrossFactors {
  std::int32_t i[kStarts], j[kStarts];
};
constexpr AcrossFactors make_across_factors() {
  AcrossFactors factors{};
  for (std::uint32_t start = 0; start < kStarts; ++start) {
    factors.i[start] = along((start & 7u) ^ 2u, 1, 0);
    factors.j[start] = along((start & 7u) ^ 2u, 0, 1);
  }
  return factors;
}
inline constexpr AcrossFactors kAcross = make_across_factors();

// An event on its way: the hits not yet in a ring, as columns.
struct Work {
  alignas(64) float i[kFastHits];
  alignas(64) float j[kFastHits];
  alignas(64) float z[kFastHits];
  std::uint16_t row[kFastHits];
  std::int8_t time_code[kFastHits];
  std::uint32_t count;
  std::uint32_t event_index;
  std::uint64_t chosen;  // bit k: hit k is in the ring in work
  EventRings* rings;
};

// Copies hit `from` to `to`.
inline void move_hit(Work& work, std::size_t to, std::size_t from) {
  work.i[to] = work.i[from];
  work.j[to] = work.j[from];
  work.z[to] = work.z[from];
  work.row[to] = work.row[from];
  work.time_code[to] = work.time_code[from];
}

// Fills up the last vector's lanes with hits that are read and left out again.
inline void pad(Work& work) {
  for (std::size_t k = work.count; k % kPadding != 0; ++k) work.i[k] = work.j[k] = work.z[k] = 0.0F;
}

inline void cut_time(Work& work, const Limits& limits) {
  std::uint8_t counts[32] = {};
  for (std::uint32_t k = 0; k < work.count; ++k) ++counts[work.time_code[k] + 16];
  const std::int32_t start = densest_window(counts, limits.window_codes);
  std::uint32_t left = 0;
  for (std::uint32_t k = 0; k < work.count; ++k) {
    if (work.time_code[k] >= start && work.time_code[k] < start + limits.window_codes) move_hit(work, left++, k);
  }
  work.count = left;
}

// Lays out an event of at most kFastHits hits; their order does not matter.
inline void lay_out(const EventHits& event, const Limits& limits, Work& work) {
  std::uint32_t count = 0;
  for (std::uint32_t k = 0; k < event.count; ++k) {
    const std::uint16_t hit = event.hits[k];
    const PmPoint& pm = kPmPoints[hit & 1023u];
    const std::int32_t i = pm.i;
    const std::int32_t j = pm.j;
    work.i[count] = static_cast<float>(i);
    work.j[count] = static_cast<float>(j);
    work.z[count] = static_cast<float>(i * i + 3 * j * j);
    work.row[count] = hit & 1023u;
    work.time_code[count] = static_cast<std::int8_t>(static_cast<std::int16_t>(hit) >> 11);
    count += pm.mapped;
  }
  work.count = count;
  work.rings->mapped_hits = static_cast<std::uint16_t>(count);
  if (limits.window_codes < 32) cut_time(work, limits);
  pad(work);
}

// Writes the ring and takes its hits away.
inline void emit(Work& work, Ring ring) {
  EventRings& rings = *work.rings;
  std::int32_t code_sum = 0;
  for (std::uint64_t bits = work.chosen; bits != 0; bits &= bits - 1) code_sum += work.time_code[std::countr_zero(bits)];
  ring.time_ns = mean_time_ns(code_sum, ring.hits);
  rings.rings[rings.count++] = ring;
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - work.count);
  std::size_t left = 0;
  for (std::uint64_t bits = all & ~work.chosen; bits != 0; bits &= bits - 1) {
    move_hit(work, left++, static_cast<std::size_t>(std::countr_zero(bits)));
  }
  work.count = static_cast<std::uint32_t>(left);
  pad(work);
}

// One triplet a start: what the scalar find_triplet returns, as columns. score is -1 where there is none.
struct alignas(64) Triplets {
  std::int32_t score[kStarts];
  std::int32_t key_a[kStarts], key_b[kStarts], key_c[kStarts];
};

}  // namespace nanet::rich::almagest
#endif  // NANET_ALMAGEST_ONCE

HWY_BEFORE_NAMESPACE();
namespace nanet::rich {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace almagest;  // NOLINT

#if HWY_TARGET == HWY_SCALAR

void find_batch(const EventHits* events, std::size_t count, EventRings* rings, const AlmagestCuts& cuts) {
  for (std::size_t k = 0; k < count; ++k) rings[k] = find_almagest(events[k], kPmPoints.data(), cuts);
}

#else

// Point A, B or C of each start.
template <class V>
struct Points {
  V i, j, z;
};

template <class DF, class VI>
HWY_INLINE Points<hn::Vec<DF>> points_of(DF df, VI keys) {
  const hn::RebindToSigned<DF> di;
  const auto i = hn::ConvertTo(df, hn::Sub(hn::And(hn::ShiftRight<6>(keys), hn::Set(di, 127)), hn::Set(di, 64)));
  const auto j = hn::ConvertTo(df, hn::Sub(hn::And(keys, hn::Set(di, 63)), hn::Set(di, 32)));
  return {i, j, hn::Add(hn::Mul(i, i), hn::Mul(hn::Set(df, 3.0F), hn::Mul(j, j)))};
}

// Squared distances from one point of each lane to hits: what does not depend on the hit.
template <class V>
struct From {
  V two_i, six_j, z;
};
template <class DF, class V = hn::Vec<DF>>
HWY_INLINE From<V> from(DF df, const Points<V>& p) {
  return {hn::Mul(hn::Set(df, 2.0F), p.i), hn::Mul(hn::Set(df, 6.0F), p.j), p.z};
}
template <class V>
HWY_INLINE V squared_distance_lanes(const From<V>& a, V i, V j, V z) {
  return hn::Sub(hn::Add(a.z, z), hn::Add(hn::Mul(i, a.two_i), hn::Mul(j, a.six_j)));
}

// Steps 2 and 3 for the starts of one vector.
template <class DF>
HWY_INLINE void find_triplets(DF df, const Work& work, std::size_t start, const Limits& limits, Triplets& out) {
  const hn::RebindToSigned<DF> di;
  using VF = hn::Vec<DF>;
  const std::size_t count = work.count;
  const auto none = hn::Set(di, kNoKey);
  const auto keys_of = [&](std::size_t k) HWY_ATTR {
    const std::int32_t* row = kKeyRows[work.row[k]].keys;
#if HWY_MAX_BYTES >= 64 && !HWY_HAVE_SCALABLE
    const auto half = hn::Load(hn::Half<decltype(di)>(), row);
    return hn::Combine(di, half, half);
#else
    return hn::Load(di, row + (start & 7u));
#endif
  };

  auto key_a = none;
  for (std::size_t k = 0; k < count; ++k) key_a = hn::Max(key_a, keys_of(k));
  const Points<VF> a = points_of(df, key_a);
  const From<VF> from_a = from(df, a);

  // A's key at right angles, without a place: hits on the side of B have a larger one (first half of the starts).
  const auto across = hn::Add(hn::Mul(hn::Load(di, kAcross.i + start), hn::ConvertTo(di, a.i)),
                              hn::Mul(hn::Load(di, kAcross.j + start), hn::ConvertTo(di, a.j)));
  const auto key_across = hn::Or(hn::ShiftLeft<13>(across), hn::Set(di, 8191));
  const auto b_is_above = hn::Lt(hn::Iota(di, static_cast<std::int32_t>(start)), hn::Set(di, kDirections));

  const auto pair_z = hn::Set(df, limits.pair_z);
  auto key_b = none;
  for (std::size_t k = 0; k < count; ++k) {
    const auto keys = keys_of(k);
    const auto d2 = squared_distance_lanes(from_a, hn::Set(df, work.i[k]), hn::Set(df, work.j[k]), hn::Set(df, work.z[k]));
    const auto above = hn::Gt(hn::Shuffle1032(keys), key_across);
    const auto good = hn::And(hn::Not(hn::Xor(above, b_is_above)), hn::RebindMask(di, hn::Gt(d2, pair_z)));
    key_b = hn::IfThenElse(good, hn::Max(key_b, keys), key_b);
  }
  const Points<VF> b = points_of(df, key_b);
  const From<VF> from_b = from(df, b);
  const auto bi = hn::Sub(b.i, a.i);
  const auto bj = hn::Sub(b.j, a.j);
  const auto ab = squared_distance_lanes(from_a, b.i, b.j, b.z);

  const auto far_pair_z = hn::Set(df, limits.far_pair_z);
  const auto flat = hn::Set(df, limits.flat);
  auto key_c = none;
  for (std::size_t k = 0; k < count; ++k) {
    const auto keys = keys_of(k);
    const auto i = hn::Set(df, work.i[k]);
    const auto j = hn::Set(df, work.j[k]);
    const auto z = hn::Set(df, work.z[k]);
    const auto ad = squared_distance_lanes(from_a, i, j, z);
    const auto cross = hn::Sub(hn::Mul(bi, hn::Sub(j, a.j)), hn::Mul(bj, hn::Sub(i, a.i)));
    const auto product = hn::Mul(hn::Mul(ab, ad), squared_distance_lanes(from_b, i, j, z));
    const auto above = hn::Gt(hn::Shuffle1032(keys), key_across);
    const auto round = hn::Le(product, hn::Mul(hn::Mul(cross, cross), flat));
    const auto good = hn::And(hn::Xor(above, b_is_above), hn::RebindMask(di, hn::And(round, hn::Gt(ad, far_pair_z))));
    key_c = hn::IfThenElse(good, hn::Max(key_c, keys), key_c);
  }
  const auto found = hn::And(hn::Ne(key_b, none), hn::Ne(key_c, none));
  const Points<VF> c = points_of(df, key_c);
  const auto ci = hn::Sub(c.i, a.i);
  const auto cj = hn::Sub(c.j, a.j);
  const auto ac = squared_distance_lanes(from_a, c.i, c.j, c.z);
  const auto one = hn::Set(df, 1.0F);
  const auto cross = hn::Sub(hn::Mul(bi, cj), hn::Mul(bj, ci));
  const auto inverse = hn::Div(hn::Set(df, 0.5F), hn::IfThenElse(hn::RebindMask(df, found), cross, one));
  const auto from_a_i = hn::Mul(hn::Sub(hn::Mul(cj, ab), hn::Mul(bj, ac)), inverse);
  const auto from_a_j = hn::Mul(hn::Sub(hn::Mul(bi, ac), hn::Mul(ci, ab)), hn::Mul(inverse, hn::Set(df, 1.0F / 3.0F)));
  const auto three = hn::Set(df, 3.0F);
  const auto radius2 = hn::Add(hn::Mul(from_a_i, from_a_i), hn::Mul(three, hn::Mul(from_a_j, from_a_j)));
  const auto center_i = hn::Add(a.i, from_a_i);
  const auto center_j = hn::Add(a.j, from_a_j);
  const auto scale = hn::Div(hn::Set(df, limits.score_scale), hn::Sqrt(hn::IfThenElse(hn::RebindMask(df, found), radius2, one)));
  const auto scale_i = hn::Mul(scale, hn::Mul(hn::Set(df, 2.0F), center_i));
  const auto scale_j = hn::Mul(scale, hn::Mul(hn::Set(df, 6.0F), center_j));
  const auto center_z = hn::Add(hn::Mul(center_i, center_i), hn::Mul(three, hn::Mul(center_j, center_j)));
  const auto offset = hn::Mul(scale, hn::Sub(center_z, radius2));

  const auto unit = hn::Set(df, kScoreUnit);
  const auto zero = hn::Zero(df);
  auto score = hn::Zero(di);
  for (std::size_t k = 0; k < count; ++k) {
    const auto pull = hn::Sub(hn::Add(hn::Mul(scale, hn::Set(df, work.z[k])), offset),
                              hn::Add(hn::Mul(scale_i, hn::Set(df, work.i[k])), hn::Mul(scale_j, hn::Set(df, work.j[k]))));
    const auto weight = hn::Max(hn::Sub(unit, hn::Mul(pull, pull)), zero);
    score = hn::Add(score, hn::ConvertTo(di, weight));
  }
  hn::Store(hn::IfThenElse(found, score, hn::Set(di, -1)), di, out.score + start);
  hn::Store(key_a, di, out.key_a + start);
  hn::Store(key_b, di, out.key_b + start);
  hn::Store(key_c, di, out.key_c + start);
}

// Bits of the hits for which `test` of vectors (i, j, z) holds.
template <class Test>
HWY_INLINE std::uint64_t choose(const Work& work, Test test) {
  const hn::CappedTag<float, 16> df;
  std::uint64_t bits = 0;
  for (std::size_t k = 0; k < work.count; k += hn::Lanes(df)) {
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(df, test(df, hn::Load(df, work.i + k), hn::Load(df, work.j + k), hn::Load(df, work.z + k)), bytes);
    std::uint64_t some = 0;
    std::memcpy(&some, bytes, sizeof(some));
    bits |= some << k;
  }
  return bits & (~std::uint64_t{0} >> (64 - work.count));
}

// Step 4.
HWY_INLINE std::uint64_t choose_by_ptolemy(const Work& work, const Triplet& triplet, const Limits& limits) {
  const float ab_mm = kPitchMm * std::sqrt(squared_distance(triplet.a, triplet.b));
  const float ac_mm = kPitchMm * std::sqrt(squared_distance(triplet.a, triplet.c));
  const float bc_mm = kPitchMm * std::sqrt(squared_distance(triplet.b, triplet.c));
  return choose(work, [&](auto df, auto i, auto j, auto z) HWY_ATTR {
    const auto distance_mm = [&](const Point& p) HWY_ATTR {
      const From<decltype(i)> point{hn::Set(df, 2.0F * p.i), hn::Set(df, 6.0F * p.j), hn::Set(df, p.z)};
      return hn::Mul(hn::Set(df, kPitchMm), hn::Sqrt(squared_distance_lanes(point, i, j, z)));
    };
    const auto p = hn::Mul(distance_mm(triplet.a), hn::Set(df, bc_mm));
    const auto q = hn::Mul(hn::Set(df, ab_mm), distance_mm(triplet.c));
    const auto r = hn::Mul(hn::Set(df, ac_mm), distance_mm(triplet.b));
    const auto pq = hn::Abs(hn::Sub(hn::Add(p, q), r));
    const auto pr = hn::Abs(hn::Sub(hn::Add(p, r), q));
    const auto qr = hn::Abs(hn::Sub(hn::Add(q, r), p));
    return hn::Le(hn::Min(hn::Min(pq, pr), qr), hn::Set(df, limits.ptolemy_max_mm2));
  });
}

// Hits near the circle of a fit.
HWY_INLINE std::uint64_t choose_near(const Work& work, const Ring& ring, float distance) {
  const Circle circle = circle_of(ring);
  const float inner = circle.radius > distance ? circle.radius - distance : 0.0F;
  const float outer = circle.radius + distance;
  return choose(work, [&](auto df, auto i, auto j, auto) HWY_ATTR {
    const auto di = hn::Sub(i, hn::Set(df, circle.i));
    const auto dj = hn::Sub(j, hn::Set(df, circle.j));
    const auto d2 = hn::Add(hn::Mul(di, di), hn::Mul(hn::Set(df, 3.0F), hn::Mul(dj, dj)));
    return hn::And(hn::Ge(d2, hn::Set(df, inner * inner)), hn::Le(d2, hn::Set(df, outer * outer)));
  });
}

// Steps 2 to 4 of an event. False: no ring.
HWY_INLINE bool start_ring(Work& work, const Limits& limits) {
  const hn::CappedTag<float, kStarts> df;
  Triplets triplets;
  for (std::size_t start = 0; start < kStarts; start += hn::Lanes(df)) find_triplets(df, work, start, limits, triplets);
  // Of equal scores the first start: the rest of the number says which.
  std::int32_t best = -1;
  for (std::size_t start = 0; start < kStarts; ++start) {
    best = std::max(best, triplets.score[start] * 16 + static_cast<std::int32_t>(15 - start));
  }
  if (best < 0 || best >> 4 < limits.score_min) return false;
  const std::size_t start = 15u - (static_cast<std::size_t>(best) & 15u);
  const Triplet triplet{best >> 4, point_of(triplets.key_a[start]), point_of(triplets.key_b[start]), point_of(triplets.key_c[start])};
  work.chosen = choose_by_ptolemy(work, triplet, limits);
  return true;
}

// Fits the chosen hits of events work[active[0..count-1]].
HWY_INLINE void fit_all(const Work* work, const std::uint8_t* active, std::size_t count, Ring* rings) {
  alignas(64) RingSums sums[kBlock];
  for (std::size_t k = 0; k < count; ++k) {
    const Work& one = work[active[k]];
    sums[k] = sum_chosen(one.row, one.chosen);
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
  count = keep_if(active, count, rings, [&](std::size_t at, const Ring&) { return start_ring(work[at], limits); });
  fit_all(work, active, count, rings);
  count = keep_if(active, count, rings, [&](std::size_t at, const Ring& ring) {
    if (!has_ring(ring.status) || ring.hits < limits.ptolemy_hits_min) return false;
    work[at].chosen = choose_near(work[at], ring, limits.take_in);
    return true;
  });
  fit_all(work, active, count, rings);
  count = keep_if(active, count, rings, [&](std::size_t at, const Ring& ring) {
    if (!has_ring(ring.status) || ring.hits < limits.hits_min) return false;
    work[at].chosen = choose_near(work[at], ring, limits.keep);
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
HWY_INLINE void find_block(const EventHits* events, std::size_t count, EventRings* rings, const AlmagestCuts& cuts,
                           const Limits& limits, Work* work) {
  std::uint8_t active[kBlock];
  std::size_t active_count = 0;
  for (std::size_t k = 0; k < count; ++k) {
    if (events[k].count > kFastHits) {
      rings[k] = find_almagest(events[k], kPmPoints.data(), cuts);
      continue;
    }
    rings[k] = EventRings{};
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

void find_batch(const EventHits* events, std::size_t count, EventRings* rings, const AlmagestCuts& cuts) {
  const Limits limits = limits_of(cuts);
  Work work[kBlock];
  for (std::size_t at = 0; at < count; at += kBlock) {
    find_block(events + at, std::min(kBlock, count - at), rings + at, cuts, limits, work);
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

void find_almagest(std::span<const EventHits> events, std::span<EventRings> rings, const AlmagestCuts& cuts) {
  HWY_DYNAMIC_DISPATCH(find_batch)(events.data(), std::min(events.size(), rings.size()), rings.data(), cuts);
}

const char* find_almagest_target() { return HWY_DYNAMIC_DISPATCH(almagest_target_name)(); }

}  // namespace nanet::rich
#endif  // HWY_ONCE
