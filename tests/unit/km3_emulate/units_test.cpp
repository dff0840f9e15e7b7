// SPDX-License-Identifier: Apache-2.0
// Bytes of units: rates, coincidences, bursts, charges, samples, settings, and that the same seed gives the same bytes.
#include "km3_emulate/units.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "nanet/setup_error.hpp"
#include "tower_parts.hpp"

namespace nanet::km3_emulate {
namespace {

TowerConfig quiet() {
  TowerConfig config;
  config.muons.rate_hz = 0;
  config.noise.coincidences_hz = {};
  return config;
}

// Within six standard deviations of a Poisson number.
void expect_poisson(double counted, double expected) { EXPECT_NEAR(counted, expected, 6 * std::sqrt(expected) + 1e-9); }

TEST(TowerUnits, SinglesHaveTheirRateOnEachPm) {
  const TowerConfig config = quiet();
  UnitMaker maker(config, standard_tower());
  std::array<double, kPms> counts{};
  for (std::uint64_t slice = 0; slice < 5; ++slice) {
    const auto hits = read_hits(unit_of(maker, slice, 3, Kind::hits), false);
    EXPECT_TRUE(std::ranges::is_sorted(hits, {}, &RawHit::time_ns));
    for (const RawHit& hit : hits) {
      ASSERT_LT(hit.pm, kPms);
      EXPECT_GE(hit.time_ns, 0);
      EXPECT_LT(hit.time_ns, 200'000'000);
      EXPECT_GE(hit.charge, 3u);  // over the threshold
      ++counts[hit.pm];
    }
  }
  for (const double count : counts) expect_poisson(count, 55'000);
}

// Gaps of a Poisson process: as many below the median as above, and a share exp(-3) beyond three times the mean.
TEST(TowerUnits, SinglesArePoisson) {
  const TowerConfig config = quiet();
  UnitMaker maker(config, standard_tower());
  const auto hits = read_hits(unit_of(maker, 0, 0, Kind::hits), false);
  const double mean_ns = 1e9 / 330e3;
  double short_ones = 0;
  double long_ones = 0;
  for (std::size_t k = 1; k < hits.size(); ++k) {
    const double gap_ns = hits[k].time_ns - hits[k - 1].time_ns;
    short_ones += gap_ns < mean_ns * std::log(2.0) ? 1 : 0;
    long_ones += gap_ns > 3 * mean_ns ? 1 : 0;
  }
  const auto gaps = static_cast<double>(hits.size() - 1);
  expect_poisson(short_ones, gaps / 2);
  expect_poisson(long_ones, gaps * std::exp(-3.0));
}

// Pairs on the PMs of a place within 20 ns, of them those of chance (2 r^2 T) taken off.
double pairs_hz(UnitMaker& maker, std::uint32_t slices, double slice_s) {
  double pairs = 0;
  for (std::uint32_t slice = 0; slice < slices; ++slice) {
    const auto hits = read_hits(unit_of(maker, slice, 0, Kind::hits), false);
    for (std::size_t k = 0; k < hits.size(); ++k) {
      for (std::size_t m = k + 1; m < hits.size() && hits[m].time_ns - hits[k].time_ns <= 20; ++m) {
        pairs += hits[k].pm / 2 == hits[m].pm / 2 && hits[k].pm != hits[m].pm ? 1 : 0;
      }
    }
  }
  return pairs / (slices * slice_s) / 3;
}

TEST(TowerUnits, PairsOfAPlaceHaveTheRateOfChanceAndThatOfPotassium) {
  TowerConfig config = quiet();
  UnitMaker by_chance(config, standard_tower());
  const double chance_hz = 2 * 55e3 * 55e3 * 20.5e-9;  // whole ns: a difference of at most 20 is one of less than 20.5 on the average
  EXPECT_NEAR(pairs_hz(by_chance, 20, 0.2), chance_hz, 6 * std::sqrt(chance_hz / 12));
  config.noise.coincidences_hz[0] = 300;  // so that few slices tell
  config.noise.coincidence_sigma_ns = 3;
  UnitMaker with_pairs(config, standard_tower());
  EXPECT_NEAR(pairs_hz(with_pairs, 20, 0.2), chance_hz + 300, 6 * std::sqrt((chance_hz + 300) / 12));
}

TEST(TowerUnits, CoincidencesHaveTheMultiplicityThatIsAsked) {
  for (const std::uint32_t of : {2u, 3u, 4u, 6u}) {
    TowerConfig config = quiet();
    config.noise.singles_hz = 0;
    config.noise.coincidences_hz[of - 2] = 100;
    config.noise.coincidence_sigma_ns = 0;
    UnitMaker maker(config, standard_tower());
    double decays = 0;
    for (std::uint64_t slice = 0; slice < 20; ++slice) {
      const auto hits = read_hits(unit_of(maker, slice, 2, Kind::hits), false);
      ASSERT_EQ(hits.size() % of, 0u);
      for (std::size_t k = 0; k < hits.size(); k += of) {
        ++decays;
        std::uint32_t pms = 0;
        for (std::size_t m = k; m < k + of; ++m) {
          EXPECT_EQ(hits[m].time_ns, hits[k].time_ns);
          pms |= 1u << hits[m].pm;
        }
        EXPECT_EQ(std::popcount(pms), static_cast<int>(of));
      }
    }
    expect_poisson(decays, of == 2 ? 3 * 400 : 400);
  }
}

TEST(TowerUnits, ChargesAreOnePhotoElectronAndATail) {
  TowerConfig config = quiet();
  config.noise.tail_share = 0.1;
  config.noise.tail_pe = 3;
  UnitMaker maker(config, standard_tower());
  double sum = 0;
  double large = 0;
  const auto hits = read_hits(unit_of(maker, 0, 0, Kind::hits), false);
  for (const RawHit& hit : hits) {
    sum += 0.1 * hit.charge;
    large += hit.charge > 25 ? 1 : 0;
  }
  const auto count = static_cast<double>(hits.size());
  EXPECT_NEAR(sum / count, 1.0 + 0.1 * 3, 0.05);
  EXPECT_NEAR(large / count, 0.1 * std::exp(-1.5 / 3), 0.015);  // 1 and more than 1.5 of the tail
}

TEST(TowerUnits, SameSeedSameBytesWhateverWasAskedBefore) {
  TowerConfig config;
  config.muons.rate_hz = 100;
  UnitMaker one(config, standard_tower());
  UnitMaker other(config, standard_tower());
  for (const std::uint64_t slice : {0u, 7u, 3u}) unit_of(other, slice, 5, Kind::hits);
  const auto bytes = unit_of(one, 4, 5, Kind::hits);
  EXPECT_EQ(bytes, unit_of(other, 4, 5, Kind::hits));
  EXPECT_NE(bytes, unit_of(one, 5, 5, Kind::hits));
  EXPECT_NE(bytes, unit_of(one, 4, 6, Kind::hits));
  config.seed = 2;
  UnitMaker seeded(config, standard_tower());
  EXPECT_NE(bytes, unit_of(seeded, 4, 5, Kind::hits));
}

TEST(TowerUnits, SampledHitsAreTheShortOnesWithAPulse) {
  TowerConfig config = quiet();
  config.samples = 106;
  UnitMaker maker(config, standard_tower());
  const auto unit = unit_of(maker, 1, 2, Kind::sampled);
  EXPECT_NEAR(static_cast<double>(unit.size()) * 8 / 0.2, 301e6, 3e6);  // 300 Mb/s a floor
  const auto plain = read_hits(unit_of(maker, 1, 2, Kind::hits), false);
  const auto sampled = read_hits(unit, true);
  ASSERT_EQ(plain.size(), sampled.size());
  for (std::size_t k = 0; k < plain.size(); ++k) {
    ASSERT_EQ(plain[k].pm, sampled[k].pm);
    ASSERT_EQ(plain[k].time_ns, sampled[k].time_ns);
    ASSERT_EQ(plain[k].charge, sampled[k].charge);
    ASSERT_EQ(sampled[k].samples.size(), 106u);
  }
  const auto top = std::ranges::max_element(sampled[0].samples);
  EXPECT_LT(top - sampled[0].samples.begin(), 4);  // 10 ns after the beginning, in steps of 5
  EXPECT_NEAR(std::to_integer<int>(*top), 8 + 1.2 * sampled[0].charge, 3.0);
}

TEST(TowerUnits, ALoudTimeAndBurstsMultiplySingles) {
  TowerConfig config = quiet();
  config.loud = {{.floor = 2, .slice = 3, .slices = 2, .factor = 4}};
  UnitMaker maker(config, standard_tower());
  const auto count = [&](std::uint64_t slice, std::uint32_t floor) {
    return static_cast<double>(unit_of(maker, slice, floor, Kind::hits).size()) / 6;
  };
  expect_poisson(count(2, 1), 66e3);
  expect_poisson(count(3, 1), 4 * 66e3);
  expect_poisson(count(4, 1), 4 * 66e3);
  expect_poisson(count(5, 1), 66e3);
  expect_poisson(count(3, 0), 66e3);

  config.loud.clear();
  config.noise.bursts_hz = 0.5;
  config.noise.burst_s = 0.3;
  config.noise.singles_hz = 5000;
  UnitMaker bursting(config, standard_tower());
  double quiet_slices = 0;
  double hits = 0;
  for (std::uint64_t slice = 0; slice < 500; ++slice) {
    const auto one = static_cast<double>(unit_of(bursting, slice, 0, Kind::hits).size()) / 6;
    quiet_slices += std::abs(one - 6000) < 6 * std::sqrt(6000) ? 1 : 0;
    hits += one;
  }
  // A burst is on for 0.5 x 0.29 s of each second (its length is cut), and two at a time multiply: exp(0.147 x 3).
  EXPECT_NEAR(hits / 500 / 6000, std::exp(0.5 * 0.3 * (1 - std::exp(-4.0)) * 3), 0.35);
  EXPECT_GT(quiet_slices, 250);
  EXPECT_LT(quiet_slices, 450);
}

TEST(TowerUnits, SlowControlTakesHitsAway) {
  const TowerConfig config = quiet();
  UnitMaker maker(config, standard_tower());
  FloorSettings settings = kFloorSettings;
  settings.voltage[2] = 0;
  settings.threshold[4] = 120;
  settings.hydrophone_on[1] = 0;
  const auto before = read_hits(unit_of(maker, 0, 0, Kind::hits), false);
  const auto after = read_hits(unit_of(maker, 0, 0, Kind::hits, settings), false);
  const auto expected = std::ranges::count_if(before,
                                              [](const RawHit& hit) { return hit.pm != 2 && (hit.pm != 4 || hit.charge >= 12); });
  EXPECT_EQ(static_cast<std::ptrdiff_t>(after.size()), expected);
  EXPECT_LT(after.size(), before.size());
  EXPECT_FALSE(unit_of(maker, 0, 0, Kind::hydrophone_0, settings).empty());
  EXPECT_TRUE(unit_of(maker, 0, 0, Kind::hydrophone_1, settings).empty());
}

TEST(TowerUnits, TimesAreRawOffsetsAreTakenOffAndOldHitsAreOld) {
  TowerConfig config = quiet();
  const km3::Detector plain = standard_tower();
  std::vector<km3::Pm> pms = plain.pms();
  for (km3::Pm& pm : pms) pm.time_offset_ns = pm.number == 1 ? 1000 : 0;
  UnitMaker maker(config, plain);
  UnitMaker shifted(config, km3::Detector(plain.head(), plain.floors(), pms));
  const auto before = read_hits(unit_of(maker, 0, 0, Kind::hits), false);
  const auto after = read_hits(unit_of(shifted, 0, 0, Kind::hits), false);
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t k = 0; k < before.size(); ++k) ASSERT_EQ(after[k].time_ns, before[k].time_ns - (before[k].pm == 1 ? 1000 : 0));

  config.faults.old_hits = 0.01;
  UnitMaker old(config, standard_tower());
  const auto hits = read_hits(unit_of(old, 0, 0, Kind::hits), false);
  expect_poisson(static_cast<double>(std::ranges::count_if(hits, [](const RawHit& hit) { return hit.time_ns < 0; })), 660);
}

TEST(TowerUnits, ATowerThatTheDetectorHasNotIsRefused) {
  TowerConfig config;
  config.tower = 2;
  EXPECT_THROW(UnitMaker(config, standard_tower()), SetupError);
}

}  // namespace
}  // namespace nanet::km3_emulate
