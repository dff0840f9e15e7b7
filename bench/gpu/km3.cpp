// SPDX-License-Identifier: Apache-2.0
// bench_gpu_km3: match3B of 10^6 hits in windows of 1500 on a GPU and on one core, and seeds judged by either.
//
//   --hits 1000000  --window 1500  --towers 8 (whose rate the hits have)  --repeats 9 (medians)  --seeds 100000  --limit-s 120  --csv FILE
//
// Rates are hits a second: of the kernel alone, and with hits copied to the GPU and degrees back. Exit status: 0; 1 the GPU's pairs are not the
// CPU's; 2 no GPU or wrong options; 3 too long.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "common.hpp"
#include "km3_gpu/correlate.hpp"
#include "nanet/km3/detector.hpp"

using namespace nanet;

namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double seconds_of(auto&& work) {
  const std::uint64_t begin_ns = bench::now_ns();
  work();
  return 1e-9 * static_cast<double>(bench::now_ns() - begin_ns);
}

// Hits of chance, 55 kHz a PM.
std::vector<km3::Point> made_up_hits(const km3::Detector& detector, std::size_t count) {
  std::mt19937_64 random(1);
  const double rate_per_ns = 55e3 * 1e-9 * static_cast<double>(detector.pms().size());
  std::uniform_real_distribution<double> time(0.0, static_cast<double>(count) / rate_per_ns);
  std::vector<km3::Point> points(count);
  for (km3::Point& point : points) {
    const km3::Vector& at = detector.pms()[random() % detector.pms().size()].position_m;
    point = {at.x, at.y, at.z, std::floor(time(random))};
  }
  std::sort(points.begin(), points.end(), [](const km3::Point& a, const km3::Point& b) { return a.time_ns < b.time_ns; });
  return points;
}

struct Options {
  std::size_t hits = 1'000'000;
  std::uint32_t window = 1500;
  std::uint32_t towers = 8;
  int repeats = 9;
  std::size_t seeds = 100'000;
  unsigned limit_s = 120;
  std::string csv;
};

bool read_options(int count, char** words, Options& options) {
  for (int k = 1; k < count; k += 2) {
    const std::string word = words[k];
    if (k + 1 == count) return false;
    const double number = std::atof(words[k + 1]);
    if (word == "--hits")
      options.hits = static_cast<std::size_t>(number);
    else if (word == "--window")
      options.window = static_cast<std::uint32_t>(number);
    else if (word == "--towers")
      options.towers = static_cast<std::uint32_t>(number);
    else if (word == "--repeats")
      options.repeats = std::max(1, static_cast<int>(number));
    else if (word == "--seeds")
      options.seeds = static_cast<std::size_t>(number);
    else if (word == "--limit-s")
      options.limit_s = static_cast<unsigned>(number);
    else if (word == "--csv")
      options.csv = words[k + 1];
    else
      return false;
  }
  return options.hits > 0 && options.hits < 100'000'000 && options.towers > 0 && options.seeds < 10'000'000;
}

// Of the first hits, so that one core is done in a second or two.
double cpu_hits_per_s(const std::vector<km3::Point>& points, std::uint32_t window, const km3::Match3B& match,
                      std::vector<std::uint32_t>& degrees) {
  const std::size_t count = degrees.size();
  const double seconds = seconds_of([&] {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t end = std::min<std::size_t>(count, i + 1 + window);
      for (std::size_t k = i + 1; k < end; ++k) {
        const std::uint32_t matches = match(points[i], points[k]) ? 1u : 0u;
        degrees[i] += matches;
        degrees[k] += matches;
      }
    }
  });
  return static_cast<double>(count) / seconds;
}

