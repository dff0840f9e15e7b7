// SPDX-License-Identifier: Apache-2.0
// For finders that fit chosen hits of several events together: sums of chosen hits, and solve_ring with an event in each lane of double.
// Included once for each instruction set, from a file that uses Highway's foreach_target. Every event gets the bits of solve_ring.
#if defined(NANET_SOLVE_RINGS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NANET_SOLVE_RINGS_INL
#undef NANET_SOLVE_RINGS_INL
#else
#define NANET_SOLVE_RINGS_INL
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hit_set.hpp"
#include "hwy/highway.h"
#include "rich/math_fit.hpp"
#include "rich/ring_sums.hpp"

HWY_BEFORE_NAMESPACE();
namespace nanet::rich {
namespace HWY_NAMESPACE {

// Sums over the hits k < count whose bit in `chosen` is set, at lattice points (i[k], j[k]) with z = i^2 + 3 j^2. The columns must be aligned to a
// vector and readable up to the next multiple of 16.
HWY_INLINE RingSums sum_chosen(const std::int16_t* i, const std::int16_t* j, const std::int16_t* z, std::size_t count, HitSet chosen) {
  RingSums sums;
#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE
  (void)z;
  for (std::size_t k = 0; k < count; ++k) {
    if ((chosen >> k & 1u) != 0) add(sums, make_ring_sums_row(i[k], j[k]));
  }
#else
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<std::int16_t, 16> d;
  const hn::RepartitionToWide<decltype(d)> dw;
  using V = hn::Vec<decltype(dw)>;
  V some[8];  // of each sum: which lane holds what does not matter
  V more[8];
  for (std::size_t field = 0; field < 8; ++field) some[field] = more[field] = hn::Zero(dw);
  const auto add_products = [&](std::size_t field, auto a, auto b)
                                HWY_ATTR { some[field] = hn::ReorderWidenMulAccumulate(dw, a, b, some[field], more[field]); };
  const auto one = hn::Set(d, 1);
  for (std::size_t k = 0; k < count; k += hn::Lanes(d)) {
    const std::uint64_t bits = static_cast<std::uint64_t>(chosen >> k) & ((std::uint64_t{1} << hn::Lanes(d)) - 1);
    std::uint8_t bytes[8];
    std::memcpy(bytes, &bits, sizeof(bits));
    const auto mask = hn::LoadMaskBits(d, bytes);
    const auto some_i = hn::IfThenElseZero(mask, hn::Load(d, i + k));
    const auto some_j = hn::IfThenElseZero(mask, hn::Load(d, j + k));
    const auto some_z = hn::IfThenElseZero(mask, hn::Load(d, z + k));
    add_products(0, some_i, hn::Set(d, 256));
    add_products(1, some_j, one);
    add_products(2, some_i, some_i);
    add_products(3, some_i, some_j);
    add_products(4, some_j, some_j);
    add_products(5, some_z, some_i);
    add_products(6, some_z, some_j);
    add_products(7, some_z, some_z);
  }
  // Transposed and added: in each block of four lanes the four sums of a half.
  const hn::RepartitionToWide<decltype(dw)> d64;
  for (std::size_t field = 0; field < 8; ++field) some[field] = hn::RearrangeToOddPlusEven(some[field], more[field]);
  const auto pairs = [&](V a, V b) HWY_ATTR { return hn::Add(hn::InterleaveLower(dw, a, b), hn::InterleaveUpper(dw, a, b)); };
  const auto fours = [&](V a, V b, V c, V e) HWY_ATTR {
    const auto ab = hn::BitCast(d64, pairs(a, b));
    const auto ce = hn::BitCast(d64, pairs(c, e));
    return hn::Add(hn::BitCast(dw, hn::InterleaveLower(d64, ab, ce)), hn::BitCast(dw, hn::InterleaveUpper(d64, ab, ce)));
  };
  const auto low = fours(some[0], some[1], some[2], some[3]);
  const auto high = fours(some[4], some[5], some[6], some[7]);
  std::int32_t* const out = &sums.hits_and_i;
  if constexpr (hn::MaxLanes(dw) == 8) {
    hn::Store(hn::Add(hn::ConcatLowerLower(dw, high, low), hn::ConcatUpperUpper(dw, high, low)), dw, out);
  } else {
    hn::Store(low, dw, out);
    hn::Store(high, dw, out + 4);
  }
  sums.hits_and_i += std::popcount(static_cast<std::uint64_t>(chosen)) + std::popcount(static_cast<std::uint64_t>(chosen >> 64));
#endif
  return sums;
}

// solve_ring with one event in each lane of d, operation by operation; see there for the meaning. column(f): int32 lanes of sum f (in the order
// of RingSums). All four are 0 in a lane without a ring.
template <class D, class Column, class VF>
HWY_INLINE void solve_lanes(D d, Column column_i32, VF& x_mm, VF& y_mm, VF& radius_mm, VF& rms_mm) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Rebind<std::int32_t, D> di32;
  const hn::Rebind<float, D> df;
  const auto column = [&](std::size_t f) HWY_ATTR { return hn::PromoteTo(d, column_i32(f)); };
  const auto set = [&](double value) HWY_ATTR { return hn::Set(d, value); };
  const auto packed = column_i32(std::size_t{0});
  const auto n = hn::PromoteTo(d, hn::And(packed, hn::Set(di32, 255)));
  const auto si = hn::PromoteTo(d, hn::ShiftRight<8>(packed));
  const auto sj = column(1);
  const auto sii = column(2);
  const auto sjj = column(4);
  const auto sz = hn::Add(sii, hn::Mul(set(3.0), sjj));
  const auto a = hn::Sub(hn::Mul(n, sii), hn::Mul(si, si));
  const auto b = hn::Sub(hn::Mul(n, column(3)), hn::Mul(si, sj));
  const auto c = hn::Sub(hn::Mul(n, sjj), hn::Mul(sj, sj));
  const auto p = hn::Sub(hn::Mul(n, column(5)), hn::Mul(sz, si));
  const auto q = hn::Sub(hn::Mul(n, column(6)), hn::Mul(sz, sj));
  const auto w = hn::Sub(hn::Mul(n, column(7)), hn::Mul(sz, sz));
  const auto det = hn::Sub(hn::Mul(a, c), hn::Mul(b, b));
  const auto found = hn::Gt(det, hn::Zero(d));
  const auto one = set(1.0);
  const auto inverse_det = hn::Div(one, hn::IfThenElse(found, det, one));
  const auto inverse_n = hn::Div(one, hn::IfThenElse(found, n, one));
  const auto two_a = hn::Mul(hn::Sub(hn::Mul(p, c), hn::Mul(q, b)), inverse_det);
  const auto two_b = hn::Mul(hn::Sub(hn::Mul(a, q), hn::Mul(b, p)), inverse_det);
  const auto center_i = hn::Mul(set(0.5), two_a);
  const auto center_j = hn::Mul(set(1.0 / 6.0), two_b);
  const auto di = hn::Sub(center_i, hn::Mul(si, inverse_n));
  const auto dj = hn::Sub(center_j, hn::Mul(sj, inverse_n));
  const auto inverse_n2 = hn::Mul(inverse_n, inverse_n);
  const auto spread = hn::Mul(hn::Add(a, hn::Mul(set(3.0), c)), inverse_n2);
  const auto radius2 = hn::Add(hn::Add(hn::Mul(di, di), hn::Mul(set(3.0), hn::Mul(dj, dj))), spread);
  const auto residual = hn::Mul(hn::Sub(w, hn::Add(hn::Mul(two_a, p), hn::Mul(two_b, q))), inverse_n2);
  const auto residual2 = hn::IfThenElseZero(hn::Gt(residual, hn::Zero(d)), residual);
  const auto safe_radius2 = hn::IfThenElse(found, radius2, one);
  const auto to_float = [&](auto v) HWY_ATTR { return hn::DemoteTo(df, hn::IfThenElseZero(found, v)); };
  x_mm = to_float(hn::Mul(set(9.0), center_i));
  y_mm = to_float(hn::Mul(set(15.588457268119894), center_j));
  radius_mm = to_float(hn::Mul(set(9.0), hn::Sqrt(safe_radius2)));
  rms_mm = to_float(hn::Mul(set(4.5), hn::Sqrt(hn::Div(residual2, safe_radius2))));
}

#if HWY_TARGET == HWY_SCALAR

HWY_INLINE void solve_rings(const RingSums* sums, std::size_t count, Ring* rings) {
  for (std::size_t k = 0; k < count; ++k) rings[k] = solve_ring(sums[k]);
}

#else

// Rings of sums[0..count-1]. See solve_ring for the meaning of each step.
HWY_INLINE void solve_rings(const RingSums* sums, std::size_t count, Ring* rings) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<std::int32_t, decltype(d)> di32;
  const hn::Rebind<float, decltype(d)> df;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t at = 0; at < count; at += lanes) {
    alignas(64) std::int32_t columns[8][8] = {};
    const std::size_t some = count - at < lanes ? count - at : lanes;
    for (std::size_t k = 0; k < some; ++k) {
      const std::int32_t* from = &sums[at + k].hits_and_i;
      for (std::size_t field = 0; field < 8; ++field) columns[field][k] = from[field];
    }
    auto x = hn::Zero(df), y = x, radius = x, rms = x;  // by reference: a scalable vector cannot stand in a struct
    solve_lanes(
        d, [&](std::size_t f) HWY_ATTR { return hn::Load(di32, columns[f]); }, x, y, radius, rms);
    alignas(64) float x_mm[8];
    alignas(64) float y_mm[8];
    alignas(64) float radius_mm[8];
    alignas(64) float rms_mm[8];
    hn::Store(x, df, x_mm);
    hn::Store(y, df, y_mm);
    hn::Store(radius, df, radius_mm);
    hn::Store(rms, df, rms_mm);
    for (std::size_t k = 0; k < some; ++k) {
      // A ring's radius is at least half the distance of two PMs, so 0 says that there is none.
      const RingStatus status = radius_mm[k] > 0.0F ? RingStatus::ring : RingStatus::no_ring;
      rings[at + k] = {x_mm[k], y_mm[k], radius_mm[k], rms_mm[k], 0.0F, static_cast<std::uint16_t>(hit_count(sums[at + k])),
                       status};
    }
  }
}

#endif  // scalar

}  // namespace HWY_NAMESPACE
}  // namespace nanet::rich
HWY_AFTER_NAMESPACE();

#endif  // include guard of this instruction set
