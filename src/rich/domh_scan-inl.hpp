// SPDX-License-Identifier: Apache-2.0
// The scan over candidate centres with centres in the lanes (see domh.hpp): 64 bins are 64 bits, a count is spread over several words ("planes"), plane p
// holding its binary digit p. The result of scan_centers, exactly.
// Included once an instruction set (see Highway's foreach_target.h), not with HWY_SCALAR.
#include <array>
#include <bit>
#include <cstdint>

#include "rich/center_tables.hpp"

#ifndef NANET_RICH_DOMH_SCAN_TABLES
#define NANET_RICH_DOMH_SCAN_TABLES
namespace nanet::rich {
// At each displacement the five bins about the hit's, as bits.
constexpr std::array<std::uint64_t, kDisplacements> make_bin_masks() {
  std::array<std::uint64_t, kDisplacements> masks{};
  for (std::size_t k = 0; k < kDisplacements; ++k) {
    const std::uint32_t bin = displacement_bin(k);
    if (bin < kRadiusBins) masks[k] = bin < 2 ? std::uint64_t{31} >> (2 - bin) : std::uint64_t{31} << (bin - 2);
  }
  return masks;
}
alignas(64) inline constexpr std::array<std::uint64_t, kDisplacements> kBinMasks = make_bin_masks();
inline constexpr std::uint32_t kMaxPlanes = 9;  // a score is at most 256
}  // namespace nanet::rich
#endif

#if defined(NANET_RICH_DOMH_SCAN_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef NANET_RICH_DOMH_SCAN_INL_HPP
#undef NANET_RICH_DOMH_SCAN_INL_HPP
#else
#define NANET_RICH_DOMH_SCAN_INL_HPP
#endif

#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR

