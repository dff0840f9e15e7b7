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
// these come after it, in this order
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "solve_rings-inl.hpp"

#ifndef NANET_ALMAGEST_ONCE
#define NANET_ALMAGEST_ONCE
namespace nanet::rich::almagest {

inline constexpr std::size_t kBlock = 16;  // events that go through the steps together: their columns stay in the first-level cache
inline constexpr std::size_t kPadding = 16;          // columns are readable so far behind the last hit
inline constexpr std::size_t kMoreThanOneRing = 17;  // hits; speed only, the result is the same
inline constexpr std::size_t kUnroll = 4;            // hits a turn of a loop over starts

// Keys of a PM in the eight directions.
struct alignas(32) KeyRow {
  std::int32_t keys[kDirections];
};
struct PmTables {
  std::array<KeyRow, kPmPointRows> keys{};
  std::array<std::uint16_t, kPmPointRows> places{};  // the low bits of the keys; 0: no PM
};

constexpr PmTables make_pm_tables() {
  PmTables tables;
  for (std::size_t channel = 0; channel < kPmPointRows; ++channel) {
    const Pm& pm = kPmMap[channel];
    for (std::uint32_t direction = 0; direction < kDirections; ++direction) {
      tables.keys[channel].keys[direction] = pm.mapped ? key_of(direction, pm.i, pm.j) : kNoKey;
    }
    tables.places[channel] = pm.mapped ? static_cast<std::uint16_t>(key_of(0, pm.i, pm.j) & 8191) : std::uint16_t{0};
  }
  return tables;
}
alignas(64) inline constexpr PmTables kPmTables = make_pm_tables();

// Fills up a loop's last turn: chosen by no step, on no circle.
inline constexpr std::uint32_t kPadCode = 1023u << 6;
inline constexpr float kPadZ = 1.0e6F;
static_assert(!kPmMap[1023].mapped);

// A hit's code is hit_order: row in the tables << 6, then time and disk.
inline std::int32_t time_code_of(std::uint32_t code) { return static_cast<std::int32_t>((code >> 1 & 31u) ^ 16u) - 16; }

// Factors of along() at right angles to each direction.
struct alignas(64) AcrossFactors {
  std::int32_t i[kDirections], j[kDirections];
};
constexpr AcrossFactors make_across_factors() {
  AcrossFactors factors{};
  for (std::uint32_t direction = 0; direction < kDirections; ++direction) {
    factors.i[direction] = along(direction ^ 2u, 1, 0);
    factors.j[direction] = along(direction ^ 2u, 0, 1);
  }
  return factors;
}
inline constexpr AcrossFactors kAcross = make_across_factors();

// One triplet a start: what the scalar find_triplet returns, as columns. score is -1 where there is none.
struct alignas(64) Triplets {
  std::int32_t score[kStarts];
  std::int32_t key_b[kStarts], key_c[kStarts], key_a[kDirections];  // each on a vector's boundary
};

inline Triplet triplet_of(const Triplets& triplets, std::size_t start) {
  return {triplets.score[start], point_of(triplets.key_a[start & 7u]), point_of(triplets.key_b[start]),
          point_of(triplets.key_c[start])};
}

// An event on its way: the hits not yet in a ring, as columns.
struct Work {
  alignas(64) float i[kMaxHits + kPadding];
  alignas(64) float j[kMaxHits + kPadding];
  alignas(64) float z[kMaxHits + kPadding];
  alignas(64) std::uint32_t code[kMaxHits + kPadding];
  Triplets triplets;  // of the ring in work
  std::uint32_t count;
  HitSet chosen;  // hits of the ring in work
  EventRings* rings;
};

inline HitSet all_hits(const Work& work) { return ~HitSet{0} >> (kMaxHits - work.count); }

inline void pad(Work& work) {
  std::fill_n(work.i + work.count, kPadding, 0.0F);
  std::fill_n(work.j + work.count, kPadding, 0.0F);
  std::fill_n(work.z + work.count, kPadding, kPadZ);
  std::fill_n(work.code + work.count, kPadding, kPadCode);
}

inline void cut_time(Work& work, const Limits& limits) {
  std::uint8_t counts[32] = {};
  for (std::uint32_t k = 0; k < work.count; ++k) ++counts[time_code_of(work.code[k]) + 16];
  const std::int32_t start = densest_window(counts, limits.window_codes);
  std::uint32_t left = 0;
  for (std::uint32_t k = 0; k < work.count; ++k) {
    const std::int32_t code = time_code_of(work.code[k]);
    if (code < start || code >= start + limits.window_codes) continue;
    work.i[left] = work.i[k];
    work.j[left] = work.j[k];
    work.z[left] = work.z[k];
    work.code[left++] = work.code[k];
  }
  work.count = left;
}

// Codes and places of an event's hits; their order does not matter.
inline void read_hits(const EventHits& event, Work& work, std::uint16_t* places) {
  std::uint32_t count = 0;
  const std::uint32_t looked_at = std::min(event.count, kMaxHits);
  for (std::uint32_t k = 0; k < looked_at; ++k) {
    const std::uint32_t code = hit_order(event.hits[k]);
    const std::uint16_t place = kPmTables.places[code >> 6];
    work.code[count] = code;
    places[count] = place;
    count += place != 0 ? 1 : 0;
  }
  work.count = count;
  work.rings->mapped_hits = static_cast<std::uint16_t>(count);
}

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

HWY_INLINE void lay_out(const EventHits& event, const Limits& limits, Work& work) {
  alignas(64) std::uint16_t places[kMaxHits + kPadding];
  read_hits(event, work, places);
  const hn::CappedTag<float, kPadding> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<std::uint16_t, decltype(df)> du16;
  for (std::size_t k = 0; k < work.count; k += hn::Lanes(df)) {
    const auto points = points_of(df, hn::PromoteTo(di, hn::Load(du16, places + k)));
    hn::Store(points.i, df, work.i + k);
    hn::Store(points.j, df, work.j + k);
    hn::Store(points.z, df, work.z + k);
  }
  if (limits.window_codes < 32) cut_time(work, limits);
  pad(work);
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

// Something that eight directions have, for the starts of one vector.
template <class DI>
HWY_INLINE hn::Vec<DI> load_by_direction(DI di, const std::int32_t* values, std::size_t start) {
  if constexpr (hn::MaxLanes(DI()) > kDirections) {
    const auto eight = hn::Load(hn::Half<DI>(), values);
    return hn::Combine(di, eight, eight);
  } else {
    return hn::Load(di, values + (start & 7u));
  }
}
template <class DI>
HWY_INLINE hn::Vec<DI> load_keys(DI di, const Work& work, std::size_t k, std::size_t start) {
  return load_by_direction(di, kPmTables.keys[work.code[k] >> 6].keys, start);
}

// Step 2: A for the directions of one vector.
template <class DI>
HWY_INLINE void find_a(DI di, Work& work, std::size_t direction) {
  auto key0 = hn::Set(di, kNoKey);
  auto key1 = key0;
  for (std::size_t k = 0; k < work.count; k += kUnroll) {
    key0 = hn::Max(key0, hn::Max(load_keys(di, work, k, direction), load_keys(di, work, k + 1, direction)));
    key1 = hn::Max(key1, hn::Max(load_keys(di, work, k + 2, direction), load_keys(di, work, k + 3, direction)));
  }
  hn::Store(hn::Max(key0, key1), di, work.triplets.key_a + direction);
}

// Calls take(k) for each hit k and the padding of the last turn.
template <class Take>
HWY_INLINE void for_each_hit(const Work& work, Take take) {
  for (std::size_t k = 0; k < work.count; k += kUnroll) {
    take(k);
    take(k + 1);
    take(k + 2);
    take(k + 3);
  }
}

// On which side of A hits are, for the starts of one vector.
template <class DI>
struct Sides {
  hn::Vec<DI> key;  // at right angles, the least that is above A's
  hn::Mask<DI> second_half;

  HWY_INLINE hn::Mask<DI> is_for_c(hn::Vec<DI> keys) const { return hn::Xor(hn::Lt(hn::Shuffle1032(keys), key), second_half); }
};
template <class DI, class V>
HWY_INLINE Sides<DI> sides_of(DI di, const Points<V>& a, std::size_t start) {
  const auto across = hn::Add(hn::Mul(load_by_direction(di, kAcross.i, start), hn::ConvertTo(di, a.i)),
                              hn::Mul(load_by_direction(di, kAcross.j, start), hn::ConvertTo(di, a.j)));
  const auto starts = hn::Iota(di, static_cast<std::int32_t>(start));
  return {hn::ShiftLeft<13>(hn::Add(across, hn::Set(di, 1))), hn::Gt(starts, hn::Set(di, kDirections - 1))};
}

// Step 3: B and C for the starts of one vector.
template <class DF>
HWY_INLINE void find_b_and_c(DF df, Work& work, std::size_t start, const Limits& limits) {
  const hn::RebindToSigned<DF> di;
  const std::size_t lanes = hn::Lanes(df);
  const auto none = hn::Set(di, kNoKey);
  const auto a = points_of(df, load_by_direction(di, work.triplets.key_a, start));
  const auto from_a = from(df, a);
  const auto sides = sides_of(di, a, start);
  const auto pair_z = hn::Set(df, limits.pair_z);
  const auto far_pair_z = hn::Set(df, limits.far_pair_z);
  alignas(64) float distances[(kMaxHits + kUnroll) * kStarts];          // squared, of each hit from A
  alignas(64) std::int32_t candidates[(kMaxHits + kUnroll) * kStarts];  // for C: key, or none
  auto key_b = none;
  for_each_hit(work, [&](std::size_t k) HWY_ATTR {
    const auto keys = load_keys(di, work, k, start);
    const auto ad = squared_distance_lanes(from_a, hn::Set(df, work.i[k]), hn::Set(df, work.j[k]), hn::Set(df, work.z[k]));
    const auto for_c = sides.is_for_c(keys);
    const auto for_b = hn::AndNot(for_c, hn::RebindMask(di, hn::Gt(ad, pair_z)));
    key_b = hn::IfThenElse(for_b, hn::Max(key_b, keys), key_b);
    const auto far = hn::And(for_c, hn::RebindMask(di, hn::Gt(ad, far_pair_z)));
    hn::Store(ad, df, distances + k * lanes);
    hn::Store(hn::IfThenElse(far, keys, none), di, candidates + k * lanes);
  });
  const auto b = points_of(df, key_b);
  const auto from_b = from(df, b);
  const auto bi = hn::Sub(b.i, a.i);
  const auto bj = hn::Sub(b.j, a.j);
  const auto ab = squared_distance_lanes(from_a, b.i, b.j, b.z);
  const auto flat = hn::Div(hn::Set(df, limits.flat), ab);
  const auto cross_a = hn::Sub(hn::Mul(bi, a.j), hn::Mul(bj, a.i));
  auto key_c = none;
  for_each_hit(work, [&](std::size_t k) HWY_ATTR {
    const auto i = hn::Set(df, work.i[k]);
    const auto j = hn::Set(df, work.j[k]);
    const auto cross = hn::Sub(hn::Sub(hn::Mul(bi, j), hn::Mul(bj, i)), cross_a);
    const auto product = hn::Mul(hn::Load(df, distances + k * lanes), squared_distance_lanes(from_b, i, j, hn::Set(df, work.z[k])));
    const auto round = hn::RebindMask(di, hn::Le(product, hn::Mul(hn::Mul(cross, cross), flat)));
    key_c = hn::IfThenElse(round, hn::Max(key_c, hn::Load(di, candidates + k * lanes)), key_c);
  });
  hn::Store(key_b, di, work.triplets.key_b + start);
  hn::Store(key_c, di, work.triplets.key_c + start);
}

// Step 3: scores for the starts of one vector.
template <class DF>
HWY_INLINE void find_scores(DF df, Work& work, std::size_t start, const Limits& limits) {
  const hn::RebindToSigned<DF> di;
  const auto none = hn::Set(di, kNoKey);
  const auto key_b = hn::Load(di, work.triplets.key_b + start);
  const auto key_c = hn::Load(di, work.triplets.key_c + start);
  const auto found = hn::And(hn::Ne(key_b, none), hn::Ne(key_c, none));
  const auto a = points_of(df, load_by_direction(di, work.triplets.key_a, start));
  const auto b = points_of(df, key_b);
  const auto c = points_of(df, key_c);
  const auto from_a = from(df, a);
  const auto bi = hn::Sub(b.i, a.i);
  const auto bj = hn::Sub(b.j, a.j);
  const auto ab = squared_distance_lanes(from_a, b.i, b.j, b.z);
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
  for_each_hit(work, [&](std::size_t k) HWY_ATTR {
    const auto pull = hn::Sub(hn::Add(hn::Mul(scale, hn::Set(df, work.z[k])), offset),
                              hn::Add(hn::Mul(scale_i, hn::Set(df, work.i[k])), hn::Mul(scale_j, hn::Set(df, work.j[k]))));
    const auto weight = hn::Max(hn::Sub(unit, hn::Mul(pull, pull)), zero);
    score = hn::Add(score, hn::ConvertTo(di, weight));
  });
  hn::Store(hn::IfThenElse(found, score, hn::Set(di, -1)), di, work.triplets.score + start);
}

// Bits of the hits for which `test` of vectors (i, j, z) holds.
template <class Test>
HWY_INLINE HitSet choose(const Work& work, Test test) {
  const hn::CappedTag<float, 16> df;
  HitSet bits = 0;
  for (std::size_t k = 0; k < work.count; k += hn::Lanes(df)) {
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(df, test(df, hn::Load(df, work.i + k), hn::Load(df, work.j + k), hn::Load(df, work.z + k)), bytes);
    std::uint64_t some = 0;
    std::memcpy(&some, bytes, sizeof(some));
    bits |= HitSet{some} << k;
  }
  return bits & all_hits(work);
}

// As std::sqrt, which also sets errno.
HWY_INLINE float distance_mm_of(const Point& a, const Point& b) {
  const hn::CappedTag<float, 1> d;
  return kPitchMm * hn::GetLane(hn::Sqrt(hn::Set(d, squared_distance(a, b))));
}

// Step 4.
HWY_INLINE HitSet choose_by_ptolemy(const Work& work, const Triplet& triplet, const Limits& limits) {
  const float ab_mm = distance_mm_of(triplet.a, triplet.b);
  const float ac_mm = distance_mm_of(triplet.a, triplet.c);
  const float bc_mm = distance_mm_of(triplet.b, triplet.c);
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
HWY_INLINE HitSet choose_near(const Work& work, const Ring& ring, float distance) {
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

// The best of eight starts: score * 16 + 15 - start, so that of equal scores the first start has it. Negative: none.
HWY_INLINE std::int32_t best_start(const Triplets& triplets, std::size_t first) {
  const hn::CappedTag<std::int32_t, kDirections> di;
  auto best = hn::Set(di, -1);
  for (std::size_t start = first; start < first + kDirections; start += hn::Lanes(di)) {
    const auto rank = hn::Sub(hn::Set(di, 15), hn::Iota(di, static_cast<std::int32_t>(start)));
    best = hn::Max(best, hn::Add(hn::ShiftLeft<4>(hn::Load(di, triplets.score + start)), rank));
  }
  return hn::GetLane(hn::MaxOfLanes(di, best));
}

// Step 3 for starts first to last - 1.
template <class DF>
HWY_INLINE void find_triplets(DF df, Work& work, std::size_t first, std::size_t last, const Limits& limits) {
  for (std::size_t at = first; at < last; at += hn::Lanes(df)) find_b_and_c(df, work, at, limits);
  for (std::size_t at = first; at < last; at += hn::Lanes(df)) find_scores(df, work, at, limits);
}

// The best of an event's triplets, as best_start.
HWY_INLINE std::int32_t find_best_start(Work& work, const Limits& limits) {
  const hn::CappedTag<std::int32_t, kDirections> di;
  const hn::CappedTag<float, kDirections> half;
  const hn::CappedTag<float, HWY_HAVE_SCALABLE ? kDirections : kStarts> full;
  for (std::size_t at = 0; at < kDirections; at += hn::Lanes(di)) find_a(di, work, at);
  const std::int32_t enough = limits.score_enough * static_cast<std::int32_t>(work.count);
  if (work.count > kMoreThanOneRing) {  // all starts will be needed, and wide vectors do them in one go
    find_triplets(full, work, 0, kStarts, limits);
    const std::int32_t best = best_start(work.triplets, 0);
    return best >> 4 < enough ? std::max(best, best_start(work.triplets, kDirections)) : best;
  }
  find_triplets(half, work, 0, kDirections, limits);
  const std::int32_t best = best_start(work.triplets, 0);
  if (best >> 4 >= enough) return best;
  find_triplets(half, work, kDirections, kStarts, limits);
  return std::max(best, best_start(work.triplets, kDirections));
}

// Steps 2 to 4 of the active events; keeps those that have a triplet and returns their number.
HWY_INLINE std::size_t start_rings(Work* work, std::uint8_t* active, std::size_t count, const Limits& limits) {
  std::size_t left = 0;
  for (std::size_t k = 0; k < count; ++k) {
    Work& one = work[active[k]];
    const std::int32_t best = find_best_start(one, limits);
    if (best < 0 || best >> 4 < limits.score_min) continue;
    one.chosen = choose_by_ptolemy(one, triplet_of(one.triplets, 15u - (static_cast<std::size_t>(best) & 15u)), limits);
    active[left++] = active[k];
  }
  return left;
}

// Writes the ring and takes its hits away.
HWY_INLINE void emit(Work& work, Ring ring) {
  EventRings& rings = *work.rings;
  const hn::CappedTag<float, kPadding> df;
  const hn::RebindToUnsigned<decltype(df)> du;
  const HitSet left = all_hits(work) & ~work.chosen;
  std::size_t at = 0;
  auto times = hn::Zero(du);  // code + 16 of the ring's hits
  for (std::size_t k = 0; k < work.count; k += hn::Lanes(df)) {
    const std::uint64_t some = static_cast<std::uint64_t>(left >> k) & ((std::uint64_t{1} << hn::Lanes(df)) - 1);
    std::uint8_t bytes[8];
    std::memcpy(bytes, &some, sizeof(some));
    const auto mask = hn::LoadMaskBits(df, bytes);
    const auto codes = hn::Load(du, work.code + k);
    const auto time = hn::Xor(hn::And(hn::ShiftRight<1>(codes), hn::Set(du, 31)), hn::Set(du, 16));
    times = hn::Add(times, hn::IfThenElse(hn::RebindMask(du, mask), hn::Zero(du), time));
    const auto i = hn::Compress(hn::Load(df, work.i + k), mask);
    const auto j = hn::Compress(hn::Load(df, work.j + k), mask);
    const auto z = hn::Compress(hn::Load(df, work.z + k), mask);
    const auto code = hn::Compress(codes, hn::RebindMask(du, mask));
    hn::StoreU(i, df, work.i + at);
    hn::StoreU(j, df, work.j + at);
    hn::StoreU(z, df, work.z + at);
    hn::StoreU(code, du, work.code + at);
    at += static_cast<std::size_t>(std::popcount(some));
  }
  const auto lanes = static_cast<std::uint32_t>((work.count + hn::Lanes(df) - 1) / hn::Lanes(df) * hn::Lanes(df));
  const std::uint32_t padding = lanes - work.count;  // counted as of the ring, with time code 0
  const auto time_sum = static_cast<std::int32_t>(hn::GetLane(hn::SumOfLanes(du, times)) - 16 * padding);
  ring.time_ns = mean_time_ns(time_sum - 16 * ring.hits, ring.hits);
  rings.rings[rings.count++] = ring;
  work.count = static_cast<std::uint32_t>(at);
  pad(work);
}

// Fits the chosen hits of events work[active[0..count-1]].
HWY_INLINE void fit_all(const Work* work, const std::uint8_t* active, std::size_t count, Ring* rings) {
  alignas(64) RingSums sums[kBlock];
  for (std::size_t k = 0; k < count; ++k) {
    const Work& one = work[active[k]];
    sums[k] = sum_chosen(one.code, one.chosen);
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
HWY_INLINE void find_block(const EventHits* events, std::size_t count, EventRings* rings, const Limits& limits, Work* work) {
  std::uint8_t active[kBlock];
  std::size_t active_count = 0;
  for (std::size_t k = 0; k < count; ++k) {
    hwy::Prefetch(events[k].hits);
    hwy::Prefetch(events[k].hits + 24);
  }
  for (std::size_t k = 0; k < count; ++k) {
    rings[k] = EventRings{};
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

void find_batch(const EventHits* events, std::size_t count, EventRings* rings, const AlmagestCuts& cuts) {
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

void find_almagest(std::span<const EventHits> events, std::span<EventRings> rings, const AlmagestCuts& cuts) {
  HWY_DYNAMIC_DISPATCH(find_batch)(events.data(), std::min(events.size(), rings.size()), rings.data(), cuts);
}

const char* find_almagest_target() { return HWY_DYNAMIC_DISPATCH(almagest_target_name)(); }

}  // namespace nanet::rich
#endif  // HWY_ONCE