int run(const Options& options) {
  const km3::Detector detector = km3::make_towers({.towers = options.towers});
  const std::vector<km3::Point> points = made_up_hits(detector, options.hits);
  const km3::Match3B match;
  km3_gpu::Correlator correlator(static_cast<std::uint32_t>(options.hits), match);
  std::vector<std::uint32_t> degrees(options.hits);

  std::vector<std::uint32_t> expected(std::min<std::size_t>(options.hits, 100'000));
  const double cpu = cpu_hits_per_s(points, options.window, match, expected);
  correlator.load(std::span(points).first(expected.size()));
  correlator.correlate(options.window);
  correlator.store_degrees(std::span(degrees).first(expected.size()));
  const bool is_same = std::equal(expected.begin(), expected.end(), degrees.begin());

  std::vector<double> kernel_s;
  std::vector<double> whole_s;
  for (int k = 0; k < options.repeats; ++k) {
    whole_s.push_back(seconds_of([&] {
      correlator.load(points);
      kernel_s.push_back(correlator.correlate(options.window));
      correlator.store_degrees(degrees);
    }));
  }
  const double hits = static_cast<double>(options.hits);
  const double kernel = hits / median(kernel_s);
  const double whole = hits / median(whole_s);
  std::printf("match3B of %zu hits, window %u: %llu pairs; %s\n", options.hits, options.window,
              static_cast<unsigned long long>(correlator.pair_count()),
              is_same ? "degrees as the CPU's" : "DEGREES DIFFER FROM THE CPU'S");
  std::printf("  kernel          %10.1f M hits/s   %8.1f G pairs/s\n", 1e-6 * kernel, 1e-9 * kernel * options.window);
  std::printf("  with copies     %10.1f M hits/s\n", 1e-6 * whole);
  std::printf("  one core        %10.3f M hits/s   GPU / core: %.0f (kernel), %.0f (with copies)\n", 1e-6 * cpu, kernel / cpu,
              whole / cpu);

  std::vector<km3::Seed> seeds;  // 110 kHz a tower
  for (const km3::Point& point : made_up_hits(detector, options.seeds)) seeds.push_back({point, 0, km3::kSimple});
  for (km3::Seed& seed : seeds) seed.point.time_ns *= 42.0;
  std::vector<km3::Judgement> judgements(seeds.size());
  std::vector<km3::Judgement> of_cpu(seeds.size());
  const auto gpu = km3_gpu::make_gpu_judge(static_cast<std::uint32_t>(seeds.size()));
  const km3::JudgeCuts cuts;
  std::vector<double> gpu_s;
  std::vector<double> cpu_s;
  for (int k = 0; k < options.repeats; ++k) {
    gpu_s.push_back(seconds_of([&] { gpu->judge_all(seeds, cuts, {}, judgements); }));
    cpu_s.push_back(seconds_of([&] { km3::CpuJudge().judge_all(seeds, cuts, {}, of_cpu); }));
  }
  bool same_judgements = true;
  for (std::size_t k = 0; k < seeds.size(); ++k) {
    same_judgements = same_judgements && judgements[k].members == of_cpu[k].members && judgements[k].flags == of_cpu[k].flags;
  }
  const double seed_count = static_cast<double>(seeds.size());
  std::printf("%zu seeds judged, with copies: GPU %.1f M/s, one core %.1f M/s; %s\n", seeds.size(),
              1e-6 * seed_count / median(gpu_s), 1e-6 * seed_count / median(cpu_s), same_judgements ? "the same" : "THEY DIFFER");
  if (!options.csv.empty()) {
    std::ofstream(options.csv) << "what,hits_per_s\nkernel," << kernel << "\nwith_copies," << whole << "\none_core," << cpu
                               << "\nseeds_gpu," << seed_count / median(gpu_s) << "\nseeds_one_core," << seed_count / median(cpu_s)
                               << "\n";
  }
  return is_same && same_judgements ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!read_options(count, words, options)) {
    std::fprintf(stderr, "error: an option is not known or has no value (see the head of bench/gpu/km3.cpp)\n");
    return 2;
  }
  bench::limit_run_time(options.limit_s);
  try {
    return run(options);
  } catch (const SetupError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
