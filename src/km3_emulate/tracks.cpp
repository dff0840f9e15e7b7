// SPDX-License-Identifier: Apache-2.0
#include "km3_emulate/tracks.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "km3_emulate/purpose.hpp"
#include "km3_emulate/random.hpp"

namespace nanet::km3_emulate {
namespace {

using km3::Vector;

double dot(const Vector& a, const Vector& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
Vector plus(const Vector& a, const Vector& b, double times) { return {a.x + times * b.x, a.y + times * b.y, a.z + times * b.z}; }

// Where a place lies seen from a track.
struct Seen {
  double along_m;
  double across_m;
};

Seen seen(const Track& track, const Vector& place_m) {
  const Vector to = plus(place_m, track.point_m, -1.0);
  const double along_m = dot(to, track.direction);
  return {along_m, std::sqrt(std::max(0.0, dot(to, to) - along_m * along_m))};
}

// Two directions at right angles to one and to each other.
std::pair<Vector, Vector> across(const Vector& d) {
  const Vector helper = std::abs(d.z) < 0.9 ? Vector{0, 0, 1} : Vector{1, 0, 0};
  Vector u{d.y * helper.z - d.z * helper.y, d.z * helper.x - d.x * helper.z, d.x * helper.y - d.y * helper.x};
  const double length = std::sqrt(dot(u, u));
  u = {u.x / length, u.y / length, u.z / length};
  return {u, {d.y * u.z - d.z * u.y, d.z * u.x - d.x * u.z, d.x * u.y - d.y * u.x}};
}

}  // namespace

double cherenkov_tangent() { return std::sqrt(kRefractiveIndex * kRefractiveIndex - 1.0); }

double cherenkov_time_ns(const Track& track, const Vector& place_m) {
  const Seen place = seen(track, place_m);
  return track.time_ns + (place.along_m + place.across_m * cherenkov_tangent()) / kLightMPerNs;
}

std::uint8_t charge_of(double pe) { return static_cast<std::uint8_t>(std::clamp(std::lround(10.0 * pe), 3L, 255L)); }

TrackMaker::TrackMaker(const TowerConfig& config, const km3::Detector& detector, std::vector<std::uint32_t> first_pms)
    : config_(config), detector_(detector), first_pms_(std::move(first_pms)), middle_m_{} {
  const double share = 1.0 / static_cast<double>(kPms * first_pms_.size());
  for (const std::uint32_t first : first_pms_) {
    for (std::uint32_t pm = 0; pm < kPms; ++pm) middle_m_ = plus(middle_m_, detector_.pms()[first + pm].position_m, share);
  }
}

std::vector<Track> TrackMaker::tracks(std::uint64_t slice) const {
  const MuonConfig& muons = config_.muons;
  const auto slice_ns = static_cast<double>(config_.slice_ns());
  Random random({config_.seed, purpose::tracks, slice});
  std::vector<Track> made(random.poisson(muons.rate_hz * slice_ns * 1e-9));
  for (Track& track : made) {
    track.time_ns = random.uniform() * slice_ns;
    const double cos_zenith = random.between(muons.cos_zenith_min, muons.cos_zenith_max);
    const double azimuth = random.between(0, 2.0 * std::numbers::pi);
    const double sin_zenith = std::sqrt(std::max(0.0, 1.0 - cos_zenith * cos_zenith));
    track.direction = {-sin_zenith * std::cos(azimuth), -sin_zenith * std::sin(azimuth), -cos_zenith};
    const auto [u, v] = across(track.direction);
    const double radius_m = muons.radius_m * std::sqrt(random.uniform());
    const double phi = random.between(0, 2.0 * std::numbers::pi);
    track.point_m = plus(plus(middle_m_, u, radius_m * std::cos(phi)), v, radius_m * std::sin(phi));
    light(track, random);
  }
  return made;
}

void TrackMaker::light(Track& track, Random& random) const {
  const MuonConfig& muons = config_.muons;
  const double tangent = cherenkov_tangent();
  const double sine = tangent / kRefractiveIndex;
  for (std::uint32_t floor = 0; floor < first_pms_.size(); ++floor) {
    for (std::uint32_t pm = 0; pm < kPms; ++pm) {
      const km3::Pm& place = detector_.pms()[first_pms_[floor] + pm];
      const Seen at = seen(track, place.position_m);
      const double across_m = std::max(at.across_m, 0.5);  // of the sphere around a PM
      const Vector source = plus(track.point_m, track.direction, at.along_m - at.across_m / tangent);
      const Vector to = plus(source, place.position_m, -1.0);  // from the PM to where its light left the track
      const double facing = dot(to, place.direction) / std::max(1e-9, std::sqrt(dot(to, to)));
      const double mean = muons.light_pe_m / across_m * std::exp(-across_m / (sine * muons.absorption_m)) * 0.5 * (1.0 + facing);
      const std::uint32_t electrons = random.poisson(std::min(mean, 100.0));
      if (electrons == 0) continue;
      const double first = std::sqrt(static_cast<double>(electrons));
      const bool scattered = random.chance(muons.scattered_share);
      double time_ns = cherenkov_time_ns(track, place.position_m) + random.normal() * muons.time_sigma_ns / first;
      if (scattered) time_ns += random.exponential(muons.scattered_ns);
      const double charge_pe = electrons + first * config_.noise.charge_sigma_pe * random.normal();
      track.hits.push_back({time_ns, floor, static_cast<std::uint8_t>(pm), charge_of(charge_pe), scattered});
    }
  }
}

}  // namespace nanet::km3_emulate
