// SPDX-License-Identifier: Apache-2.0
// How fast the MATH fit is on one core: scalar and vectorised, for several numbers of hits.
//
//   bench_rings [--csv FILE] [--seconds S]
//
// Events are generated before the clock starts and lie as in a padded packet: 8 B of header, then 32 hit slots, 72 B an event. Every timed pass
// fits all of them. `mixed` has Poisson numbers of hits (mean 20, at most 32), as real data have: there the end of an event is hard to predict.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "emulate/monte_carlo.hpp"
#include "rich/math_fit.hpp"

namespace {

using nanet::event::Event;
using nanet::rich::Ring;

constexpr std::size_t kEvents = 16384;
constexpr std::size_t kStrideBytes = 72;
constexpr std::size_t kHeaderBytes = 8;

struct EventSet {
  std::string name;
  std::vector<std::uint16_t> memory;
  std::vector<nanet::event::Event> events;
};

// hits 0: as they come. Otherwise every event has exactly this many.
EventSet make_events(std::uint32_t hits) {
  nanet::emulate::MonteCarloConfig config;
  config.flat_radius = true;
  config.flat_radius_min_mm = 110.0;  // smaller rings cross too few PMs for 32 hits and a margin
  config.mean_hits = hits == 0 ? 20.0 : hits + 4.0;
  config.hits_max = hits == 0 ? 32 : hits;
  nanet::emulate::MonteCarlo monte_carlo(config);
  EventSet set;
  set.name = hits == 0 ? "mixed" : std::to_string(hits);
  set.memory.resize(kEvents * kStrideBytes / 2);
  for (std::size_t k = 0; k < kEvents; ++k) {
    nanet::emulate::McEvent event = monte_carlo.next();
    while (hits != 0 && event.hit_count != hits) event = monte_carlo.next();
    std::uint16_t* slot = set.memory.data() + (k * kStrideBytes + kHeaderBytes) / 2;
    std::copy_n(event.hits.begin(), event.hit_count, slot);
    set.events.push_back({slot, event.hit_count});
  }
  return set;
}

// Median over repeats of the time for one event, ns.
template <class Pass>
double median_ns(double seconds, Pass pass) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times_ns;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (int warm_up = 0; warm_up < 3; ++warm_up) pass();
  do {
    const auto start = Clock::now();
    pass();
    times_ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() / kEvents);
  } while (Clock::now() < end || times_ns.size() < 9);
  std::nth_element(times_ns.begin(), times_ns.begin() + static_cast<std::ptrdiff_t>(times_ns.size() / 2), times_ns.end());
  return times_ns[times_ns.size() / 2];
}

double check_sum(const std::vector<Ring>& rings) {
  double sum = 0;
  for (const Ring& ring : rings) sum += ring.radius_mm;
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  std::string csv_path;
  double seconds = 0.2;
  for (int k = 1; k < argc; ++k) {
    const std::string option = argv[k];
    if (option == "--csv" && k + 1 < argc) {
      csv_path = argv[++k];
    } else if (option == "--seconds" && k + 1 < argc) {
      seconds = std::strtod(argv[++k], nullptr);
    } else {
      std::fprintf(stderr, "usage: bench_rings [--csv FILE] [--seconds S]\n");
      return 2;
    }
  }
  std::ofstream csv;
  if (!csv_path.empty()) {
    csv.open(csv_path);
    if (!csv) {
      std::fprintf(stderr, "bench_rings: cannot write %s\n", csv_path.c_str());
      return 2;
    }
    csv << "method,target,hits,ns_per_event,events_per_s\n";
  }
  const std::string target = nanet::rich::fit_rings_target();
  std::printf("%-8s %-8s %6s %12s %14s\n", "method", "target", "hits", "ns/event", "events/s");
  std::vector<Ring> rings(kEvents);
  for (const std::uint32_t hits : {8u, 12u, 20u, 32u, 0u}) {
    const EventSet set = make_events(hits);
    const auto report = [&](const char* method, const std::string& set_target, double ns) {
      std::printf("%-8s %-8s %6s %12.2f %14.4g\n", method, set_target.c_str(), set.name.c_str(), ns, 1e9 / ns);
      if (csv) csv << method << ',' << set_target << ',' << set.name << ',' << ns << ',' << 1e9 / ns << '\n';
    };
    report("scalar", "baseline", median_ns(seconds, [&] {
             for (std::size_t k = 0; k < kEvents; ++k) rings[k] = nanet::rich::fit_ring(set.events[k]);
           }));
    const double scalar_sum = check_sum(rings);
    report("highway", target, median_ns(seconds, [&] { nanet::rich::fit_rings(set.events, rings); }));
    if (check_sum(rings) != scalar_sum) {
      std::fprintf(stderr, "bench_rings: scalar and vectorised rings differ\n");
      return 1;
    }
  }
  return 0;
}
