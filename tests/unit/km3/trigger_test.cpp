// SPDX-License-Identifier: Apache-2.0
// The trigger, slice by slice, against one that sees all hits at once; its books; what it costs in memory.
#include "nanet/km3/trigger.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "../allocation_count.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::km3 {
namespace {

using Hits = std::vector<Hit>;

// An event in time since the run began, for comparison.
struct Whole {
  double begin_ns;
  double end_ns;
  std::vector<std::tuple<double, std::uint32_t, float>> hits;
  std::vector<std::tuple<double, std::uint32_t, std::uint32_t>> seeds;
  bool operator==(const Whole&) const = default;
};

TriggerConfig small_config() {
  TriggerConfig config;
  config.slice_ns = 1e6;
  config.reorder_ns = 5e3;
  config.event_ns_max = 1e5;
  config.floor_hits_max = 1u << 13;
  config.seeds_max = 1u << 13;
  config.event_hits_max = 1u << 16;
  config.seeds_min = 4;
  return config;
}

// Noise and, every now and then, light that runs up the tower. Whole ns, as the hardware has.
Hits made_up_hits(const Detector& detector, double length_ns, double rate_hz, double muon_every_ns, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> time(0.0, length_ns);
  std::uniform_int_distribution<std::uint32_t> pm(0, static_cast<std::uint32_t>(detector.pms().size()) - 1);
  std::exponential_distribution<float> charge(1.5F);
  Hits hits;
  const auto add = [&](double when, std::uint32_t which, float pe) {
    if (when >= 0 && when < length_ns) hits.push_back({std::floor(when), which, pe});
  };
  const auto noise = static_cast<std::size_t>(rate_hz * 1e-9 * length_ns * static_cast<double>(detector.pms().size()));
  for (std::size_t k = 0; k < noise; ++k) add(time(random), pm(random), 0.25F + charge(random));
  std::uniform_real_distribution<double> jitter(0.0, 15.0);
  for (double when = muon_every_ns / 2; when < length_ns; when += muon_every_ns) {
    const std::uint32_t first = pm(random) % 4;
    for (std::uint32_t f = first; f < detector.floors().size(); f += 2) {
      const Floor& floor = detector.floors()[f];
      const double here = when + 20.0 * f / kLightSpeed;
      const std::uint32_t place = pm(random) % 3;
      add(here, floor.first_pm + 2 * place, 1);
      add(here + jitter(random), floor.first_pm + 2 * place + 1, 1);
    }
  }
  return hits;
}

Whole whole_of(const Trigger& trigger, const Event& event, double origin_ns) {
  Whole whole{event.begin_ns + origin_ns, event.end_ns + origin_ns, {}, {}};
  for (const Hit& hit : trigger.hits(event)) whole.hits.emplace_back(hit.time_ns + origin_ns, hit.pm, hit.charge_pe);
  for (const Seed& seed : trigger.seeds(event)) whole.seeds.emplace_back(seed.point.time_ns + origin_ns, seed.pm, seed.kinds);
  return whole;
}

void collect(std::vector<Whole>& wholes, const Trigger& trigger, std::span<const Event> events, double slice_ns) {
  for (const Event& event : events) wholes.push_back(whole_of(trigger, event, slice_ns * event.slice));
}

// Slices one after another. Some hits come with the slice after theirs, and all in any order.
std::vector<Whole> run(Trigger& trigger, const Hits& hits, double length_ns, std::uint64_t seed, bool use_room = false) {
  std::mt19937_64 random(seed);
  const double slice_ns = trigger.config().slice_ns;
  const auto slices = static_cast<std::uint32_t>(std::ceil(length_ns / slice_ns));
  std::vector<Hits> of_slice(slices + 1);
  for (Hit hit : hits) {
    auto slice = static_cast<std::uint32_t>(hit.time_ns / slice_ns);
    const double in_slice_ns = hit.time_ns - slice_ns * slice;
    if (slice > 0 && in_slice_ns < trigger.config().reorder_ns && random() % 4 == 0) --slice;
    if (slice + 1 < slices && slice_ns - in_slice_ns <= trigger.config().reorder_ns && random() % 4 == 0) ++slice;
    hit.time_ns -= slice_ns * slice;
    of_slice[slice].push_back(hit);
  }
  std::vector<Whole> wholes;
  for (std::uint32_t slice = 0; slice < slices; ++slice) {
    std::shuffle(of_slice[slice].begin(), of_slice[slice].end(), random);
    collect(wholes, trigger, trigger.begin(slice), slice_ns);
    if (!use_room) {
      trigger.add(of_slice[slice]);
    } else {
      for (std::uint32_t f = 0; f < trigger.detector().floors().size(); ++f) {
        const std::span<Hit> room = trigger.room(f);
        std::size_t count = 0;
        for (const Hit& hit : of_slice[slice]) {
          if (trigger.detector().pms()[hit.pm].floor == f) room[count++] = hit;
        }
        trigger.commit(f, count);
      }
    }
    collect(wholes, trigger, trigger.finish(), slice_ns);
  }
  collect(wholes, trigger, trigger.flush(), slice_ns);
  return wholes;
}

// All at once and in the most direct way: every pair of a floor, every group of seeds.
struct Reference {
  const Detector& detector;
  const TriggerConfig& config;
  std::vector<Seed> seeds = {};
  std::vector<bool> triggered = {};

