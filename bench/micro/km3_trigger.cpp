// SPDX-License-Identifier: Apache-2.0
// Cost of the KM3NeT trigger: millions of hits in a second of one core, stage by stage, for whole towers at their rate.
//
//   bench_km3_trigger [--towers N] [--slices N] [--slice-ms N] [--rate-khz N] [--directions DEGREES] [--csv FILE]
//
// Hits of chance at rate-khz a PM, genuine pairs (17 Hz a pair), a charge spectrum with 1 % over 2.5 photo-electrons, and 20 tracks a second and tower
// straight up. Units are made before the clock starts, each floor's in bytes as docs/formats-km3.md says, hits in the order in which frames of 12.5 us
// carry them. Figures are of processor time, the best of 5 runs over all slices.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "nanet/km3/trigger.hpp"

namespace {

using namespace nanet::km3;

struct Options {
  std::uint32_t towers = 1;
  std::uint32_t slices = 5;
  double slice_ms = 200;
  double rate_khz = 55;
  double directions_deg = 0;
  std::string csv;
};

using Units = std::vector<std::vector<std::vector<std::byte>>>;  // of each slice and floor

double seconds_now() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void write_hit(std::vector<std::byte>& unit, const Detector& detector, const Hit& hit) {
  const auto time = static_cast<std::uint32_t>(static_cast<std::int32_t>(hit.time_ns));
  unit.push_back(static_cast<std::byte>(detector.pms()[hit.pm].number));
  for (const unsigned shift : {24u, 16u, 8u, 0u}) unit.push_back(static_cast<std::byte>(time >> shift & 0xFFu));
  unit.push_back(static_cast<std::byte>(static_cast<std::uint8_t>(std::min(255.0F, 10 * hit.charge_pe))));
}

Units make_units(const Detector& detector, const Options& options) {
  std::mt19937_64 random(1);
  const double slice_ns = 1e6 * options.slice_ms;
  std::uniform_real_distribution<double> time(0.0, slice_ns);
  std::uniform_real_distribution<float> part(0, 1);
  const auto charge = [&] { return part(random) < 0.01F ? 2.6F + part(random) : 0.4F + 1.6F * part(random); };
  std::poisson_distribution<int> singles(1e-6 * options.rate_khz * slice_ns);
  std::poisson_distribution<int> pairs(17e-9 * slice_ns);
  std::poisson_distribution<int> tracks(20e-9 * slice_ns * options.towers);
  Units units(options.slices);
  for (auto& slice : units) {
    std::vector<std::vector<Hit>> floors(detector.floors().size());
    for (std::uint32_t pm = 0; pm < detector.pms().size(); ++pm) {
      auto& hits = floors[detector.pms()[pm].floor];
      for (int k = singles(random); k > 0; --k) hits.push_back({std::floor(time(random)), pm, charge()});
      if (pm % 2 != 0) continue;
      for (int k = pairs(random); k > 0; --k) {
        const double when = std::floor(time(random));
        hits.push_back({when, pm, charge()});
        hits.push_back({when + std::floor(4 * part(random)), pm + 1, charge()});
      }
    }
    for (int k = tracks(random); k > 0; --k) {
      const double when = 0.9 * time(random);
      const std::size_t first = 14 * (random() % options.towers);
      for (std::size_t f = first; f < first + 14; ++f) {
        const std::uint32_t pm = detector.floors()[f].first_pm + 2 * static_cast<std::uint32_t>(random() % 3);
        const double here = std::floor(when + 20.0 * static_cast<double>(f - first) / kLightSpeed);
        floors[f].push_back({here, pm, charge()});
        floors[f].push_back({here + std::floor(5 * part(random)), pm + 1, charge()});
      }
    }
    for (auto& hits : floors) {
      std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) {
        const double frame_a = std::floor(a.time_ns / 12'500);
        const double frame_b = std::floor(b.time_ns / 12'500);
        if (frame_a != frame_b) return frame_a < frame_b;
        return a.pm != b.pm ? a.pm < b.pm : a.time_ns < b.time_ns;
      });
      auto& unit = slice.emplace_back();
      for (const Hit& hit : hits) write_hit(unit, detector, hit);
    }
  }
  return units;
}

struct Seconds {
  double decode = 1e9;
  double take = 1e9;
  double finish = 1e9;
  double all = 1e9;
};

// One run over all slices; stages are timed by themselves, `all` without a clock between them.
void run(Trigger& trigger, const Units& units, std::uint32_t first_slice, Seconds& best) {
  DecodeCounts counts;
  Seconds here{0, 0, 0, 0};
  const Detector& detector = trigger.detector();
  std::vector<std::size_t> decoded(detector.floors().size());
  for (std::uint32_t slice = 0; slice < units.size(); ++slice) {
    (void)trigger.begin(first_slice + slice);
    const double begin = seconds_now();
    for (std::uint32_t f = 0; f < decoded.size(); ++f) {
      decoded[f] = decode_hits(units[slice][f], detector.calibration(f), trigger.room(f), counts);
    }
    const double between = seconds_now();
    for (std::uint32_t f = 0; f < decoded.size(); ++f) trigger.commit(f, decoded[f]);
    const double taken = seconds_now();
    (void)trigger.finish();
    const double end = seconds_now();
    here.decode += between - begin;
    here.take += taken - between;
    here.finish += end - taken;
  }
  here.all = here.decode + here.take + here.finish;
  best.decode = std::min(best.decode, here.decode);
  best.take = std::min(best.take, here.take);
  best.finish = std::min(best.finish, here.finish);
  best.all = std::min(best.all, here.all);
}

// match3B of each hit with the 1500 after it: pairs in a second.
double pairs_per_s(const Detector& detector) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> time(0.0, 5e6);
  std::vector<Point> points(20'000);
  for (Point& point : points) {
    const Vector& at = detector.pms()[random() % detector.pms().size()].position_m;
    point = {at.x, at.y, at.z, time(random)};
  }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.time_ns < b.time_ns; });
  const Match3B match;
  std::uint64_t pairs = 0;
  std::uint64_t matches = 0;
  const double begin = seconds_now();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t end = std::min(points.size(), i + 1501);
    std::uint32_t count = 0;
    for (std::size_t k = i + 1; k < end; ++k) count += match(points[i], points[k]) ? 1u : 0u;
    pairs += end - i - 1;
    matches += count;
  }
  const double seconds = seconds_now() - begin;
  std::printf("match3B, windows of 1500: %.1f M pairs/s, %.3f M hits/s (%llu pairs match)\n",
              1e-6 * static_cast<double>(pairs) / seconds, 1e-6 * static_cast<double>(points.size()) / seconds,
              static_cast<unsigned long long>(matches));
  return static_cast<double>(pairs) / seconds;
}

