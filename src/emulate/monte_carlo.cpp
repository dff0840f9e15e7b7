// SPDX-License-Identifier: Apache-2.0
#include "emulate/monte_carlo.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <sstream>
#include <string>

#include "nanet/config/read.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::emulate {
namespace {

// For rings of one radius near the middle of a disk, where no light is lost: the share of the light that each PM gets, for several places
// of the centre relative to the grid, as one flat list (only the shares matter, and each place counts alike).
constexpr int kPlaces = 16;
std::vector<double> light_shares(double radius_mm, double smear_mm) {
  constexpr int kAngles = 720;
  constexpr std::array<double, 3> kOffsets{-1.7320508075688772, 0.0, 1.7320508075688772};  // three-point Gauss-Hermite rule
  constexpr std::array<double, 3> kWeights{1.0 / 6, 2.0 / 3, 1.0 / 6};
  std::vector<double> shares;
  for (int place = 0; place < kPlaces; ++place) {
    const double x_mm = rich::kPmPitchMm * place / kPlaces;
    const double y_mm = 2 * rich::kUnitYMm * ((place * 7) % kPlaces) / kPlaces;
    std::array<double, rich::kChannelCount> by_channel{};
    for (int angle = 0; angle < kAngles; ++angle) {
      const double phi = 2 * std::numbers::pi * (angle + 0.5) / kAngles;
      for (std::size_t k = 0; k < kOffsets.size(); ++k) {
        const double r_mm = radius_mm + kOffsets[k] * smear_mm;
        const std::uint16_t channel = rich::nearest_channel(x_mm + r_mm * std::cos(phi), y_mm + r_mm * std::sin(phi), 0);
        if (channel != rich::kNoChannel) by_channel[channel] += kWeights[k] / kAngles;
      }
    }
    std::copy_if(by_channel.begin(), by_channel.end(), std::back_inserter(shares), [](double share) { return share > 0.0; });
  }
  return shares;
}

// The mean number of photons for which `mean_hits` different PMs fire on average. A PM with share p fires with probability 1 - exp(-p photons).
double photons_for_hits(double mean_hits, double radius_mm, double smear_mm) {
  const std::vector<double> shares = light_shares(radius_mm, smear_mm);
  const auto hits = [&](double photons) {
    double sum = 0.0;
    for (const double share : shares) sum -= std::expm1(-photons * share);
    return sum / kPlaces;
  };
  double low = mean_hits;
  double high = 20.0 * mean_hits;
  if (hits(high) < mean_hits) {
    std::ostringstream problem;
    problem << "Monte Carlo: mean_hits " << mean_hits << " cannot be reached at radius " << radius_mm << " mm";
    throw SetupError(problem.str(), "the ring crosses too few photomultipliers", "lower mean_hits or raise flat_radius_min_mm");
  }
  for (int step = 0; step < 50; ++step) {
    const double middle = 0.5 * (low + high);
    (hits(middle) < mean_hits ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

std::optional<config::Problem> Fractions::check() const {
  return config::first_broken(
      {{sum() <= 0, {"e", "all fractions are 0", "there is no particle to draw", "give at least one a share above 0"}}});
}

std::optional<config::Problem> MonteCarloConfig::check() const {
  const auto without_pm = [](std::uint16_t channel) { return channel >= rich::kChannelCount || !rich::kPmMap[channel].mapped; };
  for (const auto& [key, channels] : {std::pair{"hot_channels", &hot_channels}, std::pair{"dead_channels", &dead_channels}}) {
    const auto found = std::ranges::find_if(*channels, without_pm);
    if (found != channels->end()) {
      return config::Problem{key, std::string(key) + " has " + std::to_string(*found), "there is no photomultiplier",
                             "name channels with one: 0 to 487, 512 to 999, 1024 to 1511, 1536 to 2023"};
    }
  }
  return config::first_broken({
      {std::ranges::none_of(ring_count_shares, [](double share) { return share > 0; }),
       {"ring_count_shares", "all ring_count_shares are 0", "no number of rings can be drawn", "give at least one a share above 0"}},
      {momentum_min_gev > momentum_max_gev,
       {"momentum_min_gev",
        "momentum_min_gev " + config::text_of(momentum_min_gev) + " is above momentum_max_gev " + config::text_of(momentum_max_gev),
        "no momentum is between them", "swap them"}},
      {!(flat_radius_min_mm >= 20 && flat_radius_min_mm <= flat_radius_max_mm && flat_radius_max_mm <= 250),
       {"flat_radius",
        "flat_radius_min_mm " + config::text_of(flat_radius_min_mm) + ", flat_radius_max_mm " + config::text_of(flat_radius_max_mm),
        "they are limits from 20 to 250", "leave them at 80 and 190"}},
  });
}

MonteCarlo::MonteCarlo(const MonteCarloConfig& config) : config_(config), engine_(config.seed) {
  config::require(config, "monte_carlo");
  ring_share_sum_ = std::accumulate(config_.ring_count_shares.begin(), config_.ring_count_shares.end(), 0.0);
  if (!config_.flat_radius) {
    photons_.push_back(photons_for_hits(config_.mean_hits, rich::kElectronRadiusMm, config_.smear_mm));
    return;
  }
  const double range_mm = config_.flat_radius_max_mm - config_.flat_radius_min_mm;
  const int steps = std::max(1, static_cast<int>(std::ceil(range_mm / 5.0)));
  photons_step_mm_ = std::max(range_mm, 1e-9) / steps;
  for (int k = 0; k <= steps; ++k) {
    photons_.push_back(photons_for_hits(config_.mean_hits, config_.flat_radius_min_mm + k * photons_step_mm_, config_.smear_mm));
  }
}

double MonteCarlo::mean_photons(double radius_mm) const {
  if (config_.flat_radius) {
    const double place = std::clamp((radius_mm - config_.flat_radius_min_mm) / photons_step_mm_, 0.0,
                                    static_cast<double>(photons_.size() - 1));
    const std::size_t k = std::min(static_cast<std::size_t>(place), photons_.size() - 2);
    const double part = place - static_cast<double>(k);
    return photons_[k] * (1.0 - part) + photons_[k + 1] * part;
  }
  const double ratio = std::sin(radius_mm / rich::kFocalLengthMm) / std::sin(rich::kElectronRadiusMm / rich::kFocalLengthMm);
  return photons_[0] * ratio * ratio;
}

void MonteCarlo::next(McEvent& event) {
  ++event_number_;
  count_ = 0;
  McTruth truth;
  truth.ring_count = static_cast<std::uint16_t>(choose_ring_count());
  for (std::uint32_t r = 0; r < truth.ring_count; ++r) {
    truth.rings[r] = choose_ring();
    add_light(truth.rings[r], r);
  }
  truth.ring_hits = static_cast<std::uint16_t>(count_);
  add_noise(truth);
  truth.noise_hits = static_cast<std::uint16_t>(count_ - truth.ring_hits);

  if (config_.inefficiency > 0.0) lose_hits(truth);
  break_channels(truth);
  if (count_ > config_.hits_max) {
    truth.cut_hits = static_cast<std::uint16_t>(count_ - config_.hits_max);
    keep_at_most(config_.hits_max);
  }
  std::sort(channels_.begin(), channels_.begin() + count_);
  for (std::uint32_t k = 0; k < count_; ++k) {
    const unsigned code = static_cast<unsigned>(time_codes_[channels_[k]]) & 31u;
    event.hits[k] = static_cast<std::uint16_t>(channels_[k] | code << 11);
    event.owners[k] = owners_[channels_[k]];
  }
  event.hit_count = count_;
  event.truth = truth;
}

std::uint32_t MonteCarlo::choose_ring_count() {
  if (config_.ring_count_shares[1] == ring_share_sum_) return 1;  // no random number spent on what is certain
  double share = uniform() * ring_share_sum_;
  std::uint32_t last = 0;
  for (std::uint32_t r = 0; r <= kMaxEventRings; ++r) {
    if (!(config_.ring_count_shares[r] > 0.0)) continue;
    last = r;
    if ((share -= config_.ring_count_shares[r]) < 0.0) break;
  }
  return last;
}

McRing MonteCarlo::choose_ring() {
  McRing ring;
  choose_particle(ring);
  ring.disk = uniform() < config_.jura_share ? 0 : 1;
  ring.x_mm = static_cast<float>(config_.centre_sigma_mm * normal());
  ring.y_mm = static_cast<float>(config_.centre_sigma_mm * normal());
  if (config_.both_disks_share > 0.0 && uniform() < config_.both_disks_share) ring.disk = kBothDisks;
  if (config_.pileup_share > 0.0 && uniform() < config_.pileup_share) {
    ring.time_ns = static_cast<float>((uniform() * 32.0 - 16.0) * kHitTimeUnitNs);
  }
  return ring;
}

void MonteCarlo::add_light(McRing& ring, std::uint32_t ring_index) {
  const double radius_mm = ring.radius_mm;
  const std::uint32_t photons = radius_mm > 0.0 ? poisson(mean_photons(radius_mm)) : 0;
  const auto owner = static_cast<std::uint8_t>(1u << ring_index);
  for (std::uint32_t k = 0; k < photons; ++k) {
    const double phi = 2 * std::numbers::pi * uniform();
    const double x_mm = ring.x_mm + radius_mm * std::cos(phi) + config_.smear_mm * normal();
    const double y_mm = ring.y_mm + radius_mm * std::sin(phi) + config_.smear_mm * normal();
    const int code = time_code(ring.time_ns + config_.hit_time_sigma_ns * normal());
    const int disk = ring.disk != kBothDisks ? ring.disk : uniform() < 0.5 ? 0 : 1;
    const std::uint16_t channel = rich::nearest_channel(x_mm, y_mm, disk);
    if (channel == rich::kNoChannel) continue;
    const bool fired = seen_in_[channel] == event_number_ && (owners_[channel] & owner) != 0;
    add_hit(channel, code, owner);
    if (!fired) ++ring.hits;
  }
}

// Uniform on the disks that have rings, and on the PMs of one of them without any.
void MonteCarlo::add_noise(const McTruth& truth) {
  const std::uint32_t noise = config_.noise_hits > 0.0 ? poisson(config_.noise_hits) : 0;
  unsigned disks = 0;
  for (std::uint32_t r = 0; r < truth.ring_count; ++r) disks |= truth.rings[r].disk == kBothDisks ? 3u : 1u << truth.rings[r].disk;
  if (disks == 0) disks = uniform() < config_.jura_share ? 1u : 2u;
  for (std::uint32_t k = 0; k < noise; ++k) {
    const int disk = disks == 3u ? (uniform() < 0.5 ? 0 : 1) : disks == 1u ? 0 : 1;
    const int pm = std::min(static_cast<int>(uniform() * rich::kPmsPerDisk), rich::kPmsPerDisk - 1);
    const int board = disk * 2 + pm / rich::kPmsPerBoard;
    const int code = static_cast<int>(uniform() * 32.0) - 16;
    add_hit(static_cast<std::uint16_t>(board * rich::kChannelsPerBoard + pm % rich::kPmsPerBoard), code, 0);
  }
}

void MonteCarlo::choose_particle(McRing& ring) {
  if (config_.flat_radius) {
    ring.radius_mm = static_cast<float>(config_.flat_radius_min_mm +
                                        uniform() * (config_.flat_radius_max_mm - config_.flat_radius_min_mm));
    return;
  }
  const Fractions& fractions = config_.fractions;
  double share = uniform() * fractions.sum();
  if ((share -= fractions.e) < 0.0) {
    ring.particle = rich::Particle::electron;
  } else if ((share -= fractions.mu) < 0.0) {
    ring.particle = rich::Particle::muon;
  } else if ((share -= fractions.pi) < 0.0 || fractions.K <= 0.0) {
    ring.particle = rich::Particle::pion;
  } else {
    ring.particle = rich::Particle::kaon;
  }
  const double momentum_gev = config_.momentum_min_gev + uniform() * (config_.momentum_max_gev - config_.momentum_min_gev);
  ring.momentum_gev = static_cast<float>(momentum_gev);
  ring.radius_mm = static_cast<float>(rich::ring_radius_mm(ring.particle, momentum_gev));
}

void MonteCarlo::add_hit(std::uint16_t channel, int time_code, std::uint8_t owner) {
  const auto code = static_cast<std::int8_t>(time_code);
  if (seen_in_[channel] == event_number_) {
    time_codes_[channel] = std::min(time_codes_[channel], code);
    owners_[channel] |= owner;
    return;
  }
  if (count_ == kHitsInWork) return;  // cannot matter: see there
  seen_in_[channel] = event_number_;
  time_codes_[channel] = code;
  owners_[channel] = owner;
  channels_[count_++] = channel;
}

// PMs that should have fired and did not. The truth counts only existing hits.
void MonteCarlo::lose_hits(McTruth& truth) {
  std::uint32_t kept = 0;
  for (std::uint32_t k = 0; k < count_; ++k) {
    const std::uint16_t channel = channels_[k];
    if (uniform() >= config_.inefficiency) {
      channels_[kept++] = channel;
      continue;
    }
    forget(channel, truth);
  }
  count_ = kept;
}

// Takes a lost hit out of the truth.
void MonteCarlo::forget(std::uint16_t channel, McTruth& truth) const {
  --(owners_[channel] != 0 ? truth.ring_hits : truth.noise_hits);
  for (std::uint32_t r = 0; r < truth.ring_count; ++r)
    truth.rings[r].hits = static_cast<std::uint16_t>(truth.rings[r].hits - (owners_[channel] >> r & 1));
}

// Dead channels lose their hits, hot ones get one; to the truth it is noise.
void MonteCarlo::break_channels(McTruth& truth) {
  for (const std::uint16_t channel : config_.dead_channels) {
    std::uint16_t* const end = channels_.begin() + count_;
    std::uint16_t* const at = std::find(channels_.begin(), end, channel);
    if (at == end) continue;
    forget(channel, truth);
    *at = channels_[--count_];
    seen_in_[channel] = 0;
  }
  const std::uint32_t before = count_;
  for (const std::uint16_t channel : config_.hot_channels) {
    if (config_.hot_share < 1.0 && uniform() >= config_.hot_share) continue;
    add_hit(channel, static_cast<int>(uniform() * 32.0) - 16, 0);
  }
  truth.noise_hits = static_cast<std::uint16_t>(truth.noise_hits + (count_ - before));
}

// Keeps a random choice of the hits (the first steps of a Fisher-Yates shuffle).
void MonteCarlo::keep_at_most(std::uint32_t hits_max) {
  for (std::uint32_t k = 0; k < hits_max; ++k) {
    const auto other = k + static_cast<std::uint32_t>(uniform() * (count_ - k));
    std::swap(channels_[k], channels_[std::min(other, count_ - 1)]);
  }
  count_ = hits_max;
}

int MonteCarlo::time_code(double time_ns) const {
  return static_cast<int>(std::clamp(std::floor(time_ns / kHitTimeUnitNs + 0.5), -16.0, 15.0));
}

double MonteCarlo::uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

// Box and Muller's transform.
double MonteCarlo::normal() {
  if (has_spare_normal_) {
    has_spare_normal_ = false;
    return spare_normal_;
  }
  const double r = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  const double phi = 2 * std::numbers::pi * uniform();
  spare_normal_ = r * std::sin(phi);
  has_spare_normal_ = true;
  return r * std::cos(phi);
}

// Knuth's product of uniform numbers; fit for means of some tens.
std::uint32_t MonteCarlo::poisson(double mean) {
  const double limit = std::exp(-mean);
  double product = uniform();
  std::uint32_t count = 0;
  while (product > limit) {
    product *= uniform();
    ++count;
  }
  return count;
}

}  // namespace nanet::emulate