  void find_seeds(const Hits& hits) {
    for (std::size_t i = 0; i < hits.size(); ++i) {
      std::uint32_t kinds = hits[i].charge_pe > config.charge_pe ? kCharge : 0u;
      const Pm& a = detector.pms()[hits[i].pm];
      for (std::size_t k = i + 1; k < hits.size() && hits[k].time_ns - hits[i].time_ns <= config.floor_ns; ++k) {
        const Pm& b = detector.pms()[hits[k].pm];
        const double dt_ns = hits[k].time_ns - hits[i].time_ns;
        if (a.floor != b.floor || hits[i].pm == hits[k].pm) continue;
        if (a.number / 2 == b.number / 2 && dt_ns <= config.simple_ns) kinds |= kSimple;
        if (std::abs(a.number / 2 - b.number / 2) == 2) kinds |= kFloor;
      }
      if (kinds != 0) seeds.push_back({{a.position_m.x, a.position_m.y, a.position_m.z, hits[i].time_ns}, hits[i].pm, kinds});
    }
    triggered.assign(seeds.size(), false);
  }

  void extend(std::vector<std::size_t>& group) {
    if (group.size() == config.seeds_min) {
      for (const std::size_t k : group) triggered[k] = true;
      return;
    }
    const Match3B match(config.road_m, config.time_extra_ns);
    for (std::size_t next = group.back() + 1; next < seeds.size(); ++next) {
      if (seeds[next].point.time_ns - seeds[group.front()].point.time_ns > config.window_ns) break;
      bool fits = true;
      for (const std::size_t k : group) fits = fits && match(seeds[k].point, seeds[next].point);
      if (!fits) continue;
      group.push_back(next);
      extend(group);
      group.pop_back();
    }
  }

  std::vector<Whole> events(Hits hits) {
    std::erase_if(hits, [&](const Hit& hit) { return hit.charge_pe < config.threshold_pe; });
    std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) {
      return std::tie(a.time_ns, a.pm, a.charge_pe) < std::tie(b.time_ns, b.pm, b.charge_pe);
    });
    find_seeds(hits);
    std::vector<std::size_t> group;
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      group.assign(1, i);
      extend(group);
    }
    std::vector<Whole> wholes;
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      if (!triggered[i]) continue;
      const double time_ns = seeds[i].point.time_ns;
      if (wholes.empty() || time_ns - config.around_ns >= wholes.back().end_ns) {
        wholes.push_back({time_ns - config.around_ns, 0, {}, {}});
      }
      wholes.back().end_ns = time_ns + config.around_ns;
      wholes.back().seeds.emplace_back(time_ns, seeds[i].pm, seeds[i].kinds);
    }
    for (Whole& whole : wholes) {
      for (const Hit& hit : hits) {
        if (hit.time_ns >= whole.begin_ns && hit.time_ns < whole.end_ns)
          whole.hits.emplace_back(hit.time_ns, hit.pm, hit.charge_pe);
      }
    }
    return wholes;
  }
};

