// SPDX-License-Identifier: Apache-2.0
// bench_gpu_finders [--events N] [--csv FILE] [--finder NAME]: rates of the ring finders on a GPU, events in device memory, one thread an event,
// beside one core of this machine; and whether both find the same bits.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "../micro/finder_quality.hpp"
#include "nanet/gpu/ring_finder.hpp"
#include "nanet/rich/finder.hpp"
#include "nanet/setup_error.hpp"

using namespace nanet;

namespace {

struct Row {
  const char* name;  // of `nanet physics`
  std::uint32_t ring_count;
  double distance_min_mm;
};

double cpu_ns_per_event(const rich::FinderConfig& config, std::span<const rich::EventHits> hits, std::span<rich::EventRings> rings) {
  double best = 1e18;
  for (int pass = 0; pass < 3; ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    rich::find_rings(config, hits, rings);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / static_cast<double>(hits.size()));
  }
  return best;
}

void run(const Row& row, std::size_t event_count, const std::string& only, std::ofstream& csv) {
  constexpr std::size_t kDifferent = 8192;  // events made; repeated up to event_count
  const auto events = bench::make_events({row.name, row.ring_count, 12, 1.2, row.distance_min_mm}, kDifferent, 2);
  std::vector<rich::EventHits> hits;
  for (std::size_t e = 0; e < event_count; ++e)
    hits.push_back({events[e % kDifferent].hits.data(), events[e % kDifferent].hit_count});
  gpu::RingFinder device(hits);
  std::vector<rich::EventRings> expected(kDifferent);
  for (std::uint32_t k = 0; k < rich::kFinderCount; ++k) {
    const rich::FinderConfig config{.kind = static_cast<rich::FinderKind>(k)};
    const char* const finder = rich::finder_name(config.kind);
    if (!only.empty() && only != finder) continue;
    const double cpu_ns = cpu_ns_per_event(config, std::span(hits).first(kDifferent), expected);
    double seconds = device.find(config);
    for (int pass = 0; pass < 4 && seconds < 1.0; ++pass) seconds = std::min(seconds, device.find(config));
    const std::vector<rich::EventRings> found = device.rings();
    std::size_t differ = 0;
    for (std::size_t e = 0; e < found.size(); ++e)
      differ += std::memcmp(&found[e], &expected[e % kDifferent], sizeof(rich::EventRings)) != 0;
    const double rate = static_cast<double>(event_count) / seconds;
    std::printf("%-18s %-10s %14.3f %14.3f %10.1f %10zu\n", row.name, finder, rate * 1e-6, 1e3 / cpu_ns, rate * 1e-9 * cpu_ns,
                differ);
    if (csv.is_open()) csv << finder << ',' << row.name << ',' << rate << ',' << 1e9 / cpu_ns << ',' << differ << '\n';
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t event_count = 1u << 20;
  std::string only;
  std::ofstream csv;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--events") == 0) event_count = std::strtoul(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--finder") == 0) only = argv[i + 1];
    if (std::strcmp(argv[i], "--csv") == 0) csv.open(argv[i + 1]);
  }
  if (csv.is_open()) csv << "finder,case,events_per_s,cpu_events_per_s,events_that_differ\n";
  try {
    std::printf("%s, %zu events\n", gpu::RingFinder({}).device_name(), event_count);
    std::printf("%-18s %-10s %14s %14s %10s %10s\n", "case", "finder", "GPU [Mev/s]", "core [Mev/s]", "ratio", "differ");
    for (const Row& row : {Row{"single_ring", 1, 0}, Row{"two_rings_apart", 2, 60}, Row{"three_rings_apart", 3, 60}}) {
      run(row, event_count, only, csv);
    }
  } catch (const SetupError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
  return 0;
}
