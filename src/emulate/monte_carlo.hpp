// SPDX-License-Identifier: Apache-2.0
// A small Monte Carlo of the RICH: up to four charged particles an event, their photons on the PM grid, noise, hit times, and the truth.
//
// A photon fires the PM whose hexagon it lands in (light collection by cones); where no PM is, it is lost. A PM fires once an event, at the
// time of its earliest photon. A particle's hits lie on one disk, so on one or two boards (board = channel / 512), unless its light is shared.
//
// Terms
//   ring      the light of one particle.
//   pile-up   a ring of another decay, whose time is anywhere in the window that a hit's time can say (-3.1 to +2.9 ns); the others are all at the
//             event's time.
//
// Determinism: the same configuration gives the same events in the same order. The generator is std::mt19937_64, the same everywhere; the
// transforms are our own (the standard's distributions differ between libraries) but call log, exp, sin and cos, whose last bit belongs to
// the C library, so a hit may differ between libraries about once in 10^13.
// Thread rules: one thread per object. next() does not allocate or throw.
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
inline constexpr std::uint32_t kMaxEventRings = 4;
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
  double jura_share = 0.5;  // share of rings on disk 0 (boards 0 and 1), 0 to 1; the others are on disk 1 (boards 2 and 3)

  // Shares of events with 0, 1, 2, 3 and 4 rings; their sum need not be 1. Each ring has a centre, a radius and a disk of its own.
  std::array<double, kMaxEventRings + 1> ring_count_shares{0, 1, 0, 0, 0};
  double pileup_share = 0.0;      // probability that a ring is pile-up, 0 to 1
  double both_disks_share = 0.0;  // probability that a ring's light is shared by both disks, each photon on either, 0 to 1
  double inefficiency = 0.0;  // probability that a PM that should fire does not, 0 to 0.9. mean_hits is then that of the light before this loss

  // Channels that are broken: hot ones fire in every event with probability hot_share, at any time; dead ones never do. Each once.
  std::vector<std::uint16_t> hot_channels;
  double hot_share = 1.0;  // 0 to 1
  std::vector<std::uint16_t> dead_channels;

  // Largest number of hits an event may have, 1 to 128; a random choice is kept. The padded packet format holds 32 from each board.
  std::uint32_t hits_max = 32;
};

struct McRing {
  rich::Particle particle = rich::Particle::none;
  std::uint8_t disk = 0;   // 0, 1; kBothDisks: shared
  std::uint16_t hits = 0;  // different PMs fired by the ring's light, those shared with other rings or noise too
  float momentum_gev = 0;  // 0 in flat mode
  float x_mm = 0;          // the ring's centre in the disk's coordinates
  float y_mm = 0;
  float radius_mm = 0;  // 0: below threshold, no light
  float time_ns = 0;    // relative to the event; not 0 for pile-up
};
inline constexpr std::uint8_t kBothDisks = 2;

struct McTruth {
  std::uint16_t ring_count = 0;  // particles, also those without light
  std::uint16_t ring_hits = 0;   // different PMs fired by light (noise on the same PM does not matter)
  std::uint16_t noise_hits = 0;  // PMs fired by noise alone
  std::uint16_t cut_hits = 0;    // of both, left out because of hits_max
  std::array<McRing, kMaxEventRings> rings;
};

struct McEvent {
  std::array<std::uint16_t, kMaxEventHits> hits;  // hit_count words in order of channel: bits 10..0 channel, 15..11 time in kHitTimeUnitNs, signed
  std::array<std::uint8_t, kMaxEventHits> owners;  // of each hit: bit r: light of ring r fired it; 0: noise alone
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
  static constexpr std::uint32_t kHitsInWork = 512;  // four rings and noise of 40 hits each, and far more than any fluctuation

  double uniform();  // in [0, 1)
  double normal();
  std::uint32_t poisson(double mean);
  std::uint32_t choose_ring_count();
  McRing choose_ring();
  void choose_particle(McRing& ring);
  void add_light(McRing& ring, std::uint32_t ring_index);
  void add_noise(const McTruth& truth);
  void add_hit(std::uint16_t channel, int time_code, std::uint8_t owner);
  void lose_hits(McTruth& truth);
  void break_channels(McTruth& truth);
  void forget(std::uint16_t channel, McTruth& truth) const;
  void keep_at_most(std::uint32_t hits_max);
  int time_code(double time_ns) const;

  MonteCarloConfig config_;
  std::mt19937_64 engine_;
  double spare_normal_ = 0.0;
  bool has_spare_normal_ = false;
  double share_sum_ = 1.0;
  double ring_share_sum_ = 1.0;
  std::vector<double> photons_;  // flat: at equal steps of radius between the limits; momentum: one number, for the electron ring
  double photons_step_mm_ = 1.0;

  // The current event.
  std::array<std::uint16_t, kHitsInWork> channels_{};
  std::array<std::int8_t, rich::kChannelCount> time_codes_{};
  std::array<std::uint8_t, rich::kChannelCount> owners_{};
  std::array<std::uint64_t, rich::kChannelCount> seen_in_{};  // number of the event in which a channel fired last
  std::uint64_t event_number_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace nanet::emulate
