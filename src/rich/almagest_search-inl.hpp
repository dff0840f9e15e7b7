// SPDX-License-Identifier: Apache-2.0
// Almagest's search, vectorised: steps 2 and 3, the best triplet of each event. A start in each lane of 16 bits, over one event's hits; every lane does
// what the scalar find_triplet of almagest.hpp does, in the same order. Included once for each instruction set.
#if defined(NANET_ALMAGEST_SEARCH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef NANET_ALMAGEST_SEARCH_INL_HPP
#undef NANET_ALMAGEST_SEARCH_INL_HPP
#else
#define NANET_ALMAGEST_SEARCH_INL_HPP
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "almagest_work.hpp"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nanet::rich {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace almagest;  // NOLINT

#if HWY_TARGET != HWY_SCALAR

// Fills the other columns from places. Turns of a loop over hits end on copies of the first hit, which change no maximum and score nothing.
HWY_INLINE void fill_columns(Work& work) {
  const hn::CappedTag<std::uint32_t, kPadding> du;
  const hn::RebindToSigned<decltype(du)> di;
  const hn::Repartition<std::int16_t, decltype(du)> d;
  const hn::Rebind<std::int16_t, decltype(du)> once16;
  for (std::size_t k = 0; k < kUnroll; ++k) work.words[work.count + k] = work.words[0];
  const auto count = hn::Set(du, work.count);
  for (std::size_t k = 0; k < work.count; k += hn::Lanes(du)) {
    const auto once = hn::And(hn::Load(du, work.words + k), hn::Set(du, 0xffff));
    const auto place = hn::Or(once, hn::ShiftLeft<16>(once));
    const auto i = hn::Sub(hn::ShiftRight<6>(hn::BitCast(d, place)), hn::Set(d, 64));
    const auto j = hn::Sub(hn::And(hn::BitCast(d, place), hn::Set(d, 63)), hn::Set(d, 32));
    const auto z = hn::Add(hn::Mul(i, i), hn::Mul(hn::Mul(j, j), hn::Set(d, 3)));
    const auto store = [&](auto v, std::uint32_t* column) HWY_ATTR { hn::Store(hn::BitCast(du, v), du, column + k); };
    store(place, work.place);
    store(i, work.i);
    store(j, work.j);
    store(z, work.z);
    store(hn::ShiftLeft<9>(i), work.score_i);
    store(hn::ShiftLeft<10>(j), work.score_j);
    store(hn::ShiftLeft<4>(z), work.score_z);
    const auto store_once = [&](auto v, std::int16_t* column) HWY_ATTR {
      hn::Store(hn::DemoteTo(once16, hn::ShiftRight<16>(hn::BitCast(di, v))), once16, column + k);
    };
    store_once(i, work.column_i);
    store_once(j, work.column_j);
    store_once(z, work.column_z);
    const auto is_hit = hn::Lt(hn::Iota(du, static_cast<std::uint32_t>(k)), count);
    store(hn::IfThenElseZero(is_hit, hn::Set(du, kScoreMost << 16 | kScoreMost)), work.score_most);
  }
}

// A number that a column holds twice, in all lanes.
template <class D>
HWY_INLINE hn::Vec<D> every(D d, std::uint32_t twice) {
  return hn::BitCast(d, hn::Set(hn::RepartitionToWide<hn::RebindToUnsigned<D>>(), twice));
}

// Calls take(k) for each hit k and what fills up the last turn.
template <class Take>
HWY_INLINE void for_each_hit(const Work& work, Take take) {
  for (std::size_t k = 0; k < work.count; k += kUnroll) {
    take(k);
    take(k + 1);
    take(k + 2);
    take(k + 3);
  }
}

// What eight directions have in common with eight others at right angles.
template <class D>
HWY_INLINE hn::Vec<D> at_right_angles(D d, hn::Vec<D> values) {
  const hn::RepartitionToWide<D> wide;
  return hn::BitCast(d, hn::Shuffle2301(hn::BitCast(wide, values)));
}

template <class V>
struct Points16 {
  V i, j;
};
template <class D, class V = hn::Vec<D>>
HWY_INLINE Points16<V> points16_of(D d, V places) {
  return {hn::Sub(hn::ShiftRight<6>(places), hn::Set(d, 64)), hn::Sub(hn::And(places, hn::Set(d, 63)), hn::Set(d, 32))};
}

// Steps 2 and 3: A and B for the starts of one vector.
template <class D>
HWY_INLINE void find_a_and_b(D d, Work& work, std::size_t start, const Limits& limits) {
  const std::size_t lanes = hn::Lanes(d);
  std::int16_t* const along = work.for_c + start * (kMaxHits + kUnroll);
  const auto none = hn::Set(d, kNone);
  const auto out_i = hn::Load(d, kStartFactors.out_i + start);
  const auto out_j = hn::Load(d, kStartFactors.out_j + start);
  auto most = none;
  auto place_a = hn::Zero(d);
  for_each_hit(work, [&](std::size_t k) HWY_ATTR {
    const auto value = hn::Add(hn::Mul(out_i, every(d, work.i[k])), hn::Mul(out_j, every(d, work.j[k])));
    hn::Store(value, d, along + k * lanes);
    place_a = hn::IfThenElse(hn::Gt(value, most), every(d, work.place[k]), place_a);
    most = hn::Max(most, value);
  });
  const auto a = points16_of(d, place_a);
  const auto three = hn::Set(d, 3);
  const auto a_z = hn::Add(hn::Mul(a.i, a.i), hn::Mul(three, hn::Mul(a.j, a.j)));
  const auto two_i = hn::Add(a.i, a.i);
  const auto six_j = hn::Mul(hn::Set(d, 6), a.j);
  const auto across_i = hn::Load(d, kStartFactors.across_i + start);
  const auto across_j = hn::Load(d, kStartFactors.across_j + start);
  const auto flip = hn::Load(d, kStartFactors.flip + start);
  const auto across_a = hn::Add(hn::Mul(across_i, a.i), hn::Mul(across_j, a.j));
  const auto pair_z = hn::Set(d, static_cast<std::int16_t>(limits.pair_z));
  const auto far_pair_z = hn::Set(d, static_cast<std::int16_t>(limits.far_pair_z));
  most = none;
  auto place_b = hn::Zero(d);
  for_each_hit(work, [&](std::size_t k) HWY_ATTR {
    const auto value = hn::Load(d, along + k * lanes);
    const auto across = hn::Mul(at_right_angles(d, value), flip);
    const auto dot = hn::Add(hn::Mul(two_i, every(d, work.i[k])), hn::Mul(six_j, every(d, work.j[k])));
    const auto ad = hn::Sub(hn::Add(a_z, every(d, work.z[k])), dot);
    const auto on_side_of_b = hn::Gt(across, across_a);
    const auto for_b = hn::IfThenElse(hn::And(on_side_of_b, hn::Gt(ad, pair_z)), value, none);
    hn::Store(hn::IfThenElse(hn::AndNot(on_side_of_b, hn::Gt(ad, far_pair_z)), value, none), d, along + k * lanes);
    place_b = hn::IfThenElse(hn::Gt(for_b, most), every(d, work.place[k]), place_b);
    most = hn::Max(most, for_b);
  });
  hn::Store(place_a, d, work.triplets.place_a + start);
  hn::Store(place_b, d, work.triplets.place_b + start);
}

// Step 3: C for the starts of one vector.
template <class D>
HWY_INLINE void find_c(D d, Work& work, std::size_t start) {
  const hn::RebindToUnsigned<D> du;
  const std::size_t lanes = hn::Lanes(d);
  const std::int16_t* const along = work.for_c + start * (kMaxHits + kUnroll);
  const auto none = hn::Set(d, kNone);
  const auto three = hn::Set(d, 3);
  const auto a = points16_of(d, hn::Load(d, work.triplets.place_a + start));
  const auto b = points16_of(d, hn::Load(d, work.triplets.place_b + start));
  const auto cotangent = hn::Load(du, work.triplets.cotangent + start);
  const auto bi = hn::Sub(b.i, a.i);
  const auto bj = hn::Sub(b.j, a.j);
  const auto sum_i = hn::Add(a.i, b.i);
  const auto sum_j = hn::Mul(three, hn::Add(a.j, b.j));
  const auto dot_ab = hn::Add(hn::Mul(a.i, b.i), hn::Mul(three, hn::Mul(a.j, b.j)));
  const auto cross_a = hn::Sub(hn::Mul(bi, a.j), hn::Mul(bj, a.i));
  auto most = none;
  auto place_c = hn::Zero(d);
  for_each_hit(work, [&](std::size_t k) HWY_ATTR {
    const auto i = every(d, work.i[k]);
    const auto j = every(d, work.j[k]);
    const auto dot = hn::Abs(hn::Sub(hn::Add(dot_ab, every(d, work.z[k])), hn::Add(hn::Mul(sum_i, i), hn::Mul(sum_j, j))));
    const auto cross = hn::Abs(hn::Sub(hn::Sub(hn::Mul(bi, j), hn::Mul(bj, i)), cross_a));
    const auto limit = hn::BitCast(d, hn::MulHigh(hn::ShiftLeft<3>(hn::BitCast(du, cross)), cotangent));
    const auto for_c = hn::IfThenElse(hn::Gt(dot, limit), none, hn::Load(d, along + k * lanes));
    place_c = hn::IfThenElse(hn::Gt(for_c, most), every(d, work.place[k]), place_c);
    most = hn::Max(most, for_c);
  });
  hn::Store(place_c, d, work.triplets.place_c + start);
}

// Point A, B or C of each start.
template <class V>
struct Points {
  V i, j, z;
};
template <class DF>
HWY_INLINE Points<hn::Vec<DF>> load_points(DF df, const std::int16_t* from) {
  const hn::RebindToSigned<DF> di;
  const hn::Rebind<std::int16_t, DF> d16;
  const auto places = hn::PromoteTo(di, hn::Load(d16, from));
  const auto i = hn::ConvertTo(df, hn::Sub(hn::ShiftRight<6>(places), hn::Set(di, 64)));
  const auto j = hn::ConvertTo(df, hn::Sub(hn::And(places, hn::Set(di, 63)), hn::Set(di, 32)));
  return {i, j, hn::Add(hn::Mul(i, i), hn::Mul(hn::Set(df, 3.0F), hn::Mul(j, j)))};
}
template <class DF, class V = hn::Vec<DF>>
HWY_INLINE V squared_distances(DF df, const Points<V>& a, const Points<V>& b) {
  const auto dot = hn::Add(hn::Mul(b.i, hn::Mul(hn::Set(df, 2.0F), a.i)), hn::Mul(b.j, hn::Mul(hn::Set(df, 6.0F), a.j)));
  return hn::Sub(hn::Add(a.z, b.z), dot);
}

// Step 3: cotangent_limit for the starts of one vector.
template <class DF>
HWY_INLINE void find_cotangents(DF df, Work& work, std::size_t start, const Limits& limits) {
  const hn::RebindToSigned<DF> di;
  const hn::Rebind<std::uint16_t, DF> du16;
  const auto ab = squared_distances(df, load_points(df, work.triplets.place_a + start),
                                    load_points(df, work.triplets.place_b + start));
  const auto square = hn::Sub(hn::Div(hn::Set(df, limits.flat), ab), hn::Set(df, 3.0F));
  const auto limit = hn::Mul(hn::Sqrt(hn::Max(square, hn::Zero(df))), hn::Set(df, 8192.0F));
  hn::Store(hn::DemoteTo(du16, hn::ConvertTo(di, hn::Min(limit, hn::Set(df, 65535.0F)))), du16, work.triplets.cotangent + start);
}

// Step 3: circles and their ScoreFactors for the starts of one vector.
template <class DF>
HWY_INLINE void find_circles(DF df, Work& work, std::size_t start, const Limits& limits) {
  const hn::RebindToSigned<DF> di;
  const hn::Rebind<std::int16_t, DF> d16;
  Triplets& t = work.triplets;
  const auto a = load_points(df, t.place_a + start);
  const auto b = load_points(df, t.place_b + start);
  const auto c = load_points(df, t.place_c + start);
  const auto bi = hn::Sub(b.i, a.i);
  const auto bj = hn::Sub(b.j, a.j);
  const auto ab = squared_distances(df, a, b);
  const auto ci = hn::Sub(c.i, a.i);
  const auto cj = hn::Sub(c.j, a.j);
  const auto ac = squared_distances(df, a, c);
  const auto one = hn::Set(df, 1.0F);
  const auto three = hn::Set(df, 3.0F);
  const auto cross = hn::Sub(hn::Mul(bi, cj), hn::Mul(bj, ci));
  const auto is_circle = hn::Ne(cross, hn::Zero(df));  // where there is a triplet
  const auto safe_cross = hn::IfThenElse(is_circle, cross, one);
  const auto u = hn::Sub(hn::Mul(cj, ab), hn::Mul(bj, ac));
  const auto v = hn::Mul(hn::Sub(hn::Mul(bi, ac), hn::Mul(ci, ab)), hn::Set(df, 1.0F / 3.0F));
  const auto length = hn::Sqrt(hn::IfThenElse(is_circle, hn::Add(hn::Mul(u, u), hn::Mul(three, hn::Mul(v, v))), one));
  const auto both = hn::Div(one, hn::Mul(safe_cross, length));
  const auto inverse = hn::Mul(hn::Set(df, 0.5F), hn::Mul(both, length));
  const auto from_a_i = hn::Mul(u, inverse);
  const auto from_a_j = hn::Mul(v, inverse);
  const auto center_i = hn::Add(a.i, from_a_i);
  const auto center_j = hn::Add(a.j, from_a_j);
  const auto radius = hn::Abs(hn::Mul(length, inverse));
  const auto radius2 = hn::Mul(radius, radius);
  const auto scale = hn::Mul(hn::Set(df, limits.score_scale),
                             hn::Abs(hn::Mul(both, hn::Mul(safe_cross, hn::Add(safe_cross, safe_cross)))));
  const auto center_z = hn::Add(hn::Mul(center_i, center_i), hn::Mul(three, hn::Mul(center_j, center_j)));
  hn::Store(center_i, df, t.circle_i + start);
  hn::Store(center_j, df, t.circle_j + start);
  hn::Store(radius, df, t.radius + start);
  const auto store_fixed = [&](auto value, std::int16_t* to) HWY_ATTR {
    const auto within = hn::Min(hn::Max(value, hn::Set(df, -32767.0F)), hn::Set(df, 32767.0F));
    const auto fixed = hn::Sub(hn::BitCast(di, hn::Add(within, hn::Set(df, kWhole))),
                               hn::Set(di, std::bit_cast<std::int32_t>(kWhole)));
    hn::Store(hn::DemoteTo(d16, fixed), d16, to + start);
  };
  store_fixed(hn::Mul(scale, hn::Set(df, 2048.0F)), t.scale);
  store_fixed(hn::Mul(scale, hn::Mul(center_i, hn::Set(df, 128.0F))), t.scale_i);
  store_fixed(hn::Mul(scale, hn::Mul(center_j, hn::Set(df, 192.0F))), t.scale_j);
  store_fixed(hn::Mul(scale, hn::Sub(center_z, radius2)), t.offset);
}

// Step 3: scores for the starts of one vector.
template <class D>
HWY_INLINE void find_scores(D d, Work& work, std::size_t start) {
  const hn::RebindToUnsigned<D> du;
  Triplets& t = work.triplets;
  const auto scale = hn::Load(d, t.scale + start);
  const auto scale_i = hn::Load(d, t.scale_i + start);
  const auto scale_j = hn::Load(d, t.scale_j + start);
  const auto offset = hn::Load(d, t.offset + start);
  const auto low = hn::Set(d, -255);
  const auto high = hn::Set(d, 255);
  auto score = hn::Zero(d);
  for_each_hit(work, [&](std::size_t k) HWY_ATTR {
    const auto out = hn::SaturatedAdd(hn::MulFixedPoint15(scale, every(d, work.score_z[k])), offset);
    const auto in = hn::SaturatedAdd(hn::MulFixedPoint15(scale_i, every(d, work.score_i[k])),
                                     hn::MulFixedPoint15(scale_j, every(d, work.score_j[k])));
    const auto pull = hn::Min(hn::Max(hn::SaturatedSub(out, in), low), high);
    const auto weight = hn::SaturatedSub(every(du, work.score_most[k]), hn::BitCast(du, hn::Mul(pull, pull)));
    score = hn::Add(score, hn::BitCast(d, hn::ShiftRight<8>(weight)));
  });
  const auto zero = hn::Zero(d);
  const auto no_b = hn::Or(hn::Eq(hn::Load(d, t.place_b + start), zero),
                           hn::Eq(hn::BitCast(d, hn::Load(du, t.cotangent + start)), zero));
  const auto found = hn::AndNot(no_b, hn::Ne(hn::Load(d, t.place_c + start), zero));
  hn::Store(hn::IfThenElse(found, score, hn::Set(d, -1)), d, t.score + start);
}

// The best of eight starts: score * 16 + 15 - start, so that of equal scores the first start has it. Negative: none.
HWY_INLINE std::int32_t best_start(const Triplets& triplets, std::size_t first) {
  const hn::CappedTag<std::int32_t, kDirections> di;
  const hn::Rebind<std::int16_t, decltype(di)> d16;
  auto best = hn::Set(di, -1);
  for (std::size_t start = first; start < first + kDirections; start += hn::Lanes(di)) {
    const auto rank = hn::Sub(hn::Set(di, 15), hn::Iota(di, static_cast<std::int32_t>(start)));
    const auto score = hn::PromoteTo(di, hn::Load(d16, triplets.score + start));
    best = hn::Max(best, hn::Add(hn::ShiftLeft<4>(score), rank));
  }
  return hn::GetLane(hn::MaxOfLanes(di, best));
}

// The best of an event's triplets, as best_start.
HWY_INLINE std::int32_t find_best_start(const Work& work, const Limits& limits) {
  const std::int32_t best = best_start(work.triplets, 0);
  const std::int32_t enough = limits.score_enough * static_cast<std::int32_t>(work.count);
  return best >> 4 < enough ? std::max(best, best_start(work.triplets, kDirections)) : best;
}

// Steps 2 and 3 of the active events. Each step goes over all events before the next: what one event waits for, another computes.
HWY_INLINE void find_triplets(Work* work, const std::uint8_t* active, std::size_t count, const Limits& limits) {
  const hn::CappedTag<std::int16_t, kStarts> d;
  const hn::CappedTag<float, HWY_HAVE_SCALABLE ? kDirections : kStarts> df;
  const auto for_starts = [&](auto tag, auto step) HWY_ATTR {
    for (std::size_t k = 0; k < count; ++k) {
      for (std::size_t start = 0; start < kStarts; start += hn::Lanes(tag)) step(work[active[k]], start);
    }
  };
  for (std::size_t k = 0; k < count; ++k) fill_columns(work[active[k]]);
  for_starts(d, [&](Work& one, std::size_t start) HWY_ATTR { find_a_and_b(d, one, start, limits); });
  for_starts(df, [&](Work& one, std::size_t start) HWY_ATTR { find_cotangents(df, one, start, limits); });
  for_starts(d, [&](Work& one, std::size_t start) HWY_ATTR { find_c(d, one, start); });
  for_starts(df, [&](Work& one, std::size_t start) HWY_ATTR { find_circles(df, one, start, limits); });
  for_starts(d, [&](Work& one, std::size_t start) HWY_ATTR { find_scores(d, one, start); });
}

#endif  // not scalar

}  // namespace HWY_NAMESPACE
}  // namespace nanet::rich
HWY_AFTER_NAMESPACE();

#endif  // include guard of this instruction set
