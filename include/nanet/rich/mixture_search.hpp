// SPDX-License-Identifier: Apache-2.0
// The search of the mixture finder (mixture.hpp): which rings, from which starts. Scalar code; the loops over hits and starts are Kernels.
//
// Terms
//   model   rings and noise, with their log likelihood and what each ring pays (the prior).
//   pool    start circles through triplets of hits, made once an event.
//   room    what a hit would gain in the middle of one more ring: little where a ring of the model explains it already.
//
// Order of work: the best start and those not far behind it each become a first ring, EM fits it, and rings are added while that gains; then
// each ring is taken out and looked for again. A start whose score is hopeless is not fitted: that is what makes easy events fast.
#pragma once

#include <cmath>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/rich/hit_plane.hpp"
#include "nanet/rich/mixture_cuts.hpp"
#include "nanet/rich/mixture_kernels.hpp"
#include "nanet/rich/ring.hpp"

namespace nanet::rich {

inline constexpr std::uint32_t kMixtureStarts = 8;  // at most
inline constexpr std::uint32_t kMixtureEmSteps = 20;
inline constexpr std::uint32_t kMixtureRounds = 8;
inline constexpr float kMixtureStill = 0.03F;   // mm; EM ends when no ring moves more
inline constexpr float kMixtureStepMm = 15.0F;  // EM moves a ring by this at most
inline constexpr float kDiskPrior = 1.0F;       // hits on either disk that a ring is thought to have had already
inline constexpr float kRadiusBias = 0.35F;  // over the radius: what the spread of hits in two dimensions adds, in steps of the fit

// `low` if not above it (or not a number), `high` if above that.
NANET_HD constexpr float clamp_cut(float value, float low, float high) { return value > low ? (value < high ? value : high) : low; }

NANET_HD inline MixtureSetup prepare_mixture(const MixtureCuts& cuts) {
  MixtureSetup setup;
  const float narrow = kSpreadRmsMm / clamp_cut(cuts.sigma_mm, 1.0F, 50.0F);
  const float narrow2 = narrow * narrow;
  const float center_mm = clamp_cut(cuts.center_sigma_mm, 1.0F, 1.0e4F);
  const float noise = clamp_cut(cuts.noise_hits, 0.01F, 100.0F);
  setup.spread_a = kSpreadA * narrow2;
  setup.spread_b = kSpreadB * (narrow2 * narrow2);
  setup.amplitude = kSpreadPeak * narrow * 0.15915494F * (976.0F * kPmAreaMm2) / noise;
  setup.yield = clamp_cut(cuts.ring_yield, 0.1F, 100.0F);
  setup.pool_gain = setup.amplitude * setup.yield / 130.0F;
  const float reach_mm = 17.0F / narrow;
  setup.inverse_reach2 = 1.0F / (reach_mm * reach_mm);
  setup.inverse_two_center2 = 0.5F / (center_mm * center_mm);
  setup.radius_min_mm = clamp_cut(cuts.radius_min_mm, 10.0F, 500.0F);
  setup.radius_max_mm = clamp_cut(cuts.radius_max_mm, 10.0F, 500.0F);
  const float pair_mm = clamp_cut(cuts.pair_distance_min_mm, 1.0F, 1000.0F);
  setup.pair_distance2_min = pair_mm * pair_mm;
  return setup;
}

template <class Kernels>
class MixtureSearch {
 public:
  NANET_HD MixtureSearch(const MixtureCuts& cuts, const MixtureSetup& setup) : cuts_(cuts), setup_(setup) {
    const float noise_width = clamp_cut(cuts.noise_width, 0.01F, 100.0F);
    const float yield_width = clamp_cut(cuts.yield_width, 0.01F, 100.0F);
    noise_ = clamp_cut(cuts.noise_hits, 0.01F, 100.0F);
    noise_shape_ = 1.0F / (noise_width * noise_width);
    yield_shape_ = 1.0F / (yield_width * yield_width);
    starts_ = cuts.starts < 1 ? 1 : cuts.starts < kMixtureStarts ? cuts.starts : kMixtureStarts;
    em_steps_ = cuts.em_steps < 1 ? 1 : cuts.em_steps < kMixtureEmSteps ? cuts.em_steps : kMixtureEmSteps;
    deep_rings_ = cuts.deep_rings < 3 ? 3 : cuts.deep_rings;
    rounds_ = cuts.move_rounds < kMixtureRounds ? cuts.move_rounds : kMixtureRounds;
  }

