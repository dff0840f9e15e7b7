// SPDX-License-Identifier: Apache-2.0
// bench_gpu_km3: match3B of 10^6 hits in windows of 1500 on a GPU and on one core, and seeds judged by either.
//
//   --hits 1000000  --window 1500  --towers 8 (whose rate the hits have)  --repeats 9 (medians)  --seeds 100000  --limit-s 120  --csv FILE  --short
//
// Rates are hits a second: of the kernel alone, and with hits copied to the GPU and degrees back. Exit status: 0; 1 the GPU's pairs are not the
// CPU's; 2 no GPU or wrong options; 3 too long.
#include <algorithm>
#include <cmath>
#include <cstdio>
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

struct Load {
  std::size_t hits = 1'000'000;
  std::uint32_t window = 1500;
  std::uint32_t towers = 8;
  int repeats = 9;
  std::size_t seeds = 100'000;
};

Load load_of(const bench::Options& options) {
  Load load;
  if (options.is_short()) load = {.hits = 20'000, .repeats = 1, .seeds = 2'000};
  const auto within = [&](const char* name, std::uint64_t otherwise, std::uint64_t most) {
    const std::uint64_t value = options.count(name, otherwise);
    if (value < 1 || value > most) {
      throw SetupError(std::string(name) + " is " + std::to_string(value), "it can be 1 to " + std::to_string(most),
                       std::string("write ") + name + " " + std::to_string(otherwise));
    }
    return value;
  };
  load.hits = within("--hits", load.hits, 100'000'000);
  load.window = static_cast<std::uint32_t>(within("--window", load.window, 100'000));
  load.towers = static_cast<std::uint32_t>(within("--towers", load.towers, 15));
  load.repeats = static_cast<int>(within("--repeats", static_cast<std::uint64_t>(load.repeats), 1000));
  load.seeds = within("--seeds", load.seeds, 10'000'000);
  return load;
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

int run(const bench::Options& options) {
  const Load load = load_of(options);
  bench::limit_run_time(static_cast<unsigned>(options.count("--limit-s", 120)));
  bench::Csv csv(options.text("--csv"));
  bench::describe_machine("bench_gpu_km3", csv);
  const km3::Detector detector = km3::make_towers({.towers = load.towers});
  const std::vector<km3::Point> points = made_up_hits(detector, load.hits);
  const km3::Match3B match;
  km3_gpu::Correlator correlator(static_cast<std::uint32_t>(load.hits), match);
  std::vector<std::uint32_t> degrees(load.hits);

  std::vector<std::uint32_t> expected(std::min<std::size_t>(load.hits, 100'000));
  const double cpu = cpu_hits_per_s(points, load.window, match, expected);
  correlator.load(std::span(points).first(expected.size()));
  correlator.correlate(load.window);
  correlator.store_degrees(std::span(degrees).first(expected.size()));
  const bool is_same = std::equal(expected.begin(), expected.end(), degrees.begin());

  std::vector<double> kernel_s;
  std::vector<double> whole_s;
  for (int k = 0; k < load.repeats; ++k) {
    whole_s.push_back(seconds_of([&] {
      correlator.load(points);
      kernel_s.push_back(correlator.correlate(load.window));
      correlator.store_degrees(degrees);
    }));
  }
  const double hits = static_cast<double>(load.hits);
  const double kernel = hits / median(kernel_s);
  const double whole = hits / median(whole_s);
  std::printf("match3B of %zu hits, window %u: %llu pairs; %s\n", load.hits, load.window,
              static_cast<unsigned long long>(correlator.pair_count()),
              is_same ? "degrees as the CPU's" : "DEGREES DIFFER FROM THE CPU'S");
  std::printf("  kernel          %10.1f M hits/s   %8.1f G pairs/s\n", 1e-6 * kernel, 1e-9 * kernel * load.window);
  std::printf("  with copies     %10.1f M hits/s\n", 1e-6 * whole);
  std::printf("  one core        %10.3f M hits/s   GPU / core: %.0f (kernel), %.0f (with copies)\n", 1e-6 * cpu, kernel / cpu,
              whole / cpu);

  std::vector<km3::Seed> seeds;  // 110 kHz a tower
  for (const km3::Point& point : made_up_hits(detector, load.seeds)) seeds.push_back({point, 0, km3::kSimple});
  for (km3::Seed& seed : seeds) seed.point.time_ns *= 42.0;
  std::vector<km3::Judgement> judgements(seeds.size());
  std::vector<km3::Judgement> of_cpu(seeds.size());
  const auto gpu = km3_gpu::make_gpu_judge(static_cast<std::uint32_t>(seeds.size()));
  const km3::JudgeCuts cuts;
  std::vector<double> gpu_s;
  std::vector<double> cpu_s;
  for (int k = 0; k < load.repeats; ++k) {
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
  if (!is_same || !same_judgements) csv.line("# wrong: the GPU's answers differ from the CPU's");
  csv.line("what,per_s");
  const auto row = [&](const char* what, double per_s) { csv.line(std::string(what) + "," + std::to_string(per_s)); };
  row("kernel", kernel);
  row("with_copies", whole);
  row("one_core", cpu);
  row("seeds_gpu", seed_count / median(gpu_s));
  row("seeds_one_core", seed_count / median(cpu_s));
  return is_same && same_judgements ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(bench::Options(argc, argv, {"--hits", "--window", "--towers", "--repeats", "--seeds", "--limit-s", "--csv"}));
  } catch (const SetupError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