void expect_books(const TriggerCounts& c) {
  EXPECT_EQ(c.hits_in, c.hits_used + c.hits_below_threshold + c.hits_late + c.hits_ahead + c.hits_bad_pm + c.hits_bad_time +
                           c.hits_no_room + c.hits_no_slice);
}

TEST(Trigger, FindsWhatOneThatSeesAllHitsFinds) {
  const Detector detector = make_towers({});
  const double length_ns = 12e6;
  for (std::uint64_t k = 0; k < 6; ++k) {
    const Hits hits = made_up_hits(detector, length_ns, k % 2 == 0 ? 55e3 : 150e3, k < 4 ? 91'300.0 : 30'700.0, k);
    TriggerConfig config = small_config();
    if (k % 3 == 1) config.slice_ns = 400e3;
    Trigger trigger(detector, config);
    Reference reference{detector, config};
    const std::vector<Whole> wanted = reference.events(hits);
    const std::vector<Whole> found = run(trigger, hits, length_ns, k, k % 2 == 1);
    EXPECT_GT(wanted.size(), 90u);
    ASSERT_EQ(found.size(), wanted.size()) << "set " << k;
    for (std::size_t e = 0; e < wanted.size(); ++e) ASSERT_EQ(found[e], wanted[e]) << "set " << k << " event " << e;
    const TriggerCounts& counts = trigger.counts();
    expect_books(counts);
    EXPECT_EQ(counts.hits_in, hits.size());
    EXPECT_GT(counts.hits_below_threshold, 0u);
    EXPECT_EQ(counts.hits_late + counts.hits_ahead + counts.hits_no_room, 0u);
    EXPECT_EQ(counts.seeds, reference.seeds.size());
    EXPECT_EQ(counts.events, wanted.size());
    EXPECT_EQ(counts.slices_missing, 0u);
  }
}

// An event at every distance from the end of a slice comes once, whole.
TEST(Trigger, NoEventIsCutByTheEndOfASlice) {
  const Detector detector = make_towers({});
  TriggerConfig config = small_config();
  for (double begin_ns = 985e3; begin_ns < 1015e3; begin_ns += 333) {
    Trigger trigger(detector, config);
    Hits hits;
    for (std::uint32_t f = 0; f < 6; ++f) {
      hits.push_back({begin_ns + std::floor(20.0 * f / kLightSpeed), 6 * f, 1});
      hits.push_back({begin_ns + std::floor(20.0 * f / kLightSpeed) + 3, 6 * f + 1, 1});
    }
    hits.push_back({begin_ns - 6000, 50, 1});
    hits.push_back({begin_ns - 6001, 51, 1});
    hits.push_back({begin_ns + 6000 + std::floor(100 / kLightSpeed) - 1, 52, 1});
    hits.push_back({begin_ns + 6000 + std::floor(100 / kLightSpeed), 53, 1});
    const auto found = run(trigger, hits, 3e6, 1);
    ASSERT_EQ(found.size(), 1u) << begin_ns;
    EXPECT_EQ(found[0].hits.size(), 14u) << begin_ns;
    EXPECT_EQ(found[0].seeds.size(), 6u) << begin_ns;
  }
}

