// SPDX-License-Identifier: Apache-2.0
// The KM3NeT trigger on a GPU: the pairs, the judgements and the events of the CPU, bit for bit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "check.hpp"
#include "km3_gpu/correlate.hpp"
#include "nanet/km3/trigger.hpp"

namespace nanet::km3_gpu {
namespace {

using km3::Point;

std::vector<Point> random_points(std::size_t count, std::uint64_t seed, double length_ns, double size_m) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> part(0.0, 1.0);
  std::vector<Point> points(count);
  for (Point& point : points)
    point = {size_m * part(random), size_m * part(random), size_m * part(random), length_ns * part(random)};
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.time_ns < b.time_ns; });
  return points;
}

TEST(Km3, correlates_the_pairs_of_the_cpu) {
  const km3::Match3B match(90, 5);
  Correlator correlator(5000, match);
  for (const std::uint32_t count : {0u, 1u, 2u, 255u, 256u, 257u, 1000u, 5000u}) {
    const std::vector<Point> points = random_points(count, count, 6.0 * count, 500);
    for (const std::uint32_t window : {1u, 31u, 256u, 1500u, 100'000u}) {
      std::vector<std::uint32_t> expected(count);
      std::uint64_t pairs = 0;
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t k = i + 1; k < count && k - i <= window; ++k) {
          if (!match(points[i], points[k])) continue;
          ++pairs;
          ++expected[i];
          ++expected[k];
        }
      }
      EXPECT_EQ(correlator.load(points), count);
      correlator.correlate(window);
      std::vector<std::uint32_t> found(count);
      correlator.store_degrees(found);
      EXPECT_EQ(correlator.pair_count(), pairs) << count << " hits, window " << window;
      EXPECT_TRUE(found == expected) << count << " hits, window " << window;
    }
  }
}

TEST(Km3, judges_as_the_cpu) {
  const auto directions = km3::direction_grid(30);
  std::unique_ptr<km3::SeedJudge> gpu = make_gpu_judge(4000);
  for (std::uint64_t set = 0; set < 6; ++set) {
    std::vector<km3::Seed> seeds;
    for (const Point& point : random_points(4000, set, set < 4 ? 400e3 : 60e3, 150)) seeds.push_back({point, 0, km3::kSimple});
    km3::JudgeCuts cuts;
    cuts.seeds_min = static_cast<std::uint32_t>(3 + set);
    cuts.cliques = set % 3 == 2 ? 0 : 1;
    cuts.match1d = km3::Match1D(90, 20);
    const std::span<const km3::Direction> along = set % 2 == 0 ? std::span<const km3::Direction>{} : std::span(directions);
    std::vector<km3::Judgement> expected(seeds.size());
    std::vector<km3::Judgement> found(seeds.size());
    km3::CpuJudge().judge_all(seeds, cuts, along, expected);
    gpu->judge_all(seeds, cuts, along, found);
    std::size_t triggered = 0;
    for (const km3::Judgement& one : expected) triggered += one.triggered;
    EXPECT_GT(triggered, 0u);
    EXPECT_TRUE(std::memcmp(expected.data(), found.data(), expected.size() * sizeof(km3::Judgement)) == 0) << "set " << set;
  }
}

void add_slice(km3::Trigger& trigger, std::uint64_t seed, std::vector<km3::Event>& events, std::vector<km3::Hit>& hits) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> time(0.0, 20e6);
  std::vector<km3::Hit> slice;
  for (std::uint32_t pm = 0; pm < 84; ++pm) {
    for (int k = 0; k < 3000; ++k) slice.push_back({std::floor(time(random)), pm, 1});
  }
  const auto take = [&](std::span<const km3::Event> found) {
    for (const km3::Event& event : found) {
      events.push_back(event);
      const auto of_event = trigger.hits(event);
      hits.insert(hits.end(), of_event.begin(), of_event.end());
    }
  };
  take(trigger.begin(static_cast<std::uint32_t>(seed)));
  trigger.add(slice);
  take(trigger.finish());
}

TEST(Km3, finds_the_events_of_the_cpu) {
  const km3::Detector detector = km3::make_towers({});
  km3::TriggerConfig config;
  config.slice_ns = 20e6;
  config.seeds_min = 4;
  config.floor_hits_max = 1u << 16;
  std::vector<km3::Event> events[2];
  std::vector<km3::Hit> hits[2];
  for (int who = 0; who < 2; ++who) {
    km3::Trigger trigger(detector, config, who == 0 ? nullptr : make_gpu_judge(config.seeds_max));
    for (std::uint64_t slice = 0; slice < 3; ++slice) add_slice(trigger, slice, events[who], hits[who]);
  }
  EXPECT_GT(events[0].size(), 10u);
  ASSERT_EQ(events[0].size(), events[1].size());
  EXPECT_TRUE(std::memcmp(events[0].data(), events[1].data(), events[0].size() * sizeof(km3::Event)) == 0);
  ASSERT_EQ(hits[0].size(), hits[1].size());
  EXPECT_TRUE(std::memcmp(hits[0].data(), hits[1].data(), hits[0].size() * sizeof(km3::Hit)) == 0);
}

}  // namespace
}  // namespace nanet::km3_gpu
