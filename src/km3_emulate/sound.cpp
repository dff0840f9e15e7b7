// SPDX-License-Identifier: Apache-2.0
#include "km3_emulate/sound.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "km3_emulate/purpose.hpp"
#include "km3_emulate/random.hpp"

namespace nanet::km3_emulate {
namespace {

constexpr std::size_t kNoiseSamples = 1u << 17;
constexpr std::int32_t kSampleMost = (1 << 23) - 1;

}  // namespace

SoundMaker::SoundMaker(const TowerConfig& config)
    : config_(config.sound),
      seed_(config.seed),
      samples_(static_cast<std::uint32_t>(config.slice_ns() * kSamplesASecond / 1'000'000'000)),
      noise_(kNoiseSamples) {
  Random random({seed_, purpose::sound_table});
  for (std::int32_t& one : noise_) one = static_cast<std::int32_t>(std::lround(config_.noise_counts * random.normal()));
}

void SoundMaker::unit(std::uint64_t begin_ns, std::uint64_t which, const km3::Vector& place_m, std::vector<std::byte>& bytes) const {
  std::vector<std::int32_t> samples(samples_);
  std::size_t at = Random({seed_, purpose::sound, which}).bits() % noise_.size();
  for (std::int32_t& sample : samples) {
    sample = noise_[at];
    if (++at == noise_.size()) at = 0;
  }
  for (const BeaconConfig& beacon : config_.beacons) add_pulses(begin_ns, beacon, place_m, samples);
  bytes.resize(samples.size() * 3);
  std::byte* to = bytes.data();
  for (const std::int32_t sample : samples) {
    const auto value = static_cast<std::uint32_t>(std::clamp(sample, -kSampleMost - 1, kSampleMost));
    *to++ = static_cast<std::byte>(value >> 16);
    *to++ = static_cast<std::byte>(value >> 8);
    *to++ = static_cast<std::byte>(value);
  }
}

void SoundMaker::add_pulses(std::uint64_t begin_ns, const BeaconConfig& beacon, const km3::Vector& place_m,
                            std::vector<std::int32_t>& samples) const {
  const double dx = place_m.x - beacon.x_m;
  const double dy = place_m.y - beacon.y_m;
  const double dz = place_m.z - beacon.z_m;
  const double distance_m = std::max(1.0, std::sqrt(dx * dx + dy * dy + dz * dz));
  const double length_s = config_.pulse_ms * 1e-3;
  const double slice_s = static_cast<double>(samples.size()) / kSamplesASecond;
  // Time of the first sample, less the phase and the way, modulo the period: in whole ns, as far as they go.
  const auto period_ns = static_cast<std::uint64_t>(std::llround(beacon.period_s * 1e9));
  const auto phase_ns = static_cast<std::uint64_t>(std::llround(beacon.phase_s * 1e9)) % period_ns;
  const std::uint64_t since_ns = (begin_ns + period_ns - phase_ns) % period_ns;
  double pulse_s = distance_m / config_.speed_m_s - static_cast<double>(since_ns) * 1e-9;  // when it begins, from the first sample on
  pulse_s -= std::ceil((pulse_s + length_s) / beacon.period_s) * beacon.period_s;
  for (; pulse_s < slice_s; pulse_s += beacon.period_s) {
    const double first = std::ceil(pulse_s * kSamplesASecond);
    const double last = std::min((pulse_s + length_s) * kSamplesASecond, static_cast<double>(samples.size()) - 1.0);
    for (double k = std::max(0.0, first); k <= last; k += 1.0) {
      const double t = k / kSamplesASecond - pulse_s;
      const double window = 0.5 * (1.0 - std::cos(2.0 * std::numbers::pi * t / length_s));
      const double turns = (config_.pulse_from_hz + 0.5 * (config_.pulse_to_hz - config_.pulse_from_hz) * t / length_s) * t;
      const double height = config_.pulse_counts / distance_m * window * std::sin(2.0 * std::numbers::pi * turns);
      samples[static_cast<std::size_t>(k)] += static_cast<std::int32_t>(std::clamp(height, -1e9, 1e9));
    }
  }
}

}  // namespace nanet::km3_emulate
