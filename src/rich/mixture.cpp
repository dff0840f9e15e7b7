// SPDX-License-Identifier: Apache-2.0
// The loops of the mixture finder in vectors: hits, or start circles, in the lanes. Operation by operation as in MixtureScalarKernels; see there for the
// meaning. The search itself is the same code as the scalar finder's.
#include "rich/mixture.hpp"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rich/mixture.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nanet::rich {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

using MixtureVectorKernels = MixtureScalarKernels;

#else

using Floats = hn::CappedTag<float, kMixtureLanes>;
using V = hn::Vec<Floats>;
using Integers = hn::RebindToSigned<Floats>;

HWY_INLINE V all(float value) { return hn::Set(Floats(), value); }

HWY_INLINE V exp_minus_lanes(V p) {
  const Floats d;
  const Integers di;
  const auto k = hn::ConvertTo(di, hn::Add(hn::Mul(p, all(1.44269504F)), all(0.5F)));
  const V kf = hn::ConvertTo(d, k);
  const V r = hn::Add(hn::Sub(p, hn::Mul(kf, all(0.693359375F))), hn::Mul(kf, all(2.12194440e-4F)));
  V e = hn::Sub(all(0.041666667F), hn::Mul(r, all(0.0083333333F)));
  e = hn::Sub(all(0.16666667F), hn::Mul(r, e));
  e = hn::Sub(all(0.5F), hn::Mul(r, e));
  e = hn::Sub(all(1.0F), hn::Mul(r, e));
  e = hn::Sub(all(1.0F), hn::Mul(r, e));
  return hn::Mul(e, hn::BitCast(d, hn::ShiftLeft<23>(hn::Sub(hn::Set(di, 127), k))));
}

HWY_INLINE V log_lanes(V x) {
  const Floats d;
  const Integers di;
  const auto bits = hn::BitCast(di, x);
  const auto k = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(k)));
  const V s = hn::Div(hn::Sub(m, all(1.0F)), hn::Add(m, all(1.0F)));
  const V s2 = hn::Mul(s, s);
  V series = hn::Add(all(0.4F), hn::Mul(s2, all(0.28571429F)));
  series = hn::Add(all(0.66666667F), hn::Mul(s2, series));
  series = hn::Add(all(2.0F), hn::Mul(s2, series));
  return hn::Add(hn::Mul(hn::ConvertTo(d, k), all(0.69314718F)), hn::Mul(s, series));
}

HWY_INLINE V share_on_disk_lanes(V x, V y, V r) {
  const V d2 = hn::Add(hn::Mul(x, x), hn::Mul(y, y));
  const V cosine = hn::Div(hn::Sub(hn::Sub(all(kDiskRadiusMm * kDiskRadiusMm), d2), hn::Mul(r, r)),
                           hn::Add(hn::Mul(hn::Mul(all(2.0F), hn::Sqrt(d2)), r), all(1.0F)));
  const V c = hn::Min(hn::Max(cosine, all(-1.0F)), all(1.0F));
  const V a = hn::Abs(c);
  V series = hn::Sub(all(0.023636F), hn::Mul(a, all(0.0059618F)));
  series = hn::Add(all(-0.067509F), hn::Mul(a, series));
  series = hn::Add(all(0.5F), hn::Mul(a, series));
  const V arc = hn::Mul(hn::Sqrt(hn::Sub(all(1.0F), a)), series);
  return hn::IfThenElse(hn::Lt(c, hn::Zero(Floats())), arc, hn::Sub(all(1.0F), arc));
}

// sums[0..3] become the sums of four rows of partial sums.
HWY_INLINE void sum_four_rows(const float (*lanes)[kMixtureLanes], float* sums) {
  const hn::FixedTag<float, 4> d;
  const hn::RepartitionToWide<decltype(d)> dw;
  const auto quad = [&](const float* row) HWY_ATTR {
    return hn::Add(hn::Add(hn::Load(d, row), hn::Load(d, row + 8)), hn::Add(hn::Load(d, row + 4), hn::Load(d, row + 12)));
  };
  const auto q0 = quad(lanes[0]);
  const auto q1 = quad(lanes[1]);
  const auto q2 = quad(lanes[2]);
  const auto q3 = quad(lanes[3]);
  const auto a = hn::BitCast(dw, hn::InterleaveLower(d, q0, q1));
  const auto b = hn::BitCast(dw, hn::InterleaveUpper(d, q0, q1));
  const auto e = hn::BitCast(dw, hn::InterleaveLower(d, q2, q3));
  const auto f = hn::BitCast(dw, hn::InterleaveUpper(d, q2, q3));
  const auto even = hn::Add(hn::BitCast(d, hn::InterleaveLower(dw, a, e)), hn::BitCast(d, hn::InterleaveLower(dw, b, f)));
  const auto odd = hn::Add(hn::BitCast(d, hn::InterleaveUpper(dw, a, e)), hn::BitCast(d, hn::InterleaveUpper(dw, b, f)));
  hn::Store(hn::Add(even, odd), d, sums);
}

