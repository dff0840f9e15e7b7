// SPDX-License-Identifier: Apache-2.0
// Samples of hydrophones: how many, and that pulses of beacons are where sound has had the time to come, over the borders of slices too.
#include "km3_emulate/sound.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tower_parts.hpp"

namespace nanet::km3_emulate {
namespace {

std::vector<double> samples_of(const std::vector<std::byte>& bytes) {
  std::vector<double> samples;
  for (std::size_t at = 0; at + 3 <= bytes.size(); at += 3) {
    const auto value = std::to_integer<std::uint32_t>(bytes[at]) << 24 | std::to_integer<std::uint32_t>(bytes[at + 1]) << 16 |
                       std::to_integer<std::uint32_t>(bytes[at + 2]) << 8;
    samples.push_back(static_cast<double>(static_cast<std::int32_t>(value)) / 256);
  }
  return samples;
}

TEST(TowerSound, ASliceHasItsSamplesAndTheSpreadOfTheNoise) {
  TowerConfig config;
  config.sound.beacons.clear();
  const SoundMaker maker(config);
  std::vector<std::byte> bytes;
  maker.unit(1'500'000'000'000'000'000, 7, {0, 0, 100}, bytes);
  const auto samples = samples_of(bytes);
  ASSERT_EQ(samples.size(), 38'400u);
  double squares = 0;
  for (const double one : samples) squares += one * one;
  EXPECT_NEAR(std::sqrt(squares / 38'400), 200, 4);
}

// The middle of the energy of a pulse is the middle of its window.
TEST(TowerSound, PulsesComeWhenSoundHasHadTheTime) {
  TowerConfig config;
  config.sound.noise_counts = 0;
  config.sound.beacons = {{.x_m = 300, .y_m = 400, .z_m = 100, .period_s = 0.7, .phase_s = 0.1}};
  const SoundMaker maker(config);
  std::vector<double> all;
  std::vector<std::byte> bytes;
  constexpr std::uint64_t kBegin = 1'000'000'000;  // of GPS time: slice 0 begins at 1 s
  for (std::uint64_t slice = 0; slice < 20; ++slice) {
    maker.unit(kBegin + slice * 200'000'000, slice, {0, 0, 100}, bytes);
    const auto samples = samples_of(bytes);
    all.insert(all.end(), samples.begin(), samples.end());
  }
  std::size_t found = 0;
  for (int number = 0; number < 8; ++number) {
    const double begins_s = 0.1 + 0.7 * number + 500.0 / 1500.0 - 1.0;  // since slice 0
    if (begins_s < 0 || begins_s > 3.9) continue;
    double energy = 0;
    double middle = 0;
    const auto first = static_cast<std::size_t>(std::max(0.0, begins_s * 192'000 - 50));
    for (std::size_t k = first; k < first + 1150 && k < all.size(); ++k) {
      energy += all[k] * all[k];
      middle += all[k] * all[k] * static_cast<double>(k) / 192'000;
    }
    ASSERT_GT(energy, 0);
    EXPECT_NEAR(middle / energy, begins_s + 0.0025, 3e-6);  // 5 mm of sound
    ++found;
  }
  EXPECT_GE(found, 5u);
  double outside = 0;
  for (std::size_t k = 0; k < 40'000; ++k) {
    const double t = static_cast<double>(k) / 192'000;
    const double phase = std::fmod(t + 1.0 - 0.1 - 500.0 / 1500.0 + 7.0, 0.7);
    if (phase > 0.006) outside += std::abs(all[k]);
  }
  EXPECT_EQ(outside, 0);
}

TEST(TowerSound, APulseFallsWithTheDistance) {
  TowerConfig config;
  config.sound.noise_counts = 0;
  config.sound.beacons = {{.x_m = 0, .y_m = 0, .z_m = 0, .period_s = 1, .phase_s = 0}};
  const SoundMaker maker(config);
  const auto top = [&](double distance_m) {
    std::vector<std::byte> bytes;
    maker.unit(0, 0, {distance_m, 0, 0}, bytes);
    double most = 0;
    for (const double one : samples_of(bytes)) most = std::max(most, std::abs(one));
    return most;
  };
  EXPECT_NEAR(top(100), 20'000, 500);
  EXPECT_NEAR(top(200), 10'000, 250);
}

}  // namespace
}  // namespace nanet::km3_emulate