  NANET_HD EventRings find(EventHits event, const PmPoint* points) {
    EventRings found;
    lay_out(event, points, found);
    if (hits_.count < 4) return found;
    Kernels::make_pool(hits_, setup_, pool_);
    if (pool_.count == 0) return found;
    MixtureModel best = search();
    if (best.count > 0) {
      fit(best, em_steps_);
      answer(best, found);
    }
    return found;
  }

 private:
  // As lay_out_hits (hit_plane.hpp), but in order of disk (if it is used), channel in the disk, time.
  NANET_HD void lay_out(EventHits event, const PmPoint* points, EventRings& found) {
    const std::uint32_t looked_at = event.count < kMaxHits ? event.count : kMaxHits;
    std::uint16_t keys[kMaxHits];
    std::uint32_t count = 0;
    hits_.on_disk0 = 0;
    for (std::uint32_t k = 0; k < looked_at; ++k) {
      const std::uint16_t hit = event.hits[k];
      if (points[hit & 1023u].mapped == 0) continue;
      const std::uint32_t disk = cuts_.disk_use != 0 ? hit >> 10 & 1u : 0u;
      const auto key = static_cast<std::uint16_t>(disk << 15 | (hit & 1023u) << 5 | hit >> 11);
      hits_.on_disk0 += 1u - disk;
      std::uint32_t at = count++;
      for (; at > 0 && keys[at - 1] > key; --at) keys[at] = keys[at - 1];
      keys[at] = key;
    }
    const float sigma2 = clamp_cut(cuts_.time_sigma_ns, 0.01F, 10.0F) * clamp_cut(cuts_.time_sigma_ns, 0.01F, 10.0F) +
                         kHitTimeUnitNs * kHitTimeUnitNs / 12.0F;
    const float time_peak = 32.0F * kHitTimeUnitNs * 0.39894228F / std::sqrt(sigma2);
    for (std::uint32_t k = 0; k < count; ++k) {
      const PmPoint& point = points[keys[k] >> 5 & 1023];
      hits_.x_mm[k] = point.x_mm;
      hits_.y_mm[k] = point.y_mm;
      hits_.z_mm2[k] = point.x_mm * point.x_mm + point.y_mm * point.y_mm;
      hits_.disk[k] = static_cast<float>(keys[k] >> 15);
      const float time_ns = static_cast<float>(static_cast<int>((keys[k] & 31) ^ 16) - 16) * kHitTimeUnitNs;
      time_ns_[k] = time_ns;
      const float p = time_ns * time_ns / (2.0F * sigma2);
      hits_.weight[k] = cuts_.time_use != 0 ? time_peak * exp_minus(p < 80.0F ? p : 80.0F) : 1.0F;
    }
    for (std::uint32_t k = count; k < padded_count(count) + kMixtureLanes; ++k) {
      hits_.x_mm[k] = kFarMm;
      hits_.y_mm[k] = kFarMm;
      hits_.z_mm2[k] = kFarMm * kFarMm;
      hits_.disk[k] = 0.0F;
      hits_.weight[k] = 0.0F;
    }
    hits_.count = count;
    found.mapped_hits = static_cast<std::uint16_t>(count);
    found.truncated = event.count > kMaxHits ? 1u : 0u;
  }

  NANET_HD MixtureModel search() {
    MixtureModel none;
    none.noise = (static_cast<float>(hits_.count) + noise_shape_) / (noise_ + noise_shape_);
    evaluate(none);
    MixtureModel best = none;
    MixtureModel firsts[kMixtureStarts];
    const std::uint32_t first_count = find_firsts(none, firsts);
    for (std::uint32_t f = 0; f < first_count; ++f) {
      if (f > 0 && contains(best, firsts[f].rings[0])) continue;
      MixtureModel model = firsts[f];
      grow(model);
      if (model.likelihood > best.likelihood) best = model;
    }
    for (std::uint32_t round = 0; round < rounds_ && best.count > 0; ++round) {
      if (!improve(best) && !(best.count >= deep_rings_ && replace_all_but_one(best))) break;
    }
    return best;
  }

