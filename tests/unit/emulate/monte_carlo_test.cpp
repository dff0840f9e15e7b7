// SPDX-License-Identifier: Apache-2.0
#include "emulate/monte_carlo.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nanet/rich/decision.hpp"
#include "nanet/setup_error.hpp"
#include "rich/math_fit.hpp"

namespace nanet::emulate {
namespace {

using rich::Particle;

MonteCarloConfig flat_config() {
  MonteCarloConfig config;
  config.flat_radius = true;
  config.mean_hits = 12;
  config.hits_max = kMaxEventHits;
  return config;
}

rich::Ring fit(const McEvent& event) { return rich::fit_ring({event.hits.data(), event.hit_count}); }

int time_code(std::uint16_t hit) {
  const int code = hit >> 11;
  return code < 16 ? code : code - 32;
}

TEST(MonteCarlo, SameSeedSameEvents) {
  MonteCarloConfig config;
  config.noise_hits = 1.2;
  MonteCarlo a(config);
  MonteCarlo b(config);
  config.seed = 2;
  MonteCarlo c(config);
  int differ = 0;
  for (int k = 0; k < 1000; ++k) {
    const McEvent x = a.next();
    const McEvent y = b.next();
    const McEvent z = c.next();
    ASSERT_EQ(x.hit_count, y.hit_count);
    ASSERT_TRUE(std::equal(x.hits.begin(), x.hits.begin() + x.hit_count, y.hits.begin()));
    ASSERT_EQ(x.truth.rings[0].radius_mm, y.truth.rings[0].radius_mm);
    differ += x.truth.rings[0].x_mm != z.truth.rings[0].x_mm ? 1 : 0;
  }
  EXPECT_EQ(differ, 1000);
}

TEST(MonteCarlo, HitsAreDifferentPmsOfTheEventsDisk) {
  MonteCarloConfig config;
  config.noise_hits = 2.0;
  config.mean_hits = 20.0;
  MonteCarlo monte_carlo(config);
  std::set<int> boards;
  for (int k = 0; k < 20000; ++k) {
    const McEvent event = monte_carlo.next();
    ASSERT_LE(event.hit_count, config.hits_max);
    ASSERT_EQ(event.hit_count, static_cast<std::uint32_t>(event.truth.ring_hits + event.truth.noise_hits - event.truth.cut_hits));
    int last = -1;
    for (std::uint32_t h = 0; h < event.hit_count; ++h) {
      const int channel = event.hits[h] & rich::kChannelMask;
      ASSERT_GT(channel, last);  // in order, so different
      last = channel;
      ASSERT_TRUE(rich::kPmMap[static_cast<std::size_t>(channel)].mapped);
      ASSERT_EQ(rich::kPmMap[static_cast<std::size_t>(channel)].disk, event.truth.rings[0].disk);
      boards.insert(channel / 512);
    }
  }
  EXPECT_EQ(boards.size(), 4u);
}

TEST(MonteCarlo, RadiiFollowTheMomentum) {
  struct Row {
    double momentum_gev;
    Particle particle;
    double radius_mm;
  };
  for (const Row& row : {Row{15, Particle::electron, 189.6}, Row{15, Particle::muon, 146.9}, Row{15, Particle::pion, 104.3},
                         Row{20, Particle::muon, 167.0}, Row{20, Particle::pion, 147.8}, Row{25, Particle::muon, 175.5},
                         Row{25, Particle::pion, 164.1}, Row{30, Particle::muon, 179.9}, Row{30, Particle::pion, 172.3},
                         Row{35, Particle::muon, 182.5}, Row{35, Particle::pion, 177.1}, Row{50, Particle::kaon, 87.9},
                         Row{60, Particle::kaon, 127.9}, Row{75, Particle::kaon, 153.0}, Row{35, Particle::kaon, 0.0}}) {
    MonteCarloConfig config;
    config.momentum_min_gev = config.momentum_max_gev = row.momentum_gev;
    const auto share = [&](Particle particle) { return row.particle == particle ? 1.0 : 0.0; };
    config.fractions = {share(Particle::electron), share(Particle::muon), share(Particle::pion), share(Particle::kaon)};
    MonteCarlo monte_carlo(config);
    for (int k = 0; k < 20; ++k) {
      const McEvent event = monte_carlo.next();
      EXPECT_EQ(event.truth.rings[0].particle, row.particle);
      EXPECT_NEAR(event.truth.rings[0].radius_mm, row.radius_mm, 0.1);
      if (row.radius_mm == 0.0) {
        EXPECT_EQ(event.hit_count, 0u);
      }
    }
  }
}

TEST(MonteCarlo, SharesMomentaCentresAndDisks) {
  MonteCarloConfig config;
  config.fractions = {.e = 1, .mu = 2, .pi = 3, .K = 4};
  config.jura_share = 0.3;
  MonteCarlo monte_carlo(config);
  constexpr int kEvents = 40000;
  std::map<Particle, int> particles;
  double sum_p = 0, sum_x = 0, sum_xx = 0, sum_y = 0, sum_yy = 0, sum_xy = 0;
  int jura = 0;
  for (int k = 0; k < kEvents; ++k) {
    const McTruth truth = monte_carlo.next().truth;
    ++particles[truth.rings[0].particle];
    EXPECT_TRUE(truth.rings[0].momentum_gev >= 15.0F && truth.rings[0].momentum_gev <= 35.0F);
    sum_p += truth.rings[0].momentum_gev;
    sum_x += truth.rings[0].x_mm;
    sum_y += truth.rings[0].y_mm;
    sum_xx += truth.rings[0].x_mm * truth.rings[0].x_mm;
    sum_yy += truth.rings[0].y_mm * truth.rings[0].y_mm;
    sum_xy += truth.rings[0].x_mm * truth.rings[0].y_mm;
    jura += truth.rings[0].disk == 0 ? 1 : 0;
  }
  // Bands of about four standard deviations.
  EXPECT_NEAR(particles[Particle::electron], 0.1 * kEvents, 250);
  EXPECT_NEAR(particles[Particle::muon], 0.2 * kEvents, 330);
  EXPECT_NEAR(particles[Particle::pion], 0.3 * kEvents, 380);
  EXPECT_NEAR(particles[Particle::kaon], 0.4 * kEvents, 400);
  EXPECT_NEAR(jura, 0.3 * kEvents, 380);
  EXPECT_NEAR(sum_p / kEvents, 25.0, 0.12);
  EXPECT_NEAR(sum_x / kEvents, 0.0, 0.8);
  EXPECT_NEAR(sum_y / kEvents, 0.0, 0.8);
  EXPECT_NEAR(std::sqrt(sum_xx / kEvents), 40.0, 0.6);
  EXPECT_NEAR(std::sqrt(sum_yy / kEvents), 40.0, 0.6);
  EXPECT_NEAR(sum_xy / kEvents, 0.0, 32.0);
}

TEST(MonteCarlo, MeanHitsOfElectronsAndItsScaling) {
  MonteCarloConfig config;
  config.mean_hits = 12;
  config.fractions = {.e = 1, .mu = 0, .pi = 0};
  config.centre_sigma_mm = 10;  // all light on the disk
  config.hits_max = kMaxEventHits;
  MonteCarlo monte_carlo(config);
  double sum = 0;
  for (int k = 0; k < 40000; ++k) sum += monte_carlo.next().hit_count;
  EXPECT_NEAR(sum / 40000, 12.0, 0.08);
  // (sin 146.95 mm / f)^2 / (sin 189.65 mm / f)^2 = 0.6004
  EXPECT_NEAR(monte_carlo.mean_photons(146.95) / monte_carlo.mean_photons(189.65), 0.6004, 2e-4);
  EXPECT_EQ(monte_carlo.mean_photons(0.0), 0.0);
}

TEST(MonteCarlo, FlatModeHasTheSameMeanAtEveryRadius) {
  for (const double mean_hits : {12.0, 20.0}) {
    MonteCarloConfig config = flat_config();
    config.mean_hits = mean_hits;
    config.centre_sigma_mm = 10;
    MonteCarlo monte_carlo(config);
    std::array<double, 11> sum{};
    std::array<double, 11> count{};
    for (int k = 0; k < 110000; ++k) {
      const McEvent event = monte_carlo.next();
      EXPECT_EQ(event.truth.rings[0].particle, Particle::none);
      const auto bin = static_cast<std::size_t>((event.truth.rings[0].radius_mm - 80.0F) / 10.0F);
      ASSERT_LT(bin, sum.size());
      sum[bin] += event.hit_count;
      ++count[bin];
    }
    for (std::size_t bin = 0; bin < sum.size(); ++bin) {
      EXPECT_NEAR(count[bin], 10000, 400);
      EXPECT_NEAR(sum[bin] / count[bin], mean_hits, 0.15) << "radius bin " << bin;
    }
    if (mean_hits == 12.0) {
      EXPECT_NEAR(monte_carlo.mean_photons(135), 13.5, 0.4);
    }
  }
}

TEST(MonteCarlo, Noise) {
  MonteCarloConfig config = flat_config();
  config.noise_hits = 5.0;
  MonteCarlo monte_carlo(config);
  double noise = 0;
  for (int k = 0; k < 20000; ++k) noise += monte_carlo.next().truth.noise_hits;
  EXPECT_NEAR(noise / 20000, 5.0 * (1 - 12.0 / 976) * (1 - 2.5 / 976), 0.07);

  // Kaons below threshold: noise alone, uniform on the PMs and in time.
  config = {};
  config.fractions = {.e = 0, .mu = 0, .pi = 0, .K = 1};
  config.noise_hits = 10;
  MonteCarlo dark(config);
  std::map<int, int> boards;
  std::map<int, int> times;
  std::set<int> channels;
  double hits = 0;
  for (int k = 0; k < 10000; ++k) {
    const McEvent event = dark.next();
    EXPECT_EQ(event.truth.ring_hits, 0);
    for (std::uint32_t h = 0; h < event.hit_count; ++h, ++hits) {
      ++boards[(event.hits[h] & rich::kChannelMask) / 512];
      ++times[time_code(event.hits[h])];
      channels.insert(event.hits[h] & rich::kChannelMask);
    }
  }
  EXPECT_NEAR(hits / 10000, 10.0, 0.15);
  EXPECT_EQ(channels.size(), 1952u);
  for (const auto& [board, count] : boards) EXPECT_NEAR(count, hits / 4, hits * 0.02) << board;
  EXPECT_EQ(times.size(), 32u);
  for (const auto& [time, count] : times) EXPECT_NEAR(count, hits / 32, hits * 0.003) << time;
}

TEST(MonteCarlo, HitTimes) {
  MonteCarloConfig config = flat_config();
  config.mean_hits = 2;  // hardly a PM with two photons, of which the earlier counts
  MonteCarlo monte_carlo(config);
  double n = 0, sum = 0, square = 0;
  for (int k = 0; k < 40000; ++k) {
    const McEvent event = monte_carlo.next();
    for (std::uint32_t h = 0; h < event.hit_count; ++h) {
      const double time_ns = time_code(event.hits[h]) * kHitTimeUnitNs;
      ++n;
      sum += time_ns;
      square += time_ns * time_ns;
    }
  }
  EXPECT_NEAR(sum / n, 0.0, 0.01);
  // A step of 0.195 ns adds 0.056 ns in quadrature.
  EXPECT_NEAR(std::sqrt(square / n), std::hypot(0.28, kHitTimeUnitNs / std::sqrt(12.0)), 0.006);
  config.hit_time_sigma_ns = 2.0;
  MonteCarlo wide(config);
  std::set<int> codes;
  for (int k = 0; k < 20000; ++k) {
    const McEvent event = wide.next();
    for (std::uint32_t h = 0; h < event.hit_count; ++h) codes.insert(time_code(event.hits[h]));
  }
  EXPECT_EQ(*codes.begin(), -16);
  EXPECT_EQ(*codes.rbegin(), 15);
}

TEST(MonteCarlo, HitsMaxKeepsARandomChoice) {
  MonteCarloConfig config = flat_config();
  config.mean_hits = 30;
  config.flat_radius_min_mm = 150;
  config.noise_hits = 10;
  config.hits_max = 8;
  config.jura_share = 1;
  MonteCarlo monte_carlo(config);
  double upper = 0, hits = 0;
  for (int k = 0; k < 20000; ++k) {
    const McEvent event = monte_carlo.next();
    ASSERT_LE(event.hit_count, 8u);
    EXPECT_EQ(event.truth.cut_hits, event.truth.ring_hits + event.truth.noise_hits - static_cast<int>(event.hit_count));
    for (std::uint32_t h = 0; h < event.hit_count; ++h, ++hits) upper += (event.hits[h] & rich::kChannelMask) < 512 ? 1 : 0;
  }
  EXPECT_NEAR(upper / hits, 0.5, 0.03);  // not the lowest channels
}

// No noise, mean of 12 hits, rings with at least 4 hits on the disk: the radius' rms is about 1.8 mm and it has no bias.
TEST(MonteCarlo, HotChannelsFireAndDeadOnesDoNot) {
  MonteCarloConfig config = flat_config();
  config.noise_hits = 2.0;
  config.jura_share = 1.0;
  MonteCarloConfig broken = config;
  broken.hot_channels = {100, 1700};
  broken.dead_channels = {240, 250};
  MonteCarlo source(broken);
  std::uint32_t late = 0;
  for (int e = 0; e < 3000; ++e) {
    const McEvent event = source.next();
    std::set<std::uint16_t> channels;
    std::uint32_t light = 0;
    for (std::uint32_t k = 0; k < event.hit_count; ++k) {
      channels.insert(event.hits[k] & rich::kChannelMask);
      light += event.owners[k] != 0 ? 1 : 0;
      late += (event.hits[k] & rich::kChannelMask) == 100 && event.owners[k] == 0 && time_code(event.hits[k]) > 5 ? 1 : 0;
    }
    EXPECT_EQ(channels.size(), event.hit_count);
    EXPECT_EQ(channels.count(100) + channels.count(1700), 2u);
    EXPECT_EQ(channels.count(240) + channels.count(250), 0u);
    EXPECT_EQ(light, event.truth.ring_hits);
    EXPECT_EQ(event.hit_count, event.truth.ring_hits + event.truth.noise_hits);
  }
  EXPECT_NEAR(late, 3000 * 10 / 32, 150);  // at any time
  broken.hot_share = 0.25;
  MonteCarlo seldom(broken);
  std::uint32_t fired = 0;
  for (int e = 0; e < 4000; ++e) {
    const McEvent event = seldom.next();
    for (std::uint32_t k = 0; k < event.hit_count; ++k) fired += (event.hits[k] & rich::kChannelMask) == 1700 ? 1 : 0;
  }
  EXPECT_NEAR(fired, 1000, 120);
  broken.dead_channels = {490};
  EXPECT_THROW(MonteCarlo{broken}, SetupError);
}

TEST(MonteCarlo, FitFindsTheTrueRing) {
  MonteCarlo monte_carlo(flat_config());
  const rich::RingCuts cuts;
  std::vector<double> errors_mm;
  double bias_x_mm = 0;
  for (int k = 0; k < 100000; ++k) {
    const McEvent event = monte_carlo.next();
    const rich::Ring ring = fit(event);
    if (!rich::is_good_ring(ring, cuts)) continue;
    const double error_mm = ring.radius_mm - event.truth.rings[0].radius_mm;
    if (std::abs(error_mm) > 15 || std::hypot(ring.x_mm - event.truth.rings[0].x_mm, ring.y_mm - event.truth.rings[0].y_mm) > 20)
      continue;
    errors_mm.push_back(error_mm);
    bias_x_mm += ring.x_mm - event.truth.rings[0].x_mm;
  }
  const auto n = static_cast<double>(errors_mm.size());
  double sum = 0, square = 0;
  for (const double error : errors_mm) sum += error, square += error * error;
  EXPECT_GT(n, 98500);
  EXPECT_LT(std::abs(sum / n), 0.2);
  EXPECT_LT(std::abs(bias_x_mm / n), 0.2);
  EXPECT_GT(std::sqrt(square / n), 1.5);
  EXPECT_LT(std::sqrt(square / n), 2.0);
  RecordProperty("radius_rms_um", static_cast<int>(1000 * std::sqrt(square / n)));
}

TEST(MonteCarlo, RefusesNonsense) {
  const auto expect_refused = [](auto change, const std::string& name) {
    MonteCarloConfig config;
    change(config);
    try {
      MonteCarlo monte_carlo(config);
      ADD_FAILURE() << name << " was accepted";
    } catch (const SetupError& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  };
  expect_refused([](MonteCarloConfig& c) { c.mean_hits = 0.5; }, "mean_hits");
  expect_refused([](MonteCarloConfig& c) { c.mean_hits = std::nan(""); }, "mean_hits");
  expect_refused([](MonteCarloConfig& c) { c.momentum_max_gev = 10; }, "momentum_max_gev");
  expect_refused([](MonteCarloConfig& c) { c.fractions.mu = -1; }, "fractions.mu");
  expect_refused([](MonteCarloConfig& c) { c.fractions = {0, 0, 0, 0}; }, "all fractions are 0");
  expect_refused([](MonteCarloConfig& c) { c.ring_count_shares = {}; }, "ring_count_shares");
  expect_refused([](MonteCarloConfig& c) { c.centre_sigma_mm = -1; }, "centre_sigma_mm");
  expect_refused([](MonteCarloConfig& c) { c.smear_mm = 21; }, "smear_mm");
  expect_refused([](MonteCarloConfig& c) { c.noise_hits = 41; }, "noise_hits");
  expect_refused([](MonteCarloConfig& c) { c.hit_time_sigma_ns = 3; }, "hit_time_sigma_ns");
  expect_refused([](MonteCarloConfig& c) { c.jura_share = 1.1; }, "jura_share");
  expect_refused([](MonteCarloConfig& c) { c.hits_max = 0; }, "hits_max");
  expect_refused([](MonteCarloConfig& c) { c.hits_max = 129; }, "hits_max");
  expect_refused([](MonteCarloConfig& c) { c.flat_radius_min_mm = 200; }, "flat_radius_max_mm");
  expect_refused(
      [](MonteCarloConfig& c) {
        c.flat_radius = true;
        c.flat_radius_min_mm = 20;
        c.mean_hits = 30;
      },
      "mean_hits");
}

}  // namespace
}  // namespace nanet::emulate