HWY_BEFORE_NAMESPACE();
namespace nanet::rich {
namespace HWY_NAMESPACE {
namespace domh {
namespace hn = hwy::HWY_NAMESPACE;

using WordTag = hn::CappedTag<std::uint64_t, 8>;
using Words = hn::Vec<WordTag>;

HWY_INLINE Words majority(Words a, Words b, Words c) { return hn::Or(hn::And(a, b), hn::And(c, hn::Xor(a, b))); }

// plane += carry, carry = what goes to the next.
HWY_INLINE void half_add(Words& plane, Words& carry) {
  const Words both = hn::And(plane, carry);
  plane = hn::Xor(plane, carry);
  carry = both;
}

// Five bins about a hit's to those of nine that are not among the five.
HWY_INLINE Words outer_bins(Words five) { return hn::AndNot(five, hn::Or(hn::ShiftLeft<2>(five), hn::ShiftRight<2>(five))); }

// Stores the planes of the scores of the centres from `masks` on.
template <std::uint32_t kPlanes>
HWY_INLINE void add_hits(const std::uint64_t* masks, const std::uint16_t* displacements, std::uint32_t count, Words& p0, Words& p1,
                         Words& p2, Words& p3, Words& p4, Words& p5, Words& p6, Words& p7, Words& p8) {
  const WordTag d;
  p0 = p1 = p2 = p3 = p4 = p5 = p6 = p7 = p8 = hn::Zero(d);
  for (std::uint32_t k = 0; k < count; k += 2) {  // `count` is even
    // A hit adds 2 in the inner five bins, 1 in the outer four.
    const Words a2 = hn::LoadU(d, masks + displacements[k]);
    const Words b2 = hn::LoadU(d, masks + displacements[k + 1]);
    const Words a1 = outer_bins(a2);
    const Words b1 = outer_bins(b2);
    Words carry1 = majority(p0, a1, b1);
    p0 = hn::Xor(hn::Xor(a1, b1), p0);
    const Words carry2 = majority(p1, a2, b2);
    p1 = hn::Xor(hn::Xor(a2, b2), p1);
    half_add(p1, carry1);
    Words carry3 = majority(p2, carry1, carry2);
    p2 = hn::Xor(hn::Xor(carry1, carry2), p2);
    half_add(p3, carry3);
    half_add(p4, carry3);
    if constexpr (kPlanes > 5) half_add(p5, carry3);
    if constexpr (kPlanes > 6) half_add(p6, carry3);
    if constexpr (kPlanes > 7) {
      half_add(p7, carry3);
      half_add(p8, carry3);
    }
  }
}

// greater |= equal and this digit is larger than the best's; equal &= digits are the same.
HWY_INLINE void compare(Words plane, Words best, Words& greater, Words& equal) {
  const Words differ = hn::Xor(plane, best);
  greater = hn::Or(greater, hn::And(hn::And(equal, differ), plane));
  equal = hn::AndNot(differ, equal);
}

// Keeps those of `left` with the digit set, if there are any.
HWY_INLINE void descend(Words plane, std::uint32_t digit, Words& left, std::uint32_t& score) {
  const WordTag d;
  const Words with = hn::And(left, plane);
  if (hn::AllTrue(d, hn::Eq(with, hn::Zero(d)))) return;
  left = with;
  score |= 1u << digit;
}

template <std::uint32_t kPlanes>
HWY_INLINE CenterPeak scan(const LatticeHits& hits, const CenterRows& rows) {
  const WordTag d;
  const auto lanes = static_cast<std::int32_t>(hn::Lanes(d));
  std::uint16_t firsts[kMaxHits];
  std::uint16_t displacements[kMaxHits + 1];
  for (std::uint32_t k = 0; k < hits.count; ++k) firsts[k] = first_displacement(hits.i[k]);
  const std::uint32_t count = (hits.count + 1u) & ~1u;
  CenterPeak peak;
  std::uint64_t best[kMaxPlanes] = {};  // digits of the best score, all bits or none
  Words p0, p1, p2, p3, p4, p5, p6, p7, p8;
  for (std::int32_t j = -kMaxCenterJ; j <= kMaxCenterJ; ++j) {
    const std::int32_t blocks = rows.blocks[j + kMaxCenterJ];
    if (blocks == 0) continue;
    take_displacements(hits, j, firsts, displacements);
    displacements[hits.count] = kFarDj * kRowEntries + 32;  // in case of an odd number: a hit in no bin
    const std::int32_t centers = kCentersPerBlock * blocks;
    for (std::int32_t c = 0; c < centers; c += lanes) {
      add_hits<kPlanes>(kBinMasks.data() + block_displacement(0, blocks) + c, displacements, count, p0, p1, p2, p3, p4, p5, p6, p7,
                        p8);
      Words greater = hn::Zero(d);
      Words equal = hn::Set(d, ~std::uint64_t{0});
      if constexpr (kPlanes > 7) {
        compare(p8, hn::Set(d, best[8]), greater, equal);
        compare(p7, hn::Set(d, best[7]), greater, equal);
      }
      if constexpr (kPlanes > 6) compare(p6, hn::Set(d, best[6]), greater, equal);
      if constexpr (kPlanes > 5) compare(p5, hn::Set(d, best[5]), greater, equal);
      compare(p4, hn::Set(d, best[4]), greater, equal);
      compare(p3, hn::Set(d, best[3]), greater, equal);
      compare(p2, hn::Set(d, best[2]), greater, equal);
      compare(p1, hn::Set(d, best[1]), greater, equal);
      compare(p0, hn::Set(d, best[0]), greater, equal);
      if (hn::AllTrue(d, hn::Eq(greater, hn::Zero(d)))) continue;
      std::uint32_t score = 0;
      if constexpr (kPlanes > 7) {
        descend(p8, 8, greater, score);
        descend(p7, 7, greater, score);
      }
      if constexpr (kPlanes > 6) descend(p6, 6, greater, score);
      if constexpr (kPlanes > 5) descend(p5, 5, greater, score);
      descend(p4, 4, greater, score);
      descend(p3, 3, greater, score);
      descend(p2, 2, greater, score);
      descend(p1, 1, greater, score);
      descend(p0, 0, greater, score);
      alignas(64) std::uint64_t left[8] = {};
      hn::Store(greater, d, left);
      std::int32_t lane = 0;
      while (left[lane] == 0) ++lane;
      peak = {score, 2 * (c + lane) + 1 - centers, j, static_cast<std::uint32_t>(std::countr_zero(left[lane]))};
      for (std::uint32_t p = 0; p < kPlanes; ++p) best[p] = (score >> p & 1u) != 0 ? ~std::uint64_t{0} : 0;
    }
  }
  return peak;
}

// The peak over all candidate centres. The number of planes follows from the largest possible score, twice the hits.
HWY_INLINE CenterPeak scan_centers(const LatticeHits& hits, const CenterRows& rows) {
  if (hits.count <= 15) return scan<5>(hits, rows);
  if (hits.count <= 31) return scan<6>(hits, rows);
  if (hits.count <= 63) return scan<7>(hits, rows);
  return scan<kMaxPlanes>(hits, rows);
}

}  // namespace domh
}  // namespace HWY_NAMESPACE
}  // namespace nanet::rich
HWY_AFTER_NAMESPACE();

#endif  // not scalar
#endif  // include guard a target