  // Adds rings while that gains.
  NANET_HD void grow(MixtureModel& model) {
    while (model.count < kMaxRings) {
      MixtureModel more = model;
      if (!extend(model, more)) return;
      model = more;
    }
  }

  // Keeps one ring and builds the others anew, from starts away from them: two wrong rings can hold one another where one alone would be replaced.
  NANET_HD bool replace_all_but_one(MixtureModel& best) {
    for (std::uint32_t k = 0; k < best.count; ++k) {
      MixtureModel base = best;
      base.rings[0] = best.rings[k];
      base.count = 1;
      fit(base, em_steps_);
      Kernels::densities(hits_, setup_, base, work_);
      Kernels::find_room(setup_, hits_, work_);
      Kernels::score_pool(hits_, setup_, pool_);
      for (std::uint32_t j = 0; j < best.count; ++j) {
        const MixtureRing& ring = best.rings[j];
        Kernels::drop_near({ring.x_mm, ring.y_mm, ring.radius_mm}, cuts_.start_distance_min_mm, pool_);
      }
      MixtureCircle circles[kMixtureStarts];
      std::uint32_t count = 0;
      for (; count < starts_; ++count) {
        const std::uint32_t c = Kernels::best_circle(pool_);
        if (!(pool_.score[c] > cuts_.ring_penalty)) break;
        circles[count] = {pool_.x_mm[c], pool_.y_mm[c], pool_.radius_mm[c]};
        Kernels::drop_near(circles[count], cuts_.start_distance_min_mm, pool_);
      }
      for (std::uint32_t s = 0; s < count; ++s) {
        MixtureModel model = with(base, circles[s]);
        fit(model, em_steps_);
        grow(model);
        if (model.likelihood > best.likelihood + 0.01F) {
          best = model;
          return true;
        }
      }
    }
    return false;
  }

  // One ring each, from the best starts.
  NANET_HD std::uint32_t find_firsts(const MixtureModel& none, MixtureModel* firsts) {
    MixtureModel base = none;
    Kernels::densities(hits_, setup_, base, work_);
    Kernels::find_room(setup_, hits_, work_);
    Kernels::score_pool(hits_, setup_, pool_);
    float first_score = 0;
    std::uint32_t count = 0;
    for (std::uint32_t s = 0; s < starts_; ++s) {
      const std::uint32_t c = Kernels::best_circle(pool_);
      if (s == 0) first_score = pool_.score[c];
      if (pool_.score[c] < first_score - cuts_.first_gap) break;
      const MixtureCircle circle{pool_.x_mm[c], pool_.y_mm[c], pool_.radius_mm[c]};
      firsts[count] = with(none, circle);
      fit(firsts[count], em_steps_);
      Kernels::drop_near(circle, cuts_.start_distance_min_mm, pool_);
      const MixtureRing& ring = firsts[count].rings[0];
      Kernels::drop_near({ring.x_mm, ring.y_mm, ring.radius_mm}, cuts_.start_distance_min_mm, pool_);
      ++count;
    }
    return count;
  }

  // Puts the best model with one more ring than `base` into `best`, if it is better than that. `base` may have been fitted or not.
  NANET_HD bool extend(const MixtureModel& base, MixtureModel& best, const MixtureRing* but = nullptr) {
    Kernels::densities(hits_, setup_, base, work_);
    const float needed = (best.likelihood - base.likelihood) + cuts_.ring_penalty - cuts_.start_gap;
    const float room = Kernels::find_room(setup_, hits_, work_);
    if (room < needed + 0.3F * setup_.yield) return false;  // not even a ring through all hits, most of it outside the disk
    Kernels::score_pool(hits_, setup_, pool_);
    if (but != nullptr) Kernels::drop_near({but->x_mm, but->y_mm, but->radius_mm}, cuts_.start_distance_min_mm, pool_);
    bool better = false;
    for (std::uint32_t s = 0; s < starts_; ++s) {
      const std::uint32_t c = Kernels::best_circle(pool_);
      if (!(pool_.score[c] > needed)) break;
      const MixtureCircle circle{pool_.x_mm[c], pool_.y_mm[c], pool_.radius_mm[c]};
      MixtureModel model = with(base, circle);
      fit(model, em_steps_);
      if (model.likelihood > best.likelihood) {
        best = model;
        better = true;
      }
      if (s + 1 < starts_) Kernels::drop_near(circle, cuts_.start_distance_min_mm, pool_);
    }
    return better;
  }