struct MixtureVectorKernels {
  static HWY_NOINLINE void make_pool(const MixtureHits& hits, const MixtureSetup& setup, MixturePool& pool) {
    const std::uint32_t stride = pair_stride(hits.on_disk0, hits.count);
    pool.count = 0;
    add_circles(hits, setup, 0, hits.on_disk0, stride, pool);
    finish_pool(setup, 0, pool);
    pool.split = padded_count(pool.count);
    pool.count = pool.split;
    add_circles(hits, setup, hits.on_disk0, hits.count, stride, pool);
    finish_pool(setup, pool.split, pool);
  }

  static HWY_NOINLINE void score_pool(const MixtureHits& hits, const MixtureSetup& setup, MixturePool& pool) {
    const Floats d;
    const std::size_t lanes = hn::Lanes(d);
    const V reach = all(setup.inverse_reach2);
    alignas(64) float room[2][kMixtureColumn];  // for circles of each disk
    for (std::size_t h = 0; h < hits.count; h += lanes) {
      const V here = hn::Load(d, hits.room + h);
      const V there = hn::Mul(all(kOtherDisk), here);
      const auto on_disk0 = hn::FirstN(d, hits.on_disk0 > h ? hits.on_disk0 - h : 0);
      hn::Store(hn::IfThenElse(on_disk0, here, there), d, room[0] + h);
      hn::Store(hn::IfThenElse(on_disk0, there, here), d, room[1] + h);
    }
    for (std::size_t c = 0; c < pool.count; c += lanes) {
      const float* const rooms = room[c < pool.split ? 0 : 1];
      const V x = hn::Load(d, pool.x_mm + c);
      const V y = hn::Load(d, pool.y_mm + c);
      const V r = hn::Load(d, pool.radius_mm + c);
      const V half_inverse = hn::Div(all(0.5F), r);
      const V px = hn::Mul(hn::Add(x, x), half_inverse);
      const V py = hn::Mul(hn::Add(y, y), half_inverse);
      const V pc = hn::Mul(hn::Sub(hn::Sub(hn::Mul(r, r), hn::Mul(x, x)), hn::Mul(y, y)), half_inverse);
      V score = hn::Load(d, pool.price + c);
      for (std::uint32_t h = 0; h < hits.count; ++h) {
        V t = hn::Sub(hn::Mul(all(hits.z_mm2[h]), half_inverse), hn::Mul(all(hits.x_mm[h]), px));
        t = hn::Sub(hn::Sub(t, hn::Mul(all(hits.y_mm[h]), py)), pc);
        const V u = hn::Sub(all(1.0F), hn::Mul(hn::Mul(t, t), reach));
        const V v = hn::Max(u, hn::Zero(d));
        score = hn::Add(score, hn::Mul(all(rooms[h]), hn::Mul(v, v)));
      }
      hn::Store(score, d, pool.score + c);
    }
  }

  static HWY_NOINLINE std::uint32_t best_circle(const MixturePool& pool) {
    const Floats d;
    const std::size_t lanes = hn::Lanes(d);
    V best = hn::Load(d, pool.score);
    for (std::size_t c = lanes; c < pool.count; c += lanes) best = hn::Max(best, hn::Load(d, pool.score + c));
    best = hn::MaxOfLanes(d, best);
    for (std::size_t c = 0; c < pool.count; c += lanes) {
      const auto at = hn::FindFirstTrue(d, hn::Eq(hn::Load(d, pool.score + c), best));
      if (at >= 0) return static_cast<std::uint32_t>(c + static_cast<std::size_t>(at));
    }
    return 0;
  }

