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
#include <optional>
#include <random>
#include <vector>

#include "nanet/config/setting.hpp"
#include "nanet/rich/optics.hpp"
#include "nanet/rich/pm_map.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {

inline constexpr std::uint32_t kMaxEventHits = 128;
inline constexpr std::uint32_t kMaxEventRings = 4;
inline constexpr double kHitTimeUnitNs = 2 * wire::kTickNs;  // of the signed 5-bit time in a hit word

// Shares of the particles.
struct Fractions {
  static constexpr config::Component component{"Fractions", "Shares of the particles; they need not add up to 1."};

  double e = 0.2;
  double mu = 0.5;
  double pi = 0.3;
  double K = 0.0;

  template <class Visit>
  void visit(Visit&& v) {
    v("e", e, {.help = "Electrons", .least = 0});
    v("mu", mu, {.help = "Muons", .least = 0});
    v("pi", pi, {.help = "Pions", .least = 0});
    v("K", K, {.help = "Kaons; no ring below 44.3 GeV/c", .least = 0});
  }

  double sum() const { return e + mu + pi + K; }

  // Not all are 0.
  std::optional<config::Problem> check() const;
};

struct MonteCarloConfig {
  static constexpr config::Component component{"MonteCarlo",
                                               "Which events are made: up to four rings each, photons on them, and noise."};

  std::uint64_t seed = 1;
  double mean_hits = 20.0;  // of a ring wholly inside the disk. Data have about 12; with fewer, most rings have too few hits for a fit
  double noise_hits = 0.0;  // on the event's disk
  double smear_mm = 2.5;    // with the PM's size it gives 5.4 mm a hit
  double centre_sigma_mm = 40.0;
  double momentum_min_gev = 15.0;  // below 12.5 GeV/c pions, below 9.5 muons have no ring
  double momentum_max_gev = 35.0;  // far above, all rings look alike
  Fractions fractions;
  double hit_time_sigma_ns = 0.28;    // a hit word holds -3.1 to +2.9 ns, times beyond are cut to that
  bool flat_radius = false;           // then particle is none
  double flat_radius_min_mm = 80.0;   // at least 20. Too small: all light in a few PMs
  double flat_radius_max_mm = 190.0;  // at most 250. Too big: light misses the disk
  std::array<double, kMaxEventRings + 1> ring_count_shares{0, 1, 0, 0, 0};  // each ring has a centre, a radius and a disk of its own
  double pileup_share = 0.0;
  double jura_share = 0.5;
  double both_disks_share = 0.0;
  double inefficiency = 0.0;
  std::vector<std::uint16_t> hot_channels;  // each once, as in dead_channels
  double hot_share = 1.0;
  std::vector<std::uint16_t> dead_channels;
  std::uint32_t hits_max = 32;

  template <class Visit>
  void visit(Visit&& v) {
    visit_rings(v);
    visit_hits(v);
  }

  // Something can be drawn, and channels have a photomultiplier.
  std::optional<config::Problem> check() const;

 private:
  template <class Visit>
  void visit_rings(Visit& v) {
    v("seed", seed, {.help = "Seed of the random numbers", .least = 0, .below = 0x1p63});
    v("mean_hits", mean_hits,
      {.help = "Mean hits of an electron's ring; others are scaled by their Cherenkov angle", .unit = "hits", .least = 1, .most = 40});
    v("noise_hits", noise_hits, {.help = "Mean uniform noise hits of an event", .unit = "hits", .least = 0, .most = 40});
    v("smear_mm", smear_mm, {.help = "Gaussian smear of a photon at the PM plane, each axis", .unit = "mm", .least = 0, .most = 20});
    v("centre_sigma_mm", centre_sigma_mm, {.help = "Spread of ring centres, each axis", .unit = "mm", .least = 0, .most = 150});
    v("momentum_min_gev", momentum_min_gev, {.help = "Lowest momentum", .unit = "GeV/c", .most = 400, .above = 0});
    v("momentum_max_gev", momentum_max_gev, {.help = "Highest momentum", .unit = "GeV/c", .most = 400, .above = 0});
    v("fractions", fractions, {.help = "Mix of particles"});
    v("hit_time_sigma_ns", hit_time_sigma_ns, {.help = "Spread of a hit's time", .unit = "ns", .least = 0, .most = 2});
    v("flat_radius", flat_radius,
      {.help = "Draw radii evenly from 80 to 190 mm instead of from particles, with mean_hits at any radius"});
    v("ring_count_shares", ring_count_shares,
      {.help = "Shares of events with 0, 1, 2, 3 and 4 rings; they need not add up to 1",
       .least = 0,
       .most = 1e6,
       .too_big = "many rings: they do not fit the 32 hits of a padded event"});
    v("pileup_share", pileup_share,
      {.help = "Probability that a ring belongs to another decay, with a time anywhere from -3.1 to +2.9 ns", .least = 0, .most = 1});
    v("jura_share", jura_share,
      {.help = "Share of rings on disk 0 (boards 0 and 1); the others are on disk 1", .least = 0, .most = 1});
    v("both_disks_share", both_disks_share,
      {.help = "Probability that a ring's light is shared by both disks, each photon on either", .least = 0, .most = 1});
  }

  template <class Visit>
  void visit_hits(Visit& v) {
    v("inefficiency", inefficiency,
      {.help = "Probability that a photomultiplier that should fire does not; mean_hits is before this loss",
       .least = 0,
       .most = 0.9,
       .too_big = "most rings have fewer hits than a fit needs"});
    v("hot_channels", hot_channels,
      {.help = "Channels that fire whatever happens, at any time: numbers, and ranges such as 100-107",
       .too_big = "fake rings through them",
       .list_form = "Channels"});
    v("hot_share", hot_share, {.help = "Share of the events in which a hot channel fires", .least = 0, .most = 1});
    v("dead_channels", dead_channels,
      {.help = "Channels that never fire: numbers, and ranges such as 100-107", .too_big = "rings lose hits", .list_form = "Channels"});
    v("hits_max", hits_max,
      {.help = "Most hits of an event, of which a random choice is kept; a padded event holds 32",
       .unit = "hits",
       .least = 4,
       .most = kMaxEventHits,
       .too_small = "rings lose hits",
       .too_big = "packed events no longer fit a packet"});
  }
};

struct McRing {
  rich::Particle particle = rich::Particle::none;
  std::uint8_t disk = 0;   // 0, 1; kBothDisks: shared
  std::uint16_t hits = 0;  // different PMs fired by the ring's light, those shared with other rings or noise too
  float momentum_gev = 0;  // 0 with flat_radius
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
  // Throws SetupError where a value is out of its range or a rule is broken.
  explicit MonteCarlo(const MonteCarloConfig& config);

  void next(McEvent& event);
  McEvent next() {
    McEvent event;
    next(event);
    return event;
  }

  // Mean number of photons on a ring of this radius, before any is lost or shares a PM. Of a particle: see ring_radius_mm for the radius.
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
  double ring_share_sum_ = 1.0;
  std::vector<double> photons_;  // flat_radius: at equal steps of radius between the limits; else one number, for the electron ring
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