  // Takes each ring out and looks for another in its place, or one more.
  NANET_HD bool improve(MixtureModel& best) {
    for (std::uint32_t k = 0; k < best.count; ++k) {
      if (best.count < 2) break;  // every start has been a first ring
      MixtureModel base = best;
      const MixtureRing ring = best.rings[k];
      for (std::uint32_t j = k + 1; j < base.count; ++j) base.rings[j - 1] = base.rings[j];
      --base.count;
      fit(base, em_steps_);
      if (base.likelihood > best.likelihood) {
        best = base;
        return true;
      }
      MixtureModel other = best;
      other.likelihood = best.likelihood + 0.01F;
      if (extend(base, other, &ring)) {
        best = other;
        return true;
      }
    }
    if (best.count == kMaxRings) return false;
    MixtureModel more = best;
    if (!extend(best, more)) return false;
    best = more;
    return true;
  }

  NANET_HD MixtureModel with(const MixtureModel& base, const MixtureCircle& circle) {
    MixtureModel model = base;
    model.rings[model.count++] = {circle.x_mm, circle.y_mm, circle.radius_mm, setup_.yield, cuts_.disk_use != 0 ? 0.5F : 0.0F};
    return model;
  }

  NANET_HD static bool contains(const MixtureModel& model, const MixtureRing& ring) {
    for (std::uint32_t k = 0; k < model.count; ++k) {
      const float d = std::abs(model.rings[k].x_mm - ring.x_mm) + std::abs(model.rings[k].y_mm - ring.y_mm) +
                      std::abs(model.rings[k].radius_mm - ring.radius_mm);
      if (d < 15.0F) return true;
    }
    return false;
  }

  // EM, then the likelihood.
  NANET_HD void fit(MixtureModel& model, std::uint32_t steps) {
    for (std::uint32_t step = 0; step < steps; ++step) {
      Kernels::densities(hits_, setup_, model, work_);
      Kernels::add_up(hits_, setup_, model.count, work_);
      if (maximise(model) < kMixtureStill) break;
    }
    evaluate(model);
  }

  // One step of all parameters, from work_.sums; returns the largest move of a ring.
  NANET_HD float maximise(MixtureModel& model) {
    float largest_mm = 0;
    float in_rings = 0;
    for (std::uint32_t k = 0; k < model.count; ++k) {
      MixtureRing& ring = model.rings[k];
      const float* sums = work_.sums[k];
      const float moved_mm = move_ring(ring, sums);
      largest_mm = moved_mm > largest_mm ? moved_mm : largest_mm;
      ring.yield = (sums[kSumHits] + yield_shape_) /
                   (share_on_disk(ring.x_mm, ring.y_mm, ring.radius_mm) + yield_shape_ / setup_.yield);
      if (cuts_.disk_use != 0) ring.disk_share = (sums[kSumDisk] + kDiskPrior) / (sums[kSumHits] + 2.0F * kDiskPrior);
      in_rings = in_rings + sums[kSumHits];
    }
    const float rest = static_cast<float>(hits_.count) - in_rings;
    model.noise = ((rest > 0.0F ? rest : 0.0F) + noise_shape_) / (noise_ + noise_shape_);
    return largest_mm;
  }