  static HWY_NOINLINE void drop_near(const MixtureCircle& circle, float distance_mm, MixturePool& pool) {
    const Floats d;
    for (std::size_t c = 0; c < pool.count; c += hn::Lanes(d)) {
      const V dx = hn::Abs(hn::Sub(hn::Load(d, pool.x_mm + c), all(circle.x_mm)));
      const V dy = hn::Abs(hn::Sub(hn::Load(d, pool.y_mm + c), all(circle.y_mm)));
      const V dr = hn::Abs(hn::Sub(hn::Load(d, pool.radius_mm + c), all(circle.radius_mm)));
      const auto near = hn::Lt(hn::Add(hn::Add(dx, dy), dr), all(distance_mm));
      hn::Store(hn::IfThenElse(near, all(-1.0e9F), hn::Load(d, pool.score + c)), d, pool.score + c);
    }
  }

  static HWY_NOINLINE void densities(const MixtureHits& hits, const MixtureSetup& setup, const MixtureModel& model,
                                     MixtureWork& work) {
    const Floats d;
    for (std::size_t h = 0; h < padded_count(hits.count); h += hn::Lanes(d)) {
      const V x = hn::Load(d, hits.x_mm + h);
      const V y = hn::Load(d, hits.y_mm + h);
      const V disk = hn::Load(d, hits.disk + h);
      const V weight = hn::Load(d, hits.weight + h);
      V total = all(model.noise);
      for (std::uint32_t k = 0; k < model.count; ++k) {
        const MixtureRing& ring = model.rings[k];
        const float amplitude = setup.amplitude * ring.yield / ring.radius_mm;
        const float amplitude0 = amplitude * (1.0F - ring.disk_share);
        const float amplitude1 = amplitude * ring.disk_share - amplitude0;
        const V dx = hn::Sub(x, all(ring.x_mm));
        const V dy = hn::Sub(y, all(ring.y_mm));
        const V distance = hn::Add(hn::Sqrt(hn::Add(hn::Mul(dx, dx), hn::Mul(dy, dy))), all(1.0e-3F));
        const V inverse = hn::Div(all(1.0F), distance);
        const V t = hn::Sub(distance, all(ring.radius_mm));
        const V q = hn::Mul(t, t);
        const V p = hn::Mul(q, hn::Add(all(setup.spread_a), hn::Mul(all(setup.spread_b), q)));
        const V share = hn::Mul(hn::Add(all(amplitude0), hn::Mul(all(amplitude1), disk)), weight);
        const V density = hn::Mul(share, exp_minus_lanes(hn::Min(p, all(80.0F))));
        hn::Store(hn::Mul(dx, inverse), d, work.cosine[k] + h);
        hn::Store(hn::Mul(dy, inverse), d, work.sine[k] + h);
        hn::Store(t, d, work.residual_mm[k] + h);
        hn::Store(density, d, work.density[k] + h);
        total = hn::Add(total, density);
      }
      hn::Store(total, d, work.total + h);
    }
  }

  static HWY_NOINLINE void add_up(const MixtureHits& hits, const MixtureSetup& setup, std::uint32_t rings, MixtureWork& work) {
    const Floats d;
    for (std::uint32_t k = 0; k < rings; ++k) {
      for (std::size_t l = 0; l < kMixtureLanes; l += hn::Lanes(d)) add_up_lanes(hits, setup, k, l, work);
      for (std::uint32_t s = 0; s < kMixtureSums; s += 4) sum_four_rows(work.lanes + s, work.sums[k] + s);
    }
  }

  static HWY_NOINLINE float log_total(const MixtureHits& hits, MixtureWork& work) {
    const Floats d;
    const std::size_t lanes = hn::Lanes(d);
    for (std::size_t l = 0; l < kMixtureLanes; l += lanes) {
      V sum = hn::Zero(d);
      for (std::size_t h = l; h < padded_count(hits.count); h += kMixtureLanes) {
        const auto real = hn::FirstN(d, h < hits.count ? hits.count - h : 0);
        sum = hn::Add(sum, hn::IfThenElseZero(real, log_lanes(hn::Load(d, work.total + h))));
      }
      hn::Store(sum, d, work.lanes[0] + l);
    }
    return sum_lanes(work.lanes[0]);
  }

  static HWY_NOINLINE float find_room(const MixtureSetup& setup, MixtureHits& hits, MixtureWork& work) {
    const Floats d;
    for (std::size_t l = 0; l < kMixtureLanes; l += hn::Lanes(d)) {
      V sum = hn::Zero(d);
      for (std::size_t h = l; h < padded_count(hits.count); h += kMixtureLanes) {
        const V gain = hn::Div(hn::Mul(all(setup.pool_gain), hn::Load(d, hits.weight + h)), hn::Load(d, work.total + h));
        const V room = log_lanes(hn::Add(all(1.0F), gain));
        hn::Store(room, d, hits.room + h);
        sum = hn::Add(sum, room);
      }
      hn::Store(sum, d, work.lanes[0] + l);
    }
    return sum_lanes(work.lanes[0]);
  }

