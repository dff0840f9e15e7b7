// SPDX-License-Identifier: Apache-2.0
// MixtureWorker: what the search of the mixture finder (mixture_search.hpp) asks for, done by one thread with the loops of Kernels (those of
// mixture_kernels.hpp, or the vectors of src/rich/mixture.cpp).
#pragma once

#include <cmath>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/hit_plane.hpp"
#include "rich/mixture_kernels.hpp"
#include "rich/mixture_model.hpp"
#include "rich/mixture_search.hpp"

namespace nanet::rich {

template <class Kernels>
class MixtureWorker {
 public:
  static constexpr std::uint32_t kTogether = 1;

  NANET_HD explicit MixtureWorker(const MixtureSetup& setup) : setup_(setup) {}

  NANET_HD void lay_out(event::Event event, const PmPoint* points, EventRings& found) {
    const std::uint32_t looked_at = event.count < kMaxHits ? event.count : kMaxHits;
    std::uint16_t keys[kMaxHits];
    std::uint32_t count = 0;
    hits_.on_disk0 = 0;
    for (std::uint32_t k = 0; k < looked_at; ++k) {
      if (points[event.hits[k] & 1023u].mapped == 0) continue;
      const std::uint16_t key = mixture_order(setup_, event.hits[k]);
      hits_.on_disk0 += 1u - (key >> 15);
      std::uint32_t at = count++;
      for (; at > 0 && keys[at - 1] > key; --at) keys[at] = keys[at - 1];
      keys[at] = key;
    }
    const float event_ns = setup_.time_use != 0 ? event_time_ns(setup_, keys, count) : 0.0F;
    for (std::uint32_t k = 0; k < count; ++k) {
      const PmPoint& point = points[row_of_key(keys[k])];
      hits_.x_mm[k] = point.x_mm;
      hits_.y_mm[k] = point.y_mm;
      hits_.z_mm2[k] = point.x_mm * point.x_mm + point.y_mm * point.y_mm;
      hits_.disk[k] = static_cast<float>(keys[k] >> 15);
      time_ns_[k] = time_of_key(keys[k]);
      hits_.weight[k] = time_weight(setup_, time_ns_[k] - event_ns);
    }
    for (std::uint32_t k = count; k < padded_count(count) + kMixtureLanes; ++k) {
      hits_.x_mm[k] = kFarMm;
      hits_.y_mm[k] = kFarMm;
      hits_.z_mm2[k] = kFarMm * kFarMm;
      hits_.disk[k] = 0.0F;
      hits_.weight[k] = 0.0F;
    }
    hits_.count = count;
    found = EventRings{};
    found.mapped_hits = static_cast<std::uint16_t>(count);
    found.truncated = event.count > kMaxHits ? 1u : 0u;
  }

  NANET_HD std::uint32_t hit_count() const { return hits_.count; }

  NANET_HD const MixtureModel& model(MixtureSlot slot) const { return models_[slot]; }
  NANET_HD void copy(MixtureSlot to, MixtureSlot from) { models_[to] = models_[from]; }

  NANET_HD void clear(MixtureSlot slot) {
    models_[slot] = MixtureModel{};
    models_[slot].noise = maximise_noise(setup_, hits_.count, 0.0F);
  }

  NANET_HD void with(MixtureSlot to, MixtureSlot from, const MixtureCircle& circle) {
    MixtureModel& model = models_[to];
    model = models_[from];
    model.rings[model.count++] = ring_on(setup_, circle);
  }

  NANET_HD void without(MixtureSlot to, MixtureSlot from, std::uint32_t ring) {
    MixtureModel& model = models_[to];
    model = models_[from];
    for (std::uint32_t j = ring + 1; j < model.count; ++j) model.rings[j - 1] = model.rings[j];
    --model.count;
  }

  NANET_HD void only(MixtureSlot to, MixtureSlot from, std::uint32_t ring) {
    MixtureModel& model = models_[to];
    model = models_[from];
    model.rings[0] = model.rings[ring];
    model.count = 1;
  }

  NANET_HD void fit(MixtureSlot first, std::uint32_t count, std::uint32_t steps) {
    for (MixtureSlot slot = first; slot < first + count; ++slot) fit(models_[slot], steps);
  }

  NANET_HD float room(MixtureSlot slot) {
    Kernels::densities(hits_, setup_, models_[slot], work_);
    return Kernels::find_room(setup_, hits_, work_);
  }

  NANET_HD bool make_starts(float) {
    Kernels::make_pool(hits_, setup_, pool_);
    if (pool_.count > 0) Kernels::score_pool(hits_, setup_, pool_);
    return pool_.count > 0;
  }

  NANET_HD void score(float) { Kernels::score_pool(hits_, setup_, pool_); }
  NANET_HD void drop(const MixtureCircle& circle) { Kernels::drop_near(circle, setup_.start_distance_min_mm, pool_); }

  NANET_HD bool next(MixtureStart& start) const {
    const std::uint32_t c = Kernels::best_circle(pool_);
    start = {{pool_.x_mm[c], pool_.y_mm[c], pool_.radius_mm[c]}, pool_.score[c]};
    return start.score > kNoStart;
  }

  // A hit belongs to each ring that has a third of its density or more.
  NANET_HD void answer(MixtureSlot slot, EventRings& found) const {
    const MixtureModel& model = models_[slot];
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
      if (count >= setup_.hits_min) found.rings[found.count++] = ring_of(model.rings[k], count, square, time_ns);
    }
    sort_rings(found);
  }

 private:
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
      const float moved_mm = maximise_ring(setup_, work_.sums[k], model.rings[k]);
      largest_mm = moved_mm > largest_mm ? moved_mm : largest_mm;
      in_rings = in_rings + work_.sums[k][kSumHits];
    }
    model.noise = maximise_noise(setup_, hits_.count, in_rings);
    return largest_mm;
  }

  // The model's log likelihood with all priors, and the densities in work_.
  NANET_HD void evaluate(MixtureModel& model) {
    Kernels::densities(hits_, setup_, model, work_);
    model.likelihood = with_noise(setup_, Kernels::log_total(hits_, work_), model.noise);
    for (std::uint32_t k = 0; k < model.count; ++k)
      model.likelihood = with_ring(setup_, model.likelihood, terms_of(setup_, model.rings[k]));
  }

  const MixtureSetup& setup_;
  MixtureHits hits_;
  float time_ns_[kMaxHits];
  MixturePool pool_;
  MixtureWork work_;
  MixtureModel models_[kMixtureSlots];
};

}  // namespace nanet::rich