  // Newton's step for centre and radius.
  NANET_HD float move_ring(MixtureRing& ring, const float* sums) {
    const float prior = setup_.inverse_two_center2;  // halves, as the sums
    const float cc = sums[kSumCC] + prior;
    const float ss = sums[kSumSS] + prior;
    const float n = sums[kSumN] + 1.0e-4F;
    const float cs = sums[kSumCS];
    const float c = sums[kSumC];
    const float s = sums[kSumS];
    const float gx = sums[kSumTC] - prior * ring.x_mm;
    const float gy = sums[kSumTS] - prior * ring.y_mm;
    const float gr = sums[kSumT] - (0.5F * kRadiusBias) * sums[kSumHits] / ring.radius_mm;
    const float a = ss * n - s * s;
    const float b = c * s - cs * n;
    const float d = cs * s - c * ss;
    const float det = (cc * a + cs * b) + c * d;
    if (!(det > 1.0e-12F)) return 0.0F;
    float dx = ((gx * a + gy * b) + gr * d) / det;
    float dy = ((gx * b + gy * (cc * n - c * c)) + gr * (cs * c - cc * s)) / det;
    float dr = ((gx * d + gy * (cs * c - cc * s)) + gr * (cc * ss - cs * cs)) / det;
    const float ax = std::abs(dx);
    const float ay = std::abs(dy);
    const float ar = std::abs(dr);
    const float axy = ax > ay ? ax : ay;
    const float largest = axy > ar ? axy : ar;
    if (!(largest < 1.0e6F)) return 0.0F;
    if (largest > kMixtureStepMm) {
      const float shorter = kMixtureStepMm / largest;
      dx = dx * shorter;
      dy = dy * shorter;
      dr = dr * shorter;
    }
    ring.x_mm += dx;
    ring.y_mm += dy;
    ring.radius_mm = clamp_cut(ring.radius_mm + dr, 20.0F, 600.0F);
    return largest;
  }

  // The model's log likelihood with all priors, and the densities in work_.
  NANET_HD void evaluate(MixtureModel& model) {
    Kernels::densities(hits_, setup_, model, work_);
    float likelihood = Kernels::log_total(hits_, work_) - (model.noise - 1.0F) * noise_ +
                       noise_shape_ * ((log_of(model.noise) - model.noise) + 1.0F);
    for (std::uint32_t k = 0; k < model.count; ++k) {
      const MixtureRing& ring = model.rings[k];
      const float ratio = ring.yield / setup_.yield;
      const float center2 = ring.x_mm * ring.x_mm + ring.y_mm * ring.y_mm;
      const float below = setup_.radius_min_mm > ring.radius_mm ? setup_.radius_min_mm - ring.radius_mm : 0.0F;
      const float above = ring.radius_mm > setup_.radius_max_mm ? ring.radius_mm - setup_.radius_max_mm : 0.0F;
      likelihood -= ring.yield * share_on_disk(ring.x_mm, ring.y_mm, ring.radius_mm) + cuts_.ring_penalty;
      likelihood -= center2 * setup_.inverse_two_center2 + 0.25F * (below * below + above * above);
      likelihood += yield_shape_ * ((log_of(ratio) - ratio) + 1.0F);
      if (cuts_.disk_use != 0) likelihood += kDiskPrior * log_of(4.0F * ring.disk_share * (1.0F - ring.disk_share));
    }
    model.likelihood = likelihood;
  }

  // A hit belongs to each ring that has a third of its density or more.
  NANET_HD void answer(const MixtureModel& model, EventRings& found) {
    for (std::uint32_t k = 0; k < model.count; ++k) {
      std::uint32_t count = 0;
      float square = 0;
      float time_ns = 0;
      for (std::uint32_t h = 0; h < hits_.count; ++h) {
        if (work_.density[k][h] * 3.0F < work_.total[h]) continue;
        ++count;
        square = square + work_.residual_mm[k][h] * work_.residual_mm[k][h];
        time_ns = time_ns + time_ns_[h];
      }
      if (count < cuts_.hits_min || count < 4) continue;
      Ring& ring = found.rings[found.count++];
      ring.x_mm = model.rings[k].x_mm;
      ring.y_mm = model.rings[k].y_mm;
      ring.radius_mm = model.rings[k].radius_mm;
      ring.hits = static_cast<std::uint16_t>(count);
      ring.rms_mm = std::sqrt(square / static_cast<float>(count));
      ring.time_ns = time_ns / static_cast<float>(count);
      ring.status = RingStatus::ring;
    }
    sort_rings(found);
  }

  const MixtureCuts& cuts_;
  const MixtureSetup& setup_;
  float noise_, noise_shape_, yield_shape_;
  std::uint32_t starts_, em_steps_, rounds_, deep_rings_;
  MixtureHits hits_;
  float time_ns_[kMaxHits];
  MixturePool pool_;
  MixtureWork work_;
};

}  // namespace nanet::rich