 private:
  // Through hits begin .. end - 1.
  static HWY_INLINE void add_circles(const MixtureHits& hits, const MixtureSetup& setup, std::uint32_t begin, std::uint32_t end,
                                     std::uint32_t stride, MixturePool& pool) {
    std::uint32_t left = 1;
    for (std::uint32_t i = begin; i + 2 < end; ++i) {
      for (std::uint32_t j = i + 1; j + 1 < end; ++j) {
        if (--left != 0) continue;
        left = stride;
        add_pair(hits, setup, i, j, end, pool);
      }
    }
  }

  // Through hits i, j and each hit after j.
  static HWY_INLINE void add_pair(const MixtureHits& hits, const MixtureSetup& setup, std::uint32_t i, std::uint32_t j,
                                  std::uint32_t end, MixturePool& pool) {
    const Floats d;
    const float axs = hits.x_mm[j] - hits.x_mm[i];
    const float ays = hits.y_mm[j] - hits.y_mm[i];
    const float aas = axs * axs + ays * ays;
    if (aas < setup.pair_distance2_min) return;
    const V ax = all(axs);
    const V ay = all(ays);
    const V aa = all(aas);
    const V xi = all(hits.x_mm[i]);
    const V yi = all(hits.y_mm[i]);
    const V apart = all(setup.pair_distance2_min);
    for (std::size_t k = j + 1; k < end && pool.count < kMixturePool; k += hn::Lanes(d)) {
      const V bx = hn::Sub(hn::LoadU(d, hits.x_mm + k), xi);
      const V by = hn::Sub(hn::LoadU(d, hits.y_mm + k), yi);
      const V wx = hn::Sub(bx, ax);
      const V wy = hn::Sub(by, ay);
      const V bb = hn::Add(hn::Mul(bx, bx), hn::Mul(by, by));
      const V ww = hn::Add(hn::Mul(wx, wx), hn::Mul(wy, wy));
      const V cross = hn::Sub(hn::Mul(ax, by), hn::Mul(ay, bx));
      const auto wide = hn::And(hn::And(hn::Ge(bb, apart), hn::Ge(ww, apart)), hn::Ge(hn::Abs(cross), all(1.0F)));
      const V half_inverse = hn::Div(all(0.5F), hn::IfThenElse(wide, cross, all(1.0F)));
      const V ux = hn::Mul(hn::Sub(hn::Mul(by, aa), hn::Mul(ay, bb)), half_inverse);
      const V uy = hn::Mul(hn::Sub(hn::Mul(ax, bb), hn::Mul(bx, aa)), half_inverse);
      const V r = hn::Sqrt(hn::Add(hn::Mul(ux, ux), hn::Mul(uy, uy)));
      const auto sized = hn::And(hn::Ge(r, all(setup.radius_min_mm)), hn::Le(r, all(setup.radius_max_mm)));
      const auto good = hn::And(hn::And(wide, sized), hn::FirstN(d, end - k));
      hn::StoreU(hn::Compress(hn::Add(xi, ux), good), d, pool.x_mm + pool.count);
      hn::StoreU(hn::Compress(hn::Add(yi, uy), good), d, pool.y_mm + pool.count);
      hn::StoreU(hn::Compress(r, good), d, pool.radius_mm + pool.count);
      pool.count += static_cast<std::uint32_t>(hn::CountTrue(d, good));
    }
  }

  // Prices from circle `begin` on, and circles that win nothing after the last one.
  static HWY_INLINE void finish_pool(const MixtureSetup& setup, std::uint32_t begin, MixturePool& pool) {
    const Floats d;
    const std::size_t lanes = hn::Lanes(d);
    pool.count = std::min(pool.count, kMixturePool);
    for (std::size_t l = 0; l < kMixtureLanes; l += lanes) {
      hn::StoreU(all(kFarMm), d, pool.x_mm + pool.count + l);
      hn::StoreU(all(kFarMm), d, pool.y_mm + pool.count + l);
      hn::StoreU(all(1.0F), d, pool.radius_mm + pool.count + l);
    }
    for (std::size_t c = begin; c < pool.count; c += lanes) {
      const V x = hn::Load(d, pool.x_mm + c);
      const V y = hn::Load(d, pool.y_mm + c);
      const V center = hn::Mul(hn::Add(hn::Mul(x, x), hn::Mul(y, y)), all(setup.inverse_two_center2));
      const V light = hn::Mul(all(-setup.yield), share_on_disk_lanes(x, y, hn::Load(d, pool.radius_mm + c)));
      hn::Store(hn::Sub(light, center), d, pool.price + c);
    }
    for (std::size_t l = 0; l < kMixtureLanes; l += lanes) hn::StoreU(all(-2.0e9F), d, pool.price + pool.count + l);
  }

