// SPDX-License-Identifier: Apache-2.0
// The vectorised MATH fit. An event's rows are summed one vector a hit; the sums of four events at a time are transposed into columns;
// then the closed form runs with one event in each lane of double, in the same order of operations as solve_ring.
#include "rich/math_fit.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rich/math_fit.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "solve_rings-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace nanet::rich {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kBlock = 64;  // events between the two steps: 2 KiB of sums, always in cache

// Column f holds sum f (in the order of RingSums) of each event of a block.
struct alignas(64) Columns {
  std::int32_t sums[8][kBlock];
};

HWY_INLINE const std::int32_t* row_of(std::uint16_t hit) { return &kRingSumTable[ring_sums_row_index(hit)].hits_and_i; }

// Calls take(row) for each hit, four at a time so that the row loads do not wait for one another.
template <class Take0, class Take1>
HWY_INLINE void for_each_row(const event::Event& event, Take0 take0, Take1 take1) {
  const std::uint16_t* hit = event.hits;
  std::uint32_t left = std::min(event.count, kMaxHits);
  for (; left >= 4; left -= 4, hit += 4) {
    take0(row_of(hit[0]));
    take1(row_of(hit[1]));
    take0(row_of(hit[2]));
    take1(row_of(hit[3]));
  }
  for (; left != 0; --left, ++hit) take0(row_of(*hit));
}

#if HWY_TARGET == HWY_SCALAR

// Sums of events[0..3] into columns at..at+3.
HWY_INLINE void sum_four(const event::Event* events, std::size_t at, Columns& columns) {
  for (std::size_t k = 0; k < 4; ++k) {
    std::int32_t sums[8] = {};
    const auto take = [&](const std::int32_t* row) {
      for (std::size_t f = 0; f < 8; ++f) sums[f] += row[f];
    };
    for_each_row(events[k], take, take);
    for (std::size_t f = 0; f < 8; ++f) columns.sums[f][at + k] = sums[f];
  }
}

#else

// v0..v3 hold four sums of events 0..3 in each 128-bit block; afterwards v[f] holds sum f of the four events.
template <class D, class V>
HWY_INLINE void transpose_blocks(D d, V& v0, V& v1, V& v2, V& v3) {
  const hn::RepartitionToWide<D> dw;
  const V a = hn::InterleaveLower(d, v0, v1);
  const V b = hn::InterleaveUpper(d, v0, v1);
  const V e = hn::InterleaveLower(d, v2, v3);
  const V f = hn::InterleaveUpper(d, v2, v3);
  v0 = hn::BitCast(d, hn::InterleaveLower(dw, hn::BitCast(dw, a), hn::BitCast(dw, e)));
  v1 = hn::BitCast(d, hn::InterleaveUpper(dw, hn::BitCast(dw, a), hn::BitCast(dw, e)));
  v2 = hn::BitCast(d, hn::InterleaveLower(dw, hn::BitCast(dw, b), hn::BitCast(dw, f)));
  v3 = hn::BitCast(d, hn::InterleaveUpper(dw, hn::BitCast(dw, b), hn::BitCast(dw, f)));
}

#if HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE

using SumsTag = hn::FixedTag<std::int32_t, 8>;

HWY_INLINE hn::Vec<SumsTag> sum_rows(const event::Event& event) {
  const SumsTag d;
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  for_each_row(
      event, [&](const std::int32_t* row) HWY_ATTR { sum0 = hn::Add(sum0, hn::Load(d, row)); },
      [&](const std::int32_t* row) HWY_ATTR { sum1 = hn::Add(sum1, hn::Load(d, row)); });
  return hn::Add(sum0, sum1);
}

HWY_INLINE void sum_four(const event::Event* events, std::size_t at, Columns& columns) {
  const SumsTag d;
  const hn::Half<SumsTag> dh;
  auto v0 = sum_rows(events[0]);
  auto v1 = sum_rows(events[1]);
  auto v2 = sum_rows(events[2]);
  auto v3 = sum_rows(events[3]);
  transpose_blocks(d, v0, v1, v2, v3);
  hn::Store(hn::LowerHalf(dh, v0), dh, &columns.sums[0][at]);
  hn::Store(hn::LowerHalf(dh, v1), dh, &columns.sums[1][at]);
  hn::Store(hn::LowerHalf(dh, v2), dh, &columns.sums[2][at]);
  hn::Store(hn::LowerHalf(dh, v3), dh, &columns.sums[3][at]);
  hn::Store(hn::UpperHalf(dh, v0), dh, &columns.sums[4][at]);
  hn::Store(hn::UpperHalf(dh, v1), dh, &columns.sums[5][at]);
  hn::Store(hn::UpperHalf(dh, v2), dh, &columns.sums[6][at]);
  hn::Store(hn::UpperHalf(dh, v3), dh, &columns.sums[7][at]);
}

