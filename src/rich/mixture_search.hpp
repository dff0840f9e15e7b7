// SPDX-License-Identifier: Apache-2.0
// The search of the mixture finder (mixture.hpp): which rings, from which starts. The same code for a CPU thread and for a warp of a GPU: what it
// computes over hits, rings and start circles is done by a worker.
//
// Terms
//   model   rings and noise, with their log likelihood and what each ring pays (the prior). The worker keeps them, in slots.
//   start   a circle through three hits; the pool holds those of an event.
//   room    what a hit would gain in the middle of one more ring: little where a ring of the model explains it already.
//
// Order of work: the best start and those not far below it each become a first ring, EM fits it, and rings are added while that gains; then
// each ring is taken out and looked for again. A start whose score is hopeless is not fitted, which makes easy events fast.
//
// A Worker (MixtureWorker, MixtureTeam) has
//   kTogether                  so many models are fitted at once in the time of one, about: fits are asked for ahead of need
//   lay_out(event, points, found)   takes the hits of an event; hit_count() of them are on PMs
//   model(slot)                a model; clear(slot) makes it one of noise only; copy(to, from); without(to, from, ring) and only(to, from, ring)
//                              leave one ring out, or only it; with(to, from, circle) adds a ring
//   fit(first, count, steps)   EM on the models of `count` slots, all with as many rings, then their likelihoods
//   room(slot)                 the hits' room given a model; returns its sum
//   make_starts(gap)           makes the pool; false if it is empty. next() then offers starts not more than `gap` below the best one
//   score(needed)              next() then offers starts above `needed`. Of both kinds it may offer others too, after these
//   next(start)                the best start that is not near one that was dropped; false if there is none
//   drop(circle)               removes the starts near a circle from the choice
//   answer(slot, found)        the rings of a model that was fitted last
#pragma once

#include <cmath>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/mixture_model.hpp"

namespace nanet::rich {

using MixtureSlot = std::uint32_t;
inline constexpr MixtureSlot kModelNone = 0;                              // noise only
inline constexpr MixtureSlot kModelBest = 1;                              // so far
inline constexpr MixtureSlot kModelBases = 2;                             // the best one without some of its rings
inline constexpr MixtureSlot kModelFits = kModelBases + kMaxRings;        // a model with one more ring, for each start
inline constexpr MixtureSlot kModelFirsts = kModelFits + kMixtureStarts;  // where a search begins, for each start
inline constexpr MixtureSlot kMixtureSlots = kModelFirsts + kMixtureStarts;

template <class Worker>
class MixtureSearch {
 public:
  NANET_HD MixtureSearch(const MixtureSetup& setup, Worker& worker) : setup_(setup), worker_(worker) {}

  NANET_HD void find(event::Event event, const PmPoint* points, EventRings& found) {
    worker_.lay_out(event, points, found);
    if (worker_.hit_count() < 4) return;
    worker_.clear(kModelNone);
    worker_.fit(kModelNone, 1, 0);
    worker_.room(kModelNone);
    if (!worker_.make_starts(setup_.first_gap)) return;
    search();
    if (rings_of(kModelBest) == 0) return;
    worker_.fit(kModelBest, 1, setup_.em_steps);
    worker_.answer(kModelBest, found);
  }

 private:
  static constexpr MixtureSlot kNothing = kMixtureSlots;

  NANET_HD void search() {
    worker_.copy(kModelBest, kModelNone);
    const std::uint32_t first_count = find_firsts();
    NANET_UNROLL(1)
    for (std::uint32_t f = 0; f < first_count; ++f) {
      const MixtureSlot first = kModelFirsts + f;
      if (f > 0 && contains(kModelBest, circle_of(worker_.model(first).rings[0]))) continue;
      grow(first);
      if (likelihood(first) > likelihood(kModelBest)) take(first, true);
    }
    NANET_UNROLL(1)
    for (std::uint32_t round = 0; round < setup_.rounds && rings_of(kModelBest) > 0; ++round) {
      if (!improve() && !(rings_of(kModelBest) >= setup_.deep_rings && replace_all_but_one())) break;
    }
  }

  // One ring each, from the best starts. Where fits can go together, the next best start is fitted with the best one, before it is known
  // whether that one's ring comes so near that it should not have been.
  NANET_HD std::uint32_t find_firsts() {
    float least = 0;
    std::uint32_t count = 0;
    NANET_UNROLL(1)
    while (count < setup_.starts) {
      MixtureStart start;
      if (!worker_.next(start)) break;
      if (count == 0) least = start.score - setup_.first_gap;
      if (start.score < least) break;
      const MixtureSlot slot = kModelFirsts + count;
      worker_.with(slot, kModelNone, start.circle);
      worker_.drop(start.circle);
      MixtureStart ahead;
      const bool two = Worker::kTogether > 1 && count + 1 < setup_.starts && worker_.next(ahead) && !(ahead.score < least);
      if (two) worker_.with(slot + 1, kModelNone, ahead.circle);
      worker_.fit(slot, two ? 2 : 1, setup_.em_steps);
      const MixtureCircle ring = circle_of(worker_.model(slot).rings[0]);
      worker_.drop(ring);
      ++count;
      if (!two || is_near(ahead.circle, ring, setup_.start_distance_min_mm)) continue;
      worker_.drop(ahead.circle);
      worker_.drop(circle_of(worker_.model(slot + 1).rings[0]));
      ++count;
    }
    return count;
  }

  // A model becomes the best one. grown: extend() found nothing to add to it.
  NANET_HD void take(MixtureSlot slot, bool grown) {
    worker_.copy(kModelBest, slot);
    grown_ = grown;
  }

