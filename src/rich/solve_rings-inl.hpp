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

#include "hwy/highway.h"
#include "nanet/rich/math_fit.hpp"
#include "nanet/rich/ring_sums.hpp"

#ifndef NANET_HIT_SET
#define NANET_HIT_SET
namespace nanet::rich {
using HitSet = unsigned __int128;  // bit k: hit k
static_assert(8 * sizeof(HitSet) == kMaxHits);
}  // namespace nanet::rich
#endif

HWY_BEFORE_NAMESPACE();
namespace nanet::rich {
namespace HWY_NAMESPACE {

// Sums over the hits k whose bit in `chosen` is set; codes[k] is hit_order of the hit. `codes` must be aligned to a
// vector and readable up to the next multiple of 16.
HWY_INLINE RingSums sum_chosen(const std::uint32_t* codes, HitSet chosen) {
  RingSums sums;
#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE
  for (std::size_t k = 0; chosen >> k != 0; ++k) {
    if ((chosen >> k & 1u) != 0) add(sums, kRingSumTable[codes[k] >> 6]);
    if (k + 1 == kMaxHits) break;
  }
#else
  namespace hn = hwy::HWY_NAMESPACE;
  // The chosen codes, filled up to a multiple of four with a channel that has no PM and so a row of zeros: few turns, of a number easily guessed.
  const hn::CappedTag<std::uint32_t, 16> du;
  alignas(64) std::uint32_t some[kMaxHits + 16];
  std::size_t count = 0;
  for (std::size_t k = 0; chosen >> k != 0; k += hn::Lanes(du)) {
    const std::uint64_t bits = static_cast<std::uint64_t>(chosen >> k) & ((std::uint64_t{1} << hn::Lanes(du)) - 1);
    std::uint8_t bytes[8];
    std::memcpy(bytes, &bits, sizeof(bits));
    hn::StoreU(hn::Compress(hn::Load(du, codes + k), hn::LoadMaskBits(du, bytes)), du, some + count);
    count += static_cast<std::size_t>(std::popcount(bits));
    if (k + hn::Lanes(du) >= kMaxHits) break;
  }
  for (std::size_t k = 0; k < 4; ++k) some[count + k] = 1023u << 6;
  const hn::CappedTag<std::int32_t, 8> d;
  std::int32_t* out = &sums.hits_and_i;
  for (std::size_t field = 0; field < 8; field += hn::Lanes(d)) {
    const auto row = [&](std::size_t k) HWY_ATTR { return hn::Load(d, &kRingSumTable[some[k] >> 6].hits_and_i + field); };
    auto sum0 = hn::Zero(d);
    auto sum1 = hn::Zero(d);
    for (std::size_t k = 0; k < count; k += 4) {
      sum0 = hn::Add(sum0, hn::Add(row(k), row(k + 1)));
      sum1 = hn::Add(sum1, hn::Add(row(k + 2), row(k + 3)));
    }
    hn::Store(hn::Add(sum0, sum1), d, out + field);
  }
#endif
  return sums;
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
  const auto set = [&](double value) HWY_ATTR { return hn::Set(d, value); };
  for (std::size_t at = 0; at < count; at += lanes) {
    alignas(64) std::int32_t columns[8][8] = {};
    const std::size_t some = count - at < lanes ? count - at : lanes;
    for (std::size_t k = 0; k < some; ++k) {
      const std::int32_t* from = &sums[at + k].hits_and_i;
      for (std::size_t field = 0; field < 8; ++field) columns[field][k] = from[field];
    }
    const auto column = [&](std::size_t field) HWY_ATTR { return hn::PromoteTo(d, hn::Load(di32, columns[field])); };
    const auto packed = hn::Load(di32, columns[0]);
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
    alignas(64) float x_mm[8];
    alignas(64) float y_mm[8];
    alignas(64) float radius_mm[8];
    alignas(64) float rms_mm[8];
    hn::Store(to_float(hn::Mul(set(9.0), center_i)), df, x_mm);
    hn::Store(to_float(hn::Mul(set(15.588457268119894), center_j)), df, y_mm);
    hn::Store(to_float(hn::Mul(set(9.0), hn::Sqrt(safe_radius2))), df, radius_mm);
    hn::Store(to_float(hn::Mul(set(4.5), hn::Sqrt(hn::Div(residual2, safe_radius2)))), df, rms_mm);
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