TEST(Trigger, LongEventsAreCutAndNoHitIsInTwo) {
  const Detector detector = make_towers({});
  TriggerConfig config = small_config();
  config.event_ns_max = 20e3;
  const Hits hits = made_up_hits(detector, 6e6, 55e3, 9'100.0, 3);  // one muon's surroundings reach into the next one's
  Trigger trigger(detector, config);
  const auto found = run(trigger, hits, 6e6, 1);
  EXPECT_GT(trigger.counts().events_cut, 100u);
  EXPECT_GT(found.size(), trigger.counts().events_cut);
  std::map<std::tuple<double, std::uint32_t, float>, int> times;
  for (const Whole& whole : found) {
    EXPECT_LE(std::get<0>(whole.seeds.back()) - std::get<0>(whole.seeds.front()), 20e3);
    for (const auto& hit : whole.hits) EXPECT_EQ(++times[hit], 1);
  }
}

TEST(Trigger, AMissingSliceEndsWhatWasOpen) {
  const Detector detector = make_towers({});
  Trigger trigger(detector, small_config());
  EXPECT_TRUE(trigger.begin(7).empty());
  Hits hits;
  for (std::uint32_t f = 0; f < 6; ++f) {
    hits.push_back({997e3 + std::floor(20.0 * f / kLightSpeed), 6 * f, 1});
    hits.push_back({997e3 + std::floor(20.0 * f / kLightSpeed) + 3, 6 * f + 1, 1});
  }
  trigger.add(hits);
  EXPECT_TRUE(trigger.finish().empty());
  const auto ended = trigger.begin(12);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].slice, 8u);
  EXPECT_LT(ended[0].begin_ns, 0);
  EXPECT_EQ(trigger.hits(ended[0]).size(), 12u);
  EXPECT_EQ(trigger.counts().slices_missing, 4u);
  EXPECT_TRUE(trigger.finish().empty());

  (void)trigger.begin(3);
  trigger.add(hits);
  EXPECT_TRUE(trigger.finish().empty());
  EXPECT_EQ(trigger.counts().slices_old, 1u);
  EXPECT_EQ(trigger.counts().hits_late, 12u);
  EXPECT_TRUE(trigger.begin(13).empty()) << "12 has been, 13 is next";
  EXPECT_EQ(trigger.counts().slices_missing, 4u);
}

TEST(Trigger, EveryHitThatIsNotUsedHasAName) {
  const Detector detector = make_towers({});
  TriggerConfig config = small_config();
  config.floor_hits_max = 16;
  Trigger trigger(detector, config);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Hits one = {{0, 0, 1}};
  trigger.add(one);
  (void)trigger.begin(0);
  trigger.add(Hits{{-5000.5, 0, 1},
                   {-5000, 0, 1},
                   {1'004'999, 0, 1},
                   {1'005'000, 0, 1},
                   {nan, 0, 1},
                   {1, 84, 1},
                   {1, 0xFFFFFFFF, 1},
                   {1, 0, 0.2F},
                   {1, 0, std::numeric_limits<float>::quiet_NaN()},
                   {std::numeric_limits<double>::infinity(), 1, 1},
                   {-HUGE_VAL, 1, 1}});
  const TriggerCounts& counts = trigger.counts();
  EXPECT_EQ(counts.hits_no_slice, 1u);
  EXPECT_EQ(counts.hits_late, 2u);
  EXPECT_EQ(counts.hits_ahead, 2u);
  EXPECT_EQ(counts.hits_bad_time, 1u);
  EXPECT_EQ(counts.hits_bad_pm, 2u);
  EXPECT_EQ(counts.hits_below_threshold, 2u);
  EXPECT_EQ(counts.hits_used, 2u);
  for (int k = 0; k < 20; ++k) trigger.add(one);
  EXPECT_EQ(counts.hits_no_room, 6u);
  expect_books(counts);
  EXPECT_EQ(trigger.room(0).size(), 0u);
  EXPECT_EQ(trigger.room(99).size(), 0u);
  trigger.commit(99, 5);
  trigger.commit(0, 5);
  trigger.room(1)[0] = {1, 3, 1};  // another floor's
  trigger.commit(1, 1);
  EXPECT_EQ(counts.hits_bad_pm, 3u);
  expect_books(counts);
}

