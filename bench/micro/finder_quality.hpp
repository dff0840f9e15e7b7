// SPDX-License-Identifier: Apache-2.0
// Quality and speed of a ring finder on the standard cases, for programs that tune one. The full study is `nanet physics`.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "emulate/monte_carlo.hpp"
#include "emulate/ring_match.hpp"
#include "nanet/rich/ring.hpp"

namespace nanet::bench {

using BatchFinder = std::function<void(std::span<const event::Event>, std::span<rich::EventRings>)>;

struct QualityCase {
  std::string name;
  std::uint32_t ring_count = 1;
  double mean_hits = 12;
  double noise_hits = 1.2;
  double distance_min_mm = 0;  // between any two centres
};

// The facts' flat default sample: radius 80 to 190 mm, centres Gaussian with 40 mm, 2.5 mm smear.
inline std::vector<emulate::McEvent> make_events(const QualityCase& one, std::size_t count, std::uint64_t seed) {
  emulate::MonteCarloConfig config;
  config.seed = seed;
  config.flat_radius = true;
  config.mean_hits = one.mean_hits;
  config.noise_hits = one.noise_hits;
  config.hits_max = 128;
  // All rings of an event on ONE disk, as in the reference study (976 PMs): with rings on both, the disk bit of a hit would tell them apart,
  // which is another and easier sample.
  config.jura_share = 1;
  config.ring_count_shares = {};
  config.ring_count_shares[one.ring_count] = 1;
  emulate::MonteCarlo monte_carlo(config);
  std::vector<emulate::McEvent> events;
  while (events.size() < count) {
    emulate::McEvent event = monte_carlo.next();
    bool apart = true;
    for (std::uint32_t a = 0; a < one.ring_count; ++a) {
      for (std::uint32_t b = 0; b < a; ++b) {
        const emulate::McRing& p = event.truth.rings[a];
        const emulate::McRing& q = event.truth.rings[b];
        apart = apart && std::hypot(p.x_mm - q.x_mm, p.y_mm - q.y_mm) >= one.distance_min_mm;
      }
    }
    if (apart) events.push_back(event);
  }
  return events;
}

struct Quality {
  double all_found = 0;          // events with every true ring found / events
  double efficiency = 0;         // true rings found / true rings
  double fakes = 0, clones = 0;  // an event
  double radius_rms_mm = 0, radius_bias_mm = 0;
  double ratio_to_bound = 0;  // radius rms / rms of the bound for the hits' own residual
  double ns_per_event = 0;    // best of the passes
};

inline Quality measure(const std::vector<emulate::McEvent>& events, const BatchFinder& find, int passes = 3) {
  std::vector<event::Event> hits;
  for (const emulate::McEvent& event : events) hits.push_back({event.hits.data(), event.hit_count});
  std::vector<rich::EventRings> rings(events.size());
  Quality q;
  q.ns_per_event = 1e18;
  for (int pass = 0; pass < passes; ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    find(hits, rings);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    q.ns_per_event = std::min(q.ns_per_event, took.count() / static_cast<double>(events.size()));
  }
  double truths = 0, found = 0, square = 0, sum = 0, bound = 0, residual = 0, residuals = 0;
  for (std::size_t e = 0; e < events.size(); ++e) {
    const emulate::RingMatch match = emulate::match_rings(events[e].truth, rings[e]);
    q.fakes += match.fakes;
    q.clones += match.clones;
    bool all = true;
    for (std::uint32_t r = 0; r < events[e].truth.ring_count; ++r) {
      truths += 1;
      std::array<float, emulate::kMaxEventHits> distances_mm;
      const std::uint32_t n = emulate::hit_residuals(events[e], r, distances_mm);
      for (std::uint32_t k = 0; k < n; ++k) residual += double{distances_mm[k]} * double{distances_mm[k]};
      residuals += n;
      if (match.found_of[r] == emulate::kUnmatched) {
        all = false;
        continue;
      }
      const double error = rings[e].rings[match.found_of[r]].radius_mm - events[e].truth.rings[r].radius_mm;
      const double b = emulate::radius_bound(events[e], r);
      found += 1;
      sum += error;
      square += error * error;
      bound += b * b;
    }
    q.all_found += all ? 1 : 0;
  }
  const auto n = static_cast<double>(events.size());
  q.all_found /= n;
  q.fakes /= n;
  q.clones /= n;
  q.efficiency = found / truths;
  q.radius_bias_mm = sum / found;
  q.radius_rms_mm = std::sqrt(square / found);
  q.ratio_to_bound = q.radius_rms_mm / std::sqrt(bound / found * residual / residuals);
  return q;
}

inline std::vector<QualityCase> standard_cases() {
  return {{"1 ring, no noise", 1, 12, 0, 0},
          {"1 ring", 1, 12, 1.2, 0},
          {"2 rings > 60 mm", 2, 12, 1.2, 60},
          {"2 rings", 2, 12, 1.2, 0},
          {"3 rings > 60 mm", 3, 12, 1.2, 60},
          {"3 rings", 3, 12, 1.2, 0},
          {"3 rings, 20 hits, > 60 mm", 3, 20, 1.2, 60},
          {"noise alone, 6 hits", 0, 12, 6, 0}};
}

// Prints a line a case.
inline void print_quality(const char* finder, const BatchFinder& find, std::size_t count, std::uint64_t seed = 1) {
  std::printf("%-12s %-28s %9s %9s %8s %8s %8s %8s %7s %9s\n", "finder", "case", "all found", "rings", "fakes", "clones", "R rms",
              "R bias", "/bound", "ns/event");
  for (const QualityCase& one : standard_cases()) {
    const Quality q = measure(make_events(one, count, seed), find);
    std::printf("%-12s %-28s %8.2f%% %8.2f%% %8.4f %8.4f %8.3f %8.3f %7.3f %9.1f\n", finder, one.name.c_str(), 100 * q.all_found,
                100 * q.efficiency, q.fakes, q.clones, q.radius_rms_mm, q.radius_bias_mm, q.ratio_to_bound, q.ns_per_event);
  }
}

}  // namespace nanet::bench
