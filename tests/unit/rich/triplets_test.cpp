// SPDX-License-Identifier: Apache-2.0
#include "rich/triplets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "hwy/highway.h"
#include "nanet/rich/pm_map.hpp"

namespace nanet::rich {
namespace {

using Hits = std::vector<std::uint16_t>;

struct TrueRing {
  double x_mm, y_mm, radius_mm;
  int time_code = 0;
};

EventRings find(const Hits& hits, const TripletsCuts& cuts = {}) {
  return find_triplets({hits.data(), static_cast<std::uint32_t>(hits.size())}, kPmPoints.data(), cuts);
}

bool same_bits(const EventRings& a, const EventRings& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

void expect_sound(const EventRings& event) {
  ASSERT_LE(event.count, kMaxRings);
  for (std::uint32_t r = 0; r < kMaxRings; ++r) {
    const Ring& ring = event.rings[r];
    EXPECT_TRUE(std::isfinite(ring.x_mm) && std::isfinite(ring.y_mm) && std::isfinite(ring.radius_mm) &&
                std::isfinite(ring.rms_mm) && std::isfinite(ring.time_ns));
    EXPECT_EQ(ring.status, r < event.count ? RingStatus::ring : RingStatus::no_ring);
    if (r >= event.count) continue;
    EXPECT_GE(ring.hits, 4);
    EXPECT_LE(ring.hits, event.rings[r == 0 ? 0 : r - 1].hits);
  }
}

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : engine_(seed) {}

  int pick(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
  std::mt19937_64& engine() { return engine_; }

  TrueRing ring() {
    std::normal_distribution<double> center(0.0, 40.0);
    return {center(engine_), center(engine_), uniform(80.0, 190.0)};
  }

  void add_light(const TrueRing& ring, int photons, std::set<std::uint16_t>& hits) {
    std::normal_distribution<double> smear(0.0, 2.5);
    for (int k = 0; k < photons; ++k) {
      const double phi = uniform(0.0, 6.283185307179586);
      const auto channel = nearest_channel(ring.x_mm + ring.radius_mm * std::cos(phi) + smear(engine_),
                                           ring.y_mm + ring.radius_mm * std::sin(phi) + smear(engine_), 0);
      std::normal_distribution<double> time(ring.time_code, 1.4);  // 0.28 ns
      const int code = std::clamp(static_cast<int>(std::lround(time(engine_))), -16, 15);
      if (channel != kNoChannel) hits.insert(static_cast<std::uint16_t>(channel | (code & 31) << 11));
    }
  }

  void add_noise(int count, std::set<std::uint16_t>& hits) {
    for (int k = 0; k < count; ++k) hits.insert(static_cast<std::uint16_t>(engine_() & 0xfbff));
  }

  Hits shuffled(const std::set<std::uint16_t>& hits) {
    Hits list(hits.begin(), hits.end());
    std::shuffle(list.begin(), list.end(), engine_);
    return list;
  }

  // Any kind of event, good and degenerate.
  Hits any() {
    std::set<std::uint16_t> hits;
    switch (pick(16)) {
      case 0: return Hits(static_cast<std::size_t>(pick(10)), static_cast<std::uint16_t>(pick(2048)));  // one PM, several times
      case 1: {                                                                                         // a line
        for (int i = -9; i <= 9; i += 2) {
          const auto channel = channel_at(i + 10 * (pick(3) - 1), 2 * (pick(2)), 0);
          if (channel != kNoChannel) hits.insert(channel);
        }
        break;
      }
      case 2: add_noise(pick(14), hits); break;
      case 3: {  // many, up to above the limit
        if (pick(50) == 0) add_noise(60 + pick(90), hits);
        break;
      }
      default: {
        const int rings = pick(5);
        for (int r = 0; r < rings; ++r) add_light(ring(), 3 + pick(13), hits);
        add_noise(pick(5), hits);
      }
    }
    return shuffled(hits);
  }

 private:
  std::mt19937_64 engine_;
};

bool matches(const Ring& ring, const TrueRing& truth, double center_mm = 20, double radius_mm = 15) {
  return std::hypot(ring.x_mm - truth.x_mm, ring.y_mm - truth.y_mm) <= center_mm &&
         std::abs(ring.radius_mm - truth.radius_mm) <= radius_mm;
}

bool finds(const EventRings& event, const TrueRing& truth) {
  return std::any_of(event.rings, event.rings + event.count, [&](const Ring& ring) { return matches(ring, truth); });
}

TEST(Triplets, OrderOfHitsDoesNotMatter) {
  Generator generator(21);
  for (int k = 0; k < 1500; ++k) {
    Hits hits = generator.any();
    if (hits.size() > kMaxHits) continue;
    const EventRings rings = find(hits);
    expect_sound(rings);
    std::shuffle(hits.begin(), hits.end(), generator.engine());
    EXPECT_TRUE(same_bits(rings, find(hits)));
  }
}

TEST(Triplets, IdealRingIsRecoveredToTheGrid) {
  Generator generator(22);
  for (int k = 0; k < 200; ++k) {
    const TrueRing truth{generator.uniform(-40, 40), generator.uniform(-40, 40), generator.uniform(80, 190)};
    std::set<std::uint16_t> channels;
    for (int step = 0; step < 48; ++step) {
      const double phi = step * 6.283185307179586 / 48;
      const auto channel = nearest_channel(truth.x_mm + truth.radius_mm * std::cos(phi),
                                           truth.y_mm + truth.radius_mm * std::sin(phi), 0);
      if (channel != kNoChannel) channels.insert(channel);
    }
    const EventRings found = find(Hits(channels.begin(), channels.end()));
    ASSERT_EQ(found.count, 1);
    EXPECT_TRUE(matches(found.rings[0], truth, 4.5, 3.5))
        << found.rings[0].x_mm - truth.x_mm << " " << found.rings[0].y_mm - truth.y_mm << " "
        << found.rings[0].radius_mm - truth.radius_mm;
    EXPECT_GE(found.rings[0].hits + 1u, channels.size());
    EXPECT_LT(found.rings[0].rms_mm, 7.0F);
  }
}

// Hits moved, mirrored or turned with the lattice give the moved ring. Another order of hits means other seeds, from which the fit may end a
// little elsewhere, or in a rare event at another ring.
TEST(Triplets, MovesWithTheLattice) {
  Generator generator(23);
  int compared = 0;
  int agree = 0;
  for (int k = 0; k < 1500; ++k) {
    std::set<std::uint16_t> light;
    generator.add_light({generator.uniform(-15, 15), generator.uniform(-15, 15), generator.uniform(90, 170)}, 16, light);
    const EventRings found = find(generator.shuffled(light));
    if (found.count != 1) continue;
    for (const auto& [sx, sy, di, dj] :
         std::array<std::array<int, 4>, 4>{{{-1, 1, 0, 0}, {1, -1, 1, 1}, {-1, -1, 0, 0}, {1, 1, 3, -1}}}) {
      Hits moved;
      for (const auto hit : light) {
        const Pm& pm = kPmMap[hit & kChannelMask];
        moved.push_back(channel_at(sx * pm.i + di, sy * pm.j + dj, 0));
      }
      if (std::count(moved.begin(), moved.end(), kNoChannel) != 0) continue;
      ++compared;
      const EventRings other = find(moved);
      const TrueRing expected{sx * double{found.rings[0].x_mm} + 9.0 * di,
                              sy * double{found.rings[0].y_mm} + 9.0 * std::sqrt(3.0) * dj, found.rings[0].radius_mm};
      agree += other.count == 1 && matches(other.rings[0], expected, 0.5, 0.5) ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 3000);
  EXPECT_GT(agree, compared * 97 / 100);
}

TEST(Triplets, DegenerateEventsHaveNoRing) {
  const auto expect_none = [](const Hits& hits, std::uint16_t mapped) {
    const EventRings rings = find(hits);
    expect_sound(rings);
    EXPECT_EQ(rings.count, 0);
    EXPECT_EQ(rings.mapped_hits, mapped);
  };
  expect_none({}, 0);
  expect_none({5}, 1);
  expect_none({5, 900}, 2);
  expect_none({5, 900, 300}, 3);
  expect_none({5, 5, 5, 5, 5}, 5);
  expect_none({5, 900, 5, 900, 900}, 5);
  expect_none({500, 1020, 2047, 488, 489}, 0);
  for (const auto& [di, dj] : std::array<std::array<int, 2>, 4>{{{2, 0}, {1, 1}, {1, -1}, {0, 2}}}) {
    Hits line;
    for (int k = -7; k <= 7; ++k) line.push_back(channel_at(1 + k * di, k * dj, 1));
    expect_none(line, 15);
  }
  Generator generator(24);
  for (const int count : {128, 129, 500}) {
    Hits many;
    while (many.size() < static_cast<std::size_t>(count)) many.push_back(static_cast<std::uint16_t>(generator.pick(488)));
    const EventRings rings = find(many);
    expect_sound(rings);
    EXPECT_EQ(rings.mapped_hits, 128);
    EXPECT_EQ(rings.truncated, count > 128 ? 1u : 0u);
  }
}

TEST(Triplets, AnyCutsGiveFiniteRings) {
  Generator generator(25);
  for (int k = 0; k < 1500; ++k) {
    TripletsCuts cuts;
    cuts.visit([&]<class T>(const char*, T& value, const config::Setting&) {
      constexpr std::array<double, 5> kFactors{0, 0.3, 1, 3, 1000};
      value = static_cast<T>(value * kFactors[static_cast<std::size_t>(generator.pick(3) == 0 ? generator.pick(5) : 2)]);
    });
    const Hits hits = generator.any();
    if (hits.size() < 60) expect_sound(find(hits, cuts));
  }
}

TEST(Triplets, QualityFloor) {
  Generator generator(26);
  std::array<int, 3> all{};
  std::array<int, 3> fakes{};
  constexpr int kEvents = 1500;
  for (int rings = 1; rings <= 2; ++rings) {
    for (int k = 0; k < kEvents; ++k) {
      std::vector<TrueRing> truth{generator.ring()};
      while (static_cast<int>(truth.size()) < rings) {
        const TrueRing next = generator.ring();
        if (std::hypot(next.x_mm - truth[0].x_mm, next.y_mm - truth[0].y_mm) > 60) truth.push_back(next);
      }
      std::set<std::uint16_t> light;
      for (const TrueRing& ring : truth) generator.add_light(ring, 14, light);
      generator.add_noise(1, light);
      const EventRings found = find(generator.shuffled(light));
      all[static_cast<std::size_t>(rings)] += std::all_of(truth.begin(), truth.end(),
                                                          [&](const TrueRing& r) { return finds(found, r); })
                                                  ? 1
                                                  : 0;
      for (std::uint32_t r = 0; r < found.count; ++r) {
        fakes[static_cast<std::size_t>(rings)] += std::none_of(truth.begin(), truth.end(),
                                                               [&](const TrueRing& t) { return matches(found.rings[r], t); })
                                                      ? 1
                                                      : 0;
      }
    }
  }
  EXPECT_GT(all[1], kEvents * 99 / 100);
  EXPECT_LT(fakes[1], kEvents * 15 / 1000);
  EXPECT_GT(all[2], kEvents * 95 / 100);
  EXPECT_LT(fakes[2], kEvents * 4 / 100);
}

// Two rings nearly on one another, 2 ns apart: only time tells them apart.
TEST(Triplets, TimeSeparatesRings) {
  Generator generator(27);
  TripletsCuts timed;
  timed.time_use = 1;
  int with = 0;
  int without = 0;
  for (int k = 0; k < 500; ++k) {
    const std::array<TrueRing, 2> truth{{{10, -20, 150, -8}, {15, -16, 146, 8}}};
    std::set<std::uint16_t> light;
    for (const TrueRing& ring : truth) generator.add_light(ring, 14, light);
    const Hits hits = generator.shuffled(light);
    const EventRings found = find(hits, timed);
    expect_sound(found);
    with += finds(found, truth[0]) && finds(found, truth[1]) && found.count == 2 ? 1 : 0;
    const EventRings ignored = find(hits);
    without += ignored.count == 2 && finds(ignored, truth[0]) && finds(ignored, truth[1]) ? 1 : 0;
    if (found.count != 2) continue;
    const double gap_ns = std::abs(found.rings[0].time_ns - found.rings[1].time_ns);
    EXPECT_NEAR(gap_ns, 16 * double{kHitTimeUnitNs}, 0.8);
  }
  EXPECT_GT(with, 400);
  EXPECT_GT(with, without + 50);
}

TEST(Triplets, RingsMaxIsKept) {
  Generator generator(28);
  for (std::uint32_t rings_max = 0; rings_max <= 5; ++rings_max) {
    TripletsCuts cuts;
    cuts.rings_max = rings_max;
    for (int k = 0; k < 50; ++k) {
      std::set<std::uint16_t> light;
      for (int r = 0; r < 4; ++r) generator.add_light(generator.ring(), 16, light);
      EXPECT_LE(find(generator.shuffled(light), cuts).count, std::min(rings_max, kMaxRings));
    }
  }
}

TEST(Triplets, CutsHaveNames) {
  TripletsCuts cuts;
  std::set<std::string> names;
  std::size_t bytes = 0;
  cuts.visit([&](const char* name, auto& value, const config::Setting&) {
    names.insert(name);
    bytes += sizeof value;
  });
  EXPECT_EQ(bytes, sizeof cuts);
  EXPECT_EQ(names.size() * 4, sizeof cuts);
}

// The vectors, on every instruction set that this machine has.
class TripletsVectors : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::GetChosenTarget().Update(GetParam()); }  // 0 leaves only the fallback without vectors
  void TearDown() override { hwy::GetChosenTarget().Update(hwy::SupportedTargets()); }
};

struct Sample {
  TripletsCuts cuts;
  std::vector<Hits> hits;
  std::vector<event::Event> events;
  std::vector<EventRings> scalar;
};

Sample make_sample(const TripletsCuts& cuts, std::size_t count, std::uint64_t seed) {
  Generator generator(seed);
  Sample sample{cuts, {}, {}, {}};
  for (std::size_t k = 0; k < count; ++k) sample.hits.push_back(generator.any());
  for (const Hits& hits : sample.hits) {
    sample.events.push_back({hits.data(), static_cast<std::uint32_t>(hits.size())});
    sample.scalar.push_back(find_triplets(sample.events.back(), kPmPoints.data(), cuts));
  }
  return sample;
}

// Made once for all instruction sets.
const std::vector<Sample>& samples() {
  static const std::vector<Sample> kSamples = [] {
    TripletsCuts timed;
    timed.time_use = 1;
    TripletsCuts all_seeds;
    all_seeds.seeds_max = 100;
    all_seeds.pair_distance_min_mm = 0;
    all_seeds.enough_share = 2;
    std::vector<Sample> list;
    list.push_back(make_sample({}, 20000, 29));
    list.push_back(make_sample(timed, 2000, 30));
    list.push_back(make_sample(all_seeds, 300, 31));
    return list;
  }();
  return kSamples;
}

TEST_P(TripletsVectors, SameBitsAsScalar) {
  if (GetParam() != 0) {
    EXPECT_STREQ(find_triplets_target(), hwy::TargetName(GetParam()));
  }
  std::size_t found = 0;
  for (const Sample& sample : samples()) {
    // The fallback runs the scalar code itself, slowly: a part of the events will do.
    const std::size_t count = GetParam() == 0 ? sample.events.size() / 8 : sample.events.size();
    std::vector<EventRings> rings(count + 1);
    rings[count].mapped_hits = 77;
    find_triplets({sample.events.data(), count}, rings, sample.cuts);
    EXPECT_EQ(rings[count].mapped_hits, 77);
    for (std::size_t k = 0; k < count; ++k) {
      ASSERT_TRUE(same_bits(rings[k], sample.scalar[k])) << find_triplets_target() << " event " << k;
      found += rings[k].count;
    }
  }
  EXPECT_GT(found, GetParam() == 0 ? 2500u : 20000u);
}

std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> list = hwy::SupportedAndGeneratedTargets();
  std::erase_if(list, [](std::int64_t target) { return target == HWY_SCALAR || target == HWY_EMU128; });
  if ((HWY_TARGETS & (HWY_SCALAR | HWY_EMU128)) != 0) list.push_back(0);
  return list;
}

INSTANTIATE_TEST_SUITE_P(AllTargets, TripletsVectors, ::testing::ValuesIn(targets()), [](const auto& test_info) {
  return std::string(test_info.param == 0 ? "Fallback" : hwy::TargetName(test_info.param));
});

}  // namespace
}  // namespace nanet::rich