  static HWY_INLINE void add_up_lanes(const MixtureHits& hits, const MixtureSetup& setup, std::uint32_t k, std::size_t l,
                                      MixtureWork& work) {
    const Floats d;
    V cc = hn::Zero(d), cs = cc, ss = cc, c1 = cc, s1 = cc, n = cc, tc = cc, ts = cc, t1 = cc, in_ring = cc, on_disk = cc;
    for (std::size_t h = l; h < padded_count(hits.count); h += kMixtureLanes) {
      const V share = hn::Div(hn::Load(d, work.density[k] + h), hn::Load(d, work.total + h));
      const V t = hn::Load(d, work.residual_mm[k] + h);
      const V c = hn::Load(d, work.cosine[k] + h);
      const V s = hn::Load(d, work.sine[k] + h);
      const V bq = hn::Mul(all(setup.spread_b), hn::Mul(t, t));
      const V curvature = hn::Mul(share, hn::Add(all(setup.spread_a), hn::Mul(all(6.0F), bq)));
      const V pull = hn::Mul(hn::Mul(share, hn::Add(all(setup.spread_a), hn::Mul(all(2.0F), bq))), t);
      const V wc = hn::Mul(curvature, c);
      const V ws = hn::Mul(curvature, s);
      cc = hn::Add(cc, hn::Mul(wc, c));
      cs = hn::Add(cs, hn::Mul(wc, s));
      ss = hn::Add(ss, hn::Mul(ws, s));
      c1 = hn::Add(c1, wc);
      s1 = hn::Add(s1, ws);
      n = hn::Add(n, curvature);
      tc = hn::Add(tc, hn::Mul(pull, c));
      ts = hn::Add(ts, hn::Mul(pull, s));
      t1 = hn::Add(t1, pull);
      in_ring = hn::Add(in_ring, share);
      on_disk = hn::Add(on_disk, hn::Mul(share, hn::Load(d, hits.disk + h)));
    }
    hn::Store(cc, d, work.lanes[kSumCC] + l);
    hn::Store(cs, d, work.lanes[kSumCS] + l);
    hn::Store(ss, d, work.lanes[kSumSS] + l);
    hn::Store(c1, d, work.lanes[kSumC] + l);
    hn::Store(s1, d, work.lanes[kSumS] + l);
    hn::Store(n, d, work.lanes[kSumN] + l);
    hn::Store(tc, d, work.lanes[kSumTC] + l);
    hn::Store(ts, d, work.lanes[kSumTS] + l);
    hn::Store(t1, d, work.lanes[kSumT] + l);
    hn::Store(in_ring, d, work.lanes[kSumHits] + l);
    hn::Store(on_disk, d, work.lanes[kSumDisk] + l);
    hn::Store(hn::Zero(d), d, work.lanes[kSumSpare] + l);
  }
};

#endif  // scalar

void find_mixture_batch(const event::Event* events, std::size_t count, EventRings* rings, const MixtureCuts& cuts) {
  const MixtureSetup setup = prepare_mixture(cuts);
  MixtureWorker<MixtureVectorKernels> worker(setup);
  MixtureSearch search(setup, worker);
  for (std::size_t k = 0; k < count; ++k) search.find(events[k], kPmPoints.data(), rings[k]);
}

}  // namespace HWY_NAMESPACE
}  // namespace nanet::rich
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nanet::rich {

HWY_EXPORT(find_mixture_batch);

void find_mixture(std::span<const event::Event> events, std::span<EventRings> rings, const MixtureCuts& cuts) {
  HWY_DYNAMIC_DISPATCH(find_mixture_batch)(events.data(), std::min(events.size(), rings.size()), rings.data(), cuts);
}

}  // namespace nanet::rich
#endif  // HWY_ONCE
