// SPDX-License-Identifier: Apache-2.0
// Cost of event building: nanoseconds a part, for blocks of events from one source after the other, as packets come.
//
//   bench_merger [--csv FILE]
//
// exact is add_part(), padded is add_padded_part(); the figure is the best of 15 repeats.
// The hits lie in 256 KB, like those of packets received a moment ago; the ready events' headers are read and cleared
// after each block.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "nanet/event/merger.hpp"

namespace {

using nanet::event::Merger;
using nanet::event::MergerConfig;

enum class Copy { exact, padded };

struct Parts {
  std::vector<std::uint64_t> keys;       // of each event
  std::vector<std::uint16_t> hits;       // of kPartsInCache parts in turn, kHitSlots each
  std::vector<std::uint8_t> hit_counts;  // of part [source * events + event]
};

constexpr std::uint32_t kHitSlots = 32;
constexpr std::uint32_t kPartsInCache = 4096;

Parts make_parts(std::uint32_t source_count, std::uint32_t event_count, double mean_hits) {
  std::mt19937_64 random(1);
  std::poisson_distribution<int> hit_count(mean_hits);
  std::exponential_distribution<double> gap(1.0 / 1026.0);  // 10 Mevent/s in units of 97.46 ps
  Parts parts;
  double key = 0;
  for (std::uint32_t i = 0; i < event_count; ++i) {
    key += 1 + gap(random);
    parts.keys.push_back(static_cast<std::uint64_t>(key));
  }
  const std::size_t part_count = std::size_t{source_count} * event_count;
  for (std::size_t i = 0; i < part_count; ++i) {
    parts.hit_counts.push_back(static_cast<std::uint8_t>(std::min(hit_count(random), 32)));
  }
  parts.hits.assign(kPartsInCache * kHitSlots, 7);
  return parts;
}

template <Copy copy>
std::uint64_t run_once(Merger& merger, const Parts& parts, std::uint32_t source_count, std::uint32_t block, std::uint64_t first_key,
                       std::uint64_t now_ns) {
  const auto event_count = static_cast<std::uint32_t>(parts.keys.size());
  std::uint64_t hit_sum = 0;
  for (std::uint32_t first = 0; first + block <= event_count; first += block) {
    for (std::uint32_t source = 0; source < source_count; ++source) {
      now_ns += block * 25;
      for (std::uint32_t i = first; i < first + block; ++i) {
        const std::size_t part = std::size_t{source} * event_count + i;
        const std::uint16_t* const hits = &parts.hits[part % kPartsInCache * kHitSlots];
        if constexpr (copy == Copy::exact) {
          merger.add_part(source, first_key + parts.keys[i], hits, parts.hit_counts[part], now_ns);
        } else {
          merger.add_padded_part(source, first_key + parts.keys[i], hits, parts.hit_counts[part], now_ns);
        }
      }
      merger.expire(now_ns);
      for (const auto* event : merger.ready()) hit_sum += event->hit_count;
      merger.clear_ready();
    }
  }
  return hit_sum;
}

template <Copy copy>
double best_ns_a_part(const Parts& parts, std::uint32_t source_count, std::uint32_t block) {
  Merger merger({.source_count = source_count, .window_ns = 200'000, .open_events_max = 8192});
  double best_ns = 1e9;
  std::uint64_t key = 0;
  std::uint64_t now_ns = 0;
  std::uint64_t hits_expected = 0;
  for (const auto count : parts.hit_counts) hits_expected += count;
  for (int repeat = 0; repeat < 15; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t hit_sum = run_once<copy>(merger, parts, source_count, block, key, now_ns);
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    if (hit_sum != hits_expected) {
      std::fprintf(stderr, "merger bench: hits are missing (%llu of %llu came out)\n", static_cast<unsigned long long>(hit_sum),
                   static_cast<unsigned long long>(hits_expected));
      std::exit(1);
    }
    key += parts.keys.back();
    now_ns += 100 * parts.keys.size();
    best_ns = std::min(best_ns, taken.count() / static_cast<double>(parts.hit_counts.size()));
  }
  return best_ns;
}

}  // namespace

int main(int argc, char** argv) {
  std::ofstream csv;
  if (argc == 3 && std::string(argv[1]) == "--csv") {
    csv.open(argv[2]);
    csv << "sources,block,mean_hits,exact_ns_per_part,padded_ns_per_part\n";
  } else if (argc != 1) {
    std::fprintf(stderr, "usage: bench_merger [--csv FILE]\n");
    return 2;
  }
  constexpr std::uint32_t event_count = 64'000;  // a multiple of every block size
  std::printf("%8s %8s %10s %16s %16s\n", "sources", "block", "mean hits", "exact ns/part", "padded ns/part");
  for (const std::uint32_t source_count : {4u, 1u}) {
    for (const std::uint32_t block : {16u, 64u, 640u}) {
      for (const double mean_hits : {3.0, 5.0}) {
        const Parts parts = make_parts(source_count, event_count, mean_hits);
        const double exact = best_ns_a_part<Copy::exact>(parts, source_count, block);
        const double padded = best_ns_a_part<Copy::padded>(parts, source_count, block);
        std::printf("%8u %8u %10.0f %16.2f %16.2f\n", source_count, block, mean_hits, exact, padded);
        csv << source_count << ',' << block << ',' << mean_hits << ',' << exact << ',' << padded << '\n';
      }
    }
  }
}
