// SPDX-License-Identifier: Apache-2.0
// How good the MATH fit's answers are, and what the cut on rms_mm does: the study behind the defaults of rich::RingCuts.
//
//   bench_ring_cuts [--csv FILE] [--events N]
//
// efficiency  events whose ring passes the cuts and matches the truth (centres within 20 mm, radii within 15 mm) / all events
// fakes       events whose ring passes the cuts and does not match / all events
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "emulate/monte_carlo.hpp"
#include "nanet/rich/decision.hpp"
#include "rich/math_fit.hpp"

namespace {

using namespace nanet;

struct Fitted {
  rich::Ring ring;
  emulate::McTruth truth;
};

std::vector<Fitted> fitted_events(const emulate::MonteCarloConfig& config, int count) {
  emulate::MonteCarlo monte_carlo(config);
  std::vector<Fitted> events;
  for (int k = 0; k < count; ++k) {
    const emulate::McEvent event = monte_carlo.next();
    events.push_back({rich::fit_ring({event.hits.data(), event.hit_count}), event.truth});
  }
  return events;
}

bool matches(const Fitted& event) {
  return event.truth.rings[0].radius_mm > 0 &&
         std::hypot(event.ring.x_mm - event.truth.rings[0].x_mm, event.ring.y_mm - event.truth.rings[0].y_mm) < 20.0F &&
         std::abs(event.ring.radius_mm - event.truth.rings[0].radius_mm) < 15.0F;
}

struct Quality {
  double efficiency = 0;
  double fakes = 0;
  double radius_bias_mm = 0;
  double radius_rms_mm = 0;
};

Quality quality(const std::vector<Fitted>& events, const rich::RingCuts& cuts) {
  double good = 0, fakes = 0, sum = 0, square = 0;
  for (const Fitted& event : events) {
    if (!rich::is_good_ring(event.ring, cuts)) continue;
    if (!matches(event)) {
      ++fakes;
      continue;
    }
    const double error_mm = event.ring.radius_mm - event.truth.rings[0].radius_mm;
    ++good;
    sum += error_mm;
    square += error_mm * error_mm;
  }
  const auto n = static_cast<double>(events.size());
  return {good / n, fakes / n, sum / good, std::sqrt(square / good)};
}

}  // namespace

int main(int argc, char** argv) {
  std::string csv_path;
  int count = 100000;
  for (int k = 1; k < argc; ++k) {
    const std::string option = argv[k];
    if (option == "--csv" && k + 1 < argc) {
      csv_path = argv[++k];
    } else if (option == "--events" && k + 1 < argc && std::atoi(argv[k + 1]) > 0) {
      count = std::atoi(argv[++k]);
    } else {
      std::fprintf(stderr, "usage: bench_ring_cuts [--csv FILE] [--events N]\n");
      return 2;
    }
  }
  std::ofstream csv;
  if (!csv_path.empty()) {
    csv.open(csv_path);
    if (!csv) {
      std::fprintf(stderr, "bench_ring_cuts: cannot write %s\n", csv_path.c_str());
      return 2;
    }
    csv << "mean_hits,noise_hits,rms_max_mm,efficiency,fakes,radius_bias_mm,radius_rms_mm\n";
  }

  std::printf("flat rings, 80 to 190 mm\n%9s %10s %10s %10s %8s %9s %8s\n", "mean hits", "noise hits", "rms_max mm", "efficiency",
              "fakes", "bias mm", "rms mm");
  for (const double mean_hits : {12.0, 20.0}) {
    for (const double noise_hits : {0.0, 0.1 * mean_hits, 0.25 * mean_hits}) {
      emulate::MonteCarloConfig config;
      config.flat_radius = true;
      config.mean_hits = mean_hits;
      config.noise_hits = noise_hits;
      config.hits_max = emulate::kMaxEventHits;
      const std::vector<Fitted> events = fitted_events(config, count);
      for (const float rms_max_mm : {6.0F, 7.0F, 8.0F, 9.0F, 10.0F, 12.0F, 15.0F, 1e9F}) {
        rich::RingCuts cuts;
        cuts.rms_max_mm = rms_max_mm;
        const Quality q = quality(events, cuts);
        std::printf("%9g %10g %10g %9.2f%% %7.2f%% %9.3f %8.2f\n", mean_hits, noise_hits, static_cast<double>(rms_max_mm),
                    100 * q.efficiency, 100 * q.fakes, q.radius_bias_mm, q.radius_rms_mm);
        if (csv) {
          csv << mean_hits << ',' << noise_hits << ',' << rms_max_mm << ',' << q.efficiency << ',' << q.fakes << ','
              << q.radius_bias_mm << ',' << q.radius_rms_mm << '\n';
        }
      }
    }
  }

  const rich::RingCuts cuts;
  std::printf("\nparticles at 15 to 35 GeV/c with the default cuts\n%-8s %10s %10s %10s %14s\n", "particle", "noise hits",
              "efficiency", "fakes", "electron-like");
  const char* names[] = {"electron", "muon", "pion", "noise"};
  for (const double noise_hits : {0.0, 1.2}) {
    for (int kind = 0; kind < 4; ++kind) {
      emulate::MonteCarloConfig config;
      config.mean_hits = 12;
      config.fractions = {
          .e = kind == 0 ? 1.0 : 0.0, .mu = kind == 1 ? 1.0 : 0.0, .pi = kind == 2 ? 1.0 : 0.0, .K = kind == 3 ? 1.0 : 0.0};
      config.noise_hits = kind == 3 ? 10 * noise_hits : noise_hits;  // kaons are below threshold: noise alone
      const std::vector<Fitted> events = fitted_events(config, count);
      const Quality q = quality(events, cuts);
      double electrons = 0;
      for (const Fitted& event : events)
        electrons += rich::is_good_ring(event.ring, cuts) && rich::ring_kind(event.ring.radius_mm, cuts) == rich::RingKind::electron
                         ? 1
                         : 0;
      std::printf("%-8s %10g %9.2f%% %9.2f%% %13.2f%%\n", names[kind], config.noise_hits, 100 * q.efficiency, 100 * q.fakes,
                  100 * electrons / static_cast<double>(events.size()));
    }
  }
  return 0;
}
