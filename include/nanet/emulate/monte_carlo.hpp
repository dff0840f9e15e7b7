// SPDX-License-Identifier: Apache-2.0
// A small Monte Carlo of the RICH: one charged particle an event, its photons on the PM grid, noise, hit times, and the truth.
//
// A photon fires the PM whose hexagon it lands in (light collection by cones); where no PM is, it is lost. A PM fires once an event, at the
// time of its earliest photon. An event's hits all lie on one disk, so on one or two boards (board = channel / 512).
//
// Determinism: the same configuration gives the same events in the same order. The generator is std::mt19937_64, the same everywhere; the
// transforms are our own (the standard's distributions differ between libraries) but call log, exp, sin and cos, whose last bit belongs to
// the C library, so a hit may differ between libraries about once in 10^13.
// Thread rules: one thread an object. next() does not allocate or throw.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "nanet/rich/optics.hpp"
#include "nanet/rich/pm_map.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {

inline constexpr std::uint32_t kMaxEventHits = 128;
inline constexpr double kHitTimeUnitNs = 2 * wire::kTickNs;  // of the signed 5-bit time in a hit word

enum class RadiusMode : std::uint8_t {
  momentum = 0,  // radius and light from the particle's mass and momentum
  flat = 1,      // radius flat between two limits, the same mean number of hits at any radius; particle is none
};

struct MonteCarloConfig {
  std::uint64_t seed = 1;  // any number; another seed gives other events

  // Mean number of different PMs fired by an electron ring (flat: by any ring) that is wholly inside the disk, without noise; 1 to 40.
  // Data have about 12 for electrons, the papers' Monte Carlo 20. Too small: most rings have fewer than the 4 hits a fit needs; too big: PMs saturate.
  double mean_hits = 12.0;

  RadiusMode radius_mode = RadiusMode::momentum;
  double flat_radius_min_mm = 80.0;   // flat only; too small: all light in a few PMs; at least 20
  double flat_radius_max_mm = 190.0;  // flat only; too big: light misses the disk; at most 250

  // Momentum is flat between these limits. Below 12.5 GeV/c pions, below 9.5 muons have no ring; far above 35 all rings look alike.
  double momentum_min_gev = 15.0;
  double momentum_max_gev = 35.0;

  // Shares of the particles; their sum need not be 1. Kaons have a ring only above 44.3 GeV/c: below they give events of noise alone.
  double electron_share = 0.2;
  double muon_share = 0.5;
  double pion_share = 0.3;
  double kaon_share = 0.0;

  double center_sigma_mm = 40.0;  // of the ring's centre in x and in y; 0 to 150. Too big: rings partly outside the disk, where light is lost
  double smear_mm = 2.5;  // of a photon's place in x and in y, 0 to 20: with the PM's size it gives 5.4 mm a hit. Too big: wide rings
  double noise_hits = 0.0;  // mean number of noise hits, uniform on the event's disk and in time, 0 to 40. A plain fit stands hardly any
  double time_sigma_ns = 0.28;  // of a photon's time about the event's, 0 to 2. The hit word holds -3.1 to +2.9 ns, times beyond are cut to that
  double jura_share = 0.5;  // share of events on disk 0 (boards 0 and 1), 0 to 1; the others are on disk 1 (boards 2 and 3)

  // Largest number of hits an event may have, 1 to 128; a random choice is kept. The padded packet format holds 32 from each board.
  std::uint32_t hits_max = 32;
};

struct McTruth {
  rich::Particle particle = rich::Particle::none;
  std::uint8_t disk = 0;
  std::uint16_t ring_hits = 0;   // different PMs fired by the ring's light (noise on the same PM does not matter)
  std::uint16_t noise_hits = 0;  // PMs fired by noise alone
  std::uint16_t cut_hits = 0;    // of both, left out because of hits_max
  float momentum_gev = 0;        // 0 in flat mode
  float x_mm = 0;                // the ring's centre in the disk's coordinates
  float y_mm = 0;
  float radius_mm = 0;  // 0: below threshold, no light
};

struct McEvent {
  std::array<std::uint16_t, kMaxEventHits> hits;  // hit_count words in order of channel: bits 10..0 channel, 15..11 time in kHitTimeUnitNs, signed
  std::uint32_t hit_count = 0;
  McTruth truth;
};

class MonteCarlo {
 public:
  // Throws SetupError where a value is out of its range.
  explicit MonteCarlo(const MonteCarloConfig& config);

  void next(McEvent& event);
  McEvent next() {
    McEvent event;
    next(event);
    return event;
  }

  // Mean number of photons on a ring of this radius, before any is lost or shares a PM. In momentum mode: see ring_radius_mm for the radius.
  double mean_photons(double radius_mm) const;

 private:
  double uniform();  // in [0, 1)
  double normal();
  std::uint32_t poisson(double mean);
  void choose_ring(McTruth& truth);
  void add_hit(std::uint16_t channel, int time_code);
  void keep_at_most(std::uint32_t hits_max);
  int time_code(double time_ns) const;

  MonteCarloConfig config_;
  std::mt19937_64 engine_;
  double spare_normal_ = 0.0;
  bool has_spare_normal_ = false;
  double share_sum_ = 1.0;
  std::vector<double> photons_;  // flat: at equal steps of radius between the limits; momentum: one number, for the electron ring
  double photons_step_mm_ = 1.0;

  // The event in work.
  std::array<std::uint16_t, kMaxEventHits> channels_{};
  std::array<std::int8_t, rich::kChannelCount> time_codes_{};
  std::array<std::uint64_t, rich::kChannelCount> seen_in_{};  // number of the event in which a channel fired last
  std::uint64_t event_number_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace nanet::emulate