TEST(Trigger, WhatDoesNotFitIsCounted) {
  const Detector detector = make_towers({});
  TriggerConfig config = small_config();
  config.events_max = 2;
  const Hits hits = made_up_hits(detector, 2e6, 55e3, 50'000.0, 1);
  Trigger few(detector, config);
  const auto found = run(few, hits, 2e6, 1);
  EXPECT_LE(found.size(), 6u);
  EXPECT_EQ(few.counts().events, few.counts().events_no_room + found.size());
  config = small_config();
  config.event_hits_max = 100;
  Trigger small(detector, config);
  (void)run(small, hits, 2e6, 1);
  EXPECT_GT(small.counts().events_no_room, 0u);
  config = small_config();
  config.seeds_max = 16;
  Trigger seedless(detector, config);
  (void)run(seedless, hits, 2e6, 1);
  EXPECT_GT(seedless.counts().seeds_no_room, 0u);
}

TEST(Trigger, TakesNoMemoryAfterItsStart) {
  const Detector detector = make_towers({});
  TriggerConfig config = small_config();
  config.direction_step_deg = 30;
  Trigger trigger(detector, config);
  std::vector<Hits> slices;
  for (std::uint64_t k = 0; k < 5; ++k) slices.push_back(made_up_hits(detector, 1e6, 55e3, 100e3, k));
  const std::uint64_t before = test::allocation_count.load();
  std::size_t events = 0;
  for (std::uint32_t k = 0; k < 10; ++k) {
    events += trigger.begin(k < 8 ? k : k + 5).size();
    trigger.add(slices[k % 5]);
    events += trigger.finish().size();
  }
  events += trigger.flush().size();
  EXPECT_EQ(test::allocation_count.load(), before);
  EXPECT_GT(events, 50u);
}

// The rates that chance alone gives: 2 r^2 T a pair.
TEST(Trigger, RandomCoincidencesComeAtTheirRate) {
  const Detector detector = make_towers({});
  TriggerConfig config;
  config.slice_ns = 100e6;
  config.charge_pe = 1e9F;
  config.floor_hits_max = 1u << 16;
  Trigger trigger(detector, config);
  std::mt19937_64 random(2);
  std::poisson_distribution<int> count(55e3 * 0.1);
  std::uniform_real_distribution<double> time(0.0, 100e6);
  Hits hits;
  for (std::uint32_t slice = 0; slice < 8; ++slice) {
    hits.clear();
    for (std::uint32_t pm = 0; pm < 84; ++pm) {
      for (int k = count(random); k > 0; --k) hits.push_back({std::floor(time(random)), pm, 1});
    }
    (void)trigger.begin(slice);
    trigger.add(hits);
    (void)trigger.finish();
  }
  (void)trigger.flush();
  // Of whole nanoseconds, |dt| <= T happens in a time of 2 T + 1. A seed may stand for two pairs, in 2 % of floor coincidences.
  const double seconds = 0.8;
  const double simple = 42 * 55e3 * 55e3 * 41e-9 * seconds;
  const double floor = 56 * 55e3 * 55e3 * 401e-9 * seconds;
  EXPECT_NEAR(static_cast<double>(trigger.counts().seeds_simple), simple, 4 * std::sqrt(simple));
  EXPECT_NEAR(static_cast<double>(trigger.counts().seeds_floor), 0.989 * floor, 4 * std::sqrt(floor) + 0.01 * floor);
}

TEST(Trigger, SetUpIsChecked) {
  const Detector detector = make_towers({});
  TriggerConfig config;
  config.seeds_min = 1;
  EXPECT_THROW(Trigger(detector, config), SetupError);
  config = {};
  config.slice_ns = 50e3;
  EXPECT_THROW(Trigger(detector, config), SetupError);
  config = {};
  config.direction_step_deg = 0.5;
  EXPECT_THROW(Trigger(detector, config), SetupError);
  const Detector shifted = read_detx("1 1\n5 1 1 2\n 1 0 0 0 0 0 1 5\n 2 0 0 0 0 0 1 30005\n");
  EXPECT_THROW(Trigger(shifted, TriggerConfig{}), SetupError);
}

}  // namespace
}  // namespace nanet::km3