#else

using SumsTag = hn::FixedTag<std::int32_t, 4>;

template <class V>
HWY_INLINE void sum_rows(const event::Event& event, V& low, V& high) {
  const SumsTag d;
  auto low0 = hn::Zero(d);
  auto high0 = hn::Zero(d);
  const auto take = [&](const std::int32_t* row) HWY_ATTR {
    low0 = hn::Add(low0, hn::Load(d, row));
    high0 = hn::Add(high0, hn::Load(d, row + 4));
  };
  for_each_row(event, take, take);
  low = low0;
  high = high0;
}

HWY_INLINE void sum_four(const event::Event* events, std::size_t at, Columns& columns) {
  const SumsTag d;
  auto v0 = hn::Zero(d), v1 = v0, v2 = v0, v3 = v0, v4 = v0, v5 = v0, v6 = v0, v7 = v0;
  sum_rows(events[0], v0, v4);
  sum_rows(events[1], v1, v5);
  sum_rows(events[2], v2, v6);
  sum_rows(events[3], v3, v7);
  transpose_blocks(d, v0, v1, v2, v3);
  transpose_blocks(d, v4, v5, v6, v7);
  hn::Store(v0, d, &columns.sums[0][at]);
  hn::Store(v1, d, &columns.sums[1][at]);
  hn::Store(v2, d, &columns.sums[2][at]);
  hn::Store(v3, d, &columns.sums[3][at]);
  hn::Store(v4, d, &columns.sums[4][at]);
  hn::Store(v5, d, &columns.sums[5][at]);
  hn::Store(v6, d, &columns.sums[6][at]);
  hn::Store(v7, d, &columns.sums[7][at]);
}

#endif  // lanes
#endif  // scalar

// Rings of at most kBlock events.
HWY_INLINE void fit_block(const event::Event* events, std::size_t count, Ring* rings) {
  const hn::CappedTag<double, 8> d;
  const std::size_t lanes = hn::Lanes(d);
  Columns columns;
  alignas(64) float out[4 * kBlock];
  std::size_t done = 0;
  for (; done + 4 <= count; done += 4) sum_four(events + done, done, columns);
  if (done < count) {  // fill up to a multiple of four with empty events
    event::Event rest[4] = {};
    std::copy(events + done, events + count, rest);
    sum_four(rest, done, columns);
    done += 4;
  }
  if (lanes > 4 && done % lanes != 0) {
    const event::Event none[4] = {};
    sum_four(none, done, columns);
  }
  const hn::Rebind<std::int32_t, decltype(d)> di32;
  const hn::Rebind<float, decltype(d)> df;
  for (std::size_t at = 0; at < count; at += lanes) {
    auto x = hn::Zero(df), y = x, radius = x, rms = x;
    solve_lanes(
        d, [&](std::size_t f) HWY_ATTR { return hn::Load(di32, &columns.sums[f][at]); }, x, y, radius, rms);
    hn::StoreInterleaved4(x, y, radius, rms, df, out + 4 * at);
  }
  for (std::size_t k = 0; k < count; ++k) {
    Ring& ring = rings[k];
    std::memcpy(&ring.x_mm, out + 4 * k, 4 * sizeof(float));
    ring.time_ns = 0;
    ring.hits = static_cast<std::uint16_t>(columns.sums[0][k] & 255);
    // A ring's radius is at least half the distance of two PMs, so 0 says that there is none.
    ring.status = static_cast<RingStatus>((out[4 * k + 2] > 0 ? 1u : 0u) | (events[k].count > kMaxHits ? 2u : 0u));
  }
}

void fit_rings_batch(const event::Event* events, std::size_t count, Ring* rings) {
  for (std::size_t at = 0; at < count; at += kBlock) fit_block(events + at, std::min(kBlock, count - at), rings + at);
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace nanet::rich
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nanet::rich {

HWY_EXPORT(fit_rings_batch);
HWY_EXPORT(target_name);

void fit_rings(std::span<const event::Event> events, std::span<Ring> rings) {
  HWY_DYNAMIC_DISPATCH(fit_rings_batch)(events.data(), std::min(events.size(), rings.size()), rings.data());
}

const char* fit_rings_target() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

Ring fit_ring(event::Event event) {
  const std::uint32_t count = std::min(event.count, kMaxHits);
  RingSums sums;
  for (std::uint32_t k = 0; k < count; ++k) add(sums, kRingSumTable[ring_sums_row_index(event.hits[k])]);
  Ring ring = solve_ring(sums);
  if (event.count > kMaxHits) ring.status = static_cast<RingStatus>(static_cast<unsigned>(ring.status) | 2u);
  return ring;
}

}  // namespace nanet::rich
#endif  // HWY_ONCE