  // Adds rings while that gains.
  NANET_HD void grow(MixtureSlot slot) {
    NANET_UNROLL(1)
    while (rings_of(slot) < kMaxRings) {
      const MixtureSlot more = extend(slot, likelihood(slot), nullptr);
      if (more == kNothing) return;
      worker_.copy(slot, more);
    }
  }

  // Takes each ring out and looks for another in its place, or one more.
  NANET_HD bool improve() {
    const std::uint32_t count = rings_of(kModelBest);
    for (std::uint32_t k = 0; k < count && count > 1; ++k) {  // for one ring every start has been a first ring
      if (k % Worker::kTogether == 0) {
        const std::uint32_t some = at_most(Worker::kTogether, count - k);
        for (std::uint32_t j = 0; j < some; ++j) worker_.without(kModelBases + j, kModelBest, k + j);
        worker_.fit(kModelBases, some, setup_.em_steps);
      }
      const MixtureSlot base = kModelBases + k % Worker::kTogether;
      const float best = likelihood(kModelBest);
      if (likelihood(base) > best) {
        take(base, false);
        return true;
      }
      const MixtureCircle ring = circle_of(worker_.model(kModelBest).rings[k]);
      const MixtureSlot other = extend(base, best + 0.01F, &ring);
      if (other != kNothing) {
        take(other, false);
        return true;
      }
    }
    if (count == kMaxRings || grown_) return false;
    const MixtureSlot more = extend(kModelBest, likelihood(kModelBest), nullptr);
    if (more == kNothing) return false;
    take(more, false);
    return true;
  }

  // Keeps one ring and rebuilds the others, from starts away from them: two wrong rings can hold one another where one alone would be replaced.
  NANET_HD bool replace_all_but_one() {
    const std::uint32_t rings = rings_of(kModelBest);
    NANET_UNROLL(1)
    for (std::uint32_t k = 0; k < rings; ++k) {
      if (k % Worker::kTogether == 0) {
        const std::uint32_t some = at_most(Worker::kTogether, rings - k);
        for (std::uint32_t j = 0; j < some; ++j) worker_.only(kModelBases + j, kModelBest, k + j);
        worker_.fit(kModelBases, some, setup_.em_steps);
      }
      const MixtureSlot base = kModelBases + k % Worker::kTogether;
      worker_.room(base);
      worker_.score(setup_.ring_penalty);
      for (std::uint32_t j = 0; j < rings; ++j) worker_.drop(circle_of(worker_.model(kModelBest).rings[j]));
      const std::uint32_t count = take_starts(kModelFirsts, base, setup_.ring_penalty);
      NANET_UNROLL(1)
      for (std::uint32_t s = 0; s < count; ++s) {
        const MixtureSlot slot = kModelFirsts + s;
        if (s % Worker::kTogether == 0) worker_.fit(slot, at_most(Worker::kTogether, count - s), setup_.em_steps);
        grow(slot);
        if (likelihood(slot) > likelihood(kModelBest) + 0.01F) {
          take(slot, true);
          return true;
        }
      }
    }
    return false;
  }

  // The slot of the best model with one more ring than `base`, if its likelihood is above `likelihood_min`; kNothing if there is none. Its
  // ring is not near `but`, if that is given. The likelihood of `base` is known, but it may have been fitted or not.
  [[gnu::noinline]] NANET_HD MixtureSlot extend(MixtureSlot base, float likelihood_min, const MixtureCircle* but) {
    const float needed = (likelihood_min - likelihood(base)) + setup_.ring_penalty - setup_.start_gap;
    const float room = worker_.room(base);
    if (room < needed + 0.3F * setup_.yield) return kNothing;  // not even a ring through all hits, most of it outside the disk
    worker_.score(needed);
    if (but != nullptr) worker_.drop(*but);
    const std::uint32_t count = take_starts(kModelFits, base, needed);
    if (count > 0) worker_.fit(kModelFits, count, setup_.em_steps);
    MixtureSlot best = kNothing;
    NANET_UNROLL(1)
    for (MixtureSlot slot = kModelFits; slot < kModelFits + count; ++slot) {
      if (likelihood(slot) > likelihood_min) {
        likelihood_min = likelihood(slot);
        best = slot;
      }
    }
    return best;
  }

  // Models of `base` and one ring on each of the best starts, from slot `first` on; returns how many.
  NANET_HD std::uint32_t take_starts(MixtureSlot first, MixtureSlot base, float needed) {
    std::uint32_t count = 0;
    MixtureStart start;
    NANET_UNROLL(1)
    while (count < setup_.starts && worker_.next(start) && start.score > needed) {
      worker_.with(first + count, base, start.circle);
      if (++count < setup_.starts) worker_.drop(start.circle);
    }
    return count;
  }

  NANET_HD bool contains(MixtureSlot slot, const MixtureCircle& ring) const {
    const MixtureModel& model = worker_.model(slot);
    NANET_UNROLL(1)
    for (std::uint32_t k = 0; k < model.count; ++k) {
      if (is_near(circle_of(model.rings[k]), ring, 15.0F)) return true;
    }
    return false;
  }

  NANET_HD std::uint32_t rings_of(MixtureSlot slot) const { return worker_.model(slot).count; }
  NANET_HD float likelihood(MixtureSlot slot) const { return worker_.model(slot).likelihood; }
  NANET_HD static constexpr std::uint32_t at_most(std::uint32_t most, std::uint32_t count) { return count < most ? count : most; }

  const MixtureSetup& setup_;
  Worker& worker_;
  bool grown_ = false;  // the best model; the same search for one more ring need not be repeated
};

}  // namespace nanet::rich