Options options_of(int count, char** words) {
  Options options;
  for (int k = 1; k + 1 < count; k += 2) {
    const std::string word = words[k];
    const char* const value = words[k + 1];
    if (word == "--towers") options.towers = static_cast<std::uint32_t>(std::max(1, std::atoi(value)));
    if (word == "--slices") options.slices = static_cast<std::uint32_t>(std::max(1, std::atoi(value)));
    if (word == "--slice-ms") options.slice_ms = std::atof(value);
    if (word == "--rate-khz") options.rate_khz = std::atof(value);
    if (word == "--directions") options.directions_deg = std::atof(value);
    if (word == "--csv") options.csv = value;
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = options_of(count, words);
  const Detector detector = make_towers({.towers = options.towers});
  TriggerConfig config;
  config.slice_ns = 1e6 * options.slice_ms;
  config.direction_step_deg = options.directions_deg;
  config.floor_hits_max = 1u << 19;
  config.seeds_max = 1u << 20;
  Trigger trigger(detector, config);
  const Units units = make_units(detector, options);
  Seconds best;
  for (std::uint32_t k = 0; k < 5; ++k) run(trigger, units, k * options.slices, best);
  const TriggerCounts& c = trigger.counts();
  const double hits = static_cast<double>(c.hits_in) / 5;
  const double seconds = 1e-3 * options.slice_ms * options.slices;
  const auto row = [&](const char* name, double taken) {
    std::printf("  %-44s %8.1f M hits/s %8.2f ns a hit %8.4f cores\n", name, 1e-6 * hits / taken, 1e9 * taken / hits,
                taken / seconds);
  };
  std::printf("%u tower(s), %.0f kHz a PM, slices of %.0f ms: %.2f M hits/s\n", options.towers, options.rate_khz, options.slice_ms,
              1e-6 * hits / seconds);
  row("decode", best.decode);
  row("L0 and books", best.take);
  row("in order, L1, cliques, events", best.finish);
  row("all", best.all);
  const double all_seconds = 5 * seconds;
  std::printf("seeds %.1f kHz (simple %.2f, floor %.1f, charge %.1f), events %.1f Hz, hits an event %.0f, not used %llu\n",
              1e-3 * static_cast<double>(c.seeds) / all_seconds, 1e-3 * static_cast<double>(c.seeds_simple) / all_seconds,
              1e-3 * static_cast<double>(c.seeds_floor) / all_seconds, 1e-3 * static_cast<double>(c.seeds_charge) / all_seconds,
              static_cast<double>(c.events) / all_seconds,
              static_cast<double>(c.event_hits) / static_cast<double>(std::max<std::uint64_t>(c.events, 1)),
              static_cast<unsigned long long>(c.hits_in - c.hits_used));
  const double pairs = pairs_per_s(detector);
  if (!options.csv.empty()) {
    std::ofstream(options.csv) << "stage,hits_per_s\ndecode," << hits / best.decode << "\ntake," << hits / best.take << "\nfinish,"
                               << hits / best.finish << "\nall," << hits / best.all << "\nmatch3b_pairs," << pairs << "\n";
  }
  return 0;
}
