// SPDX-License-Identifier: Apache-2.0
// What the emulator of a KM3NeT tower can be told: docs/design/km3-tower.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nanet/config/setting.hpp"

namespace nanet::km3_emulate {

inline constexpr std::uint32_t kPms = 6;  // of a floor: two at each of three places
inline constexpr std::uint32_t kFloorsMax = 32;
inline constexpr double kRefractiveIndex = 1.38;        // of sea water, for light's speed and for the Cherenkov angle alike
inline constexpr double kLightMPerNs = 0.299792458;     // in vacuum
inline constexpr std::uint32_t kPacketBytesMax = 8972;  // a payload of 8940 B and a header of 32

struct NoiseConfig {
  static constexpr config::Component component{"TowerNoise",
                                               "Light that no particle of interest made: potassium-40 and living things."};

  double singles_hz = 55'000;
  std::array<double, 5> coincidences_hz{18, 0, 0, 0, 0};
  double coincidence_sigma_ns = 4;
  double charge_sigma_pe = 0.3;
  double tail_share = 0.04;
  double tail_pe = 1.5;
  double bursts_hz = 0;
  double burst_factor = 4;
  double burst_s = 0.5;

  template <class Visit>
  void visit(Visit&& v) {
    v("singles_hz", singles_hz, {.help = "Single hits of a photomultiplier", .unit = "Hz", .least = 0, .most = 5e6});
    v("coincidences_hz", coincidences_hz,
      {.help = "Genuine coincidences of one decay: first those of the two photomultipliers of a place, for each place; then those "
               "of "
               "3, 4, 5 and 6 of a floor, for each floor",
       .unit = "Hz",
       .least = 0,
       .most = 1e5});
    v("coincidence_sigma_ns", coincidence_sigma_ns,
      {.help = "Spread of the times of such hits, each", .unit = "ns", .least = 0, .most = 100});
    v("charge_sigma_pe", charge_sigma_pe,
      {.help = "Spread of the charge of one photo-electron", .unit = "photo-electrons", .least = 0, .most = 2});
    v("tail_share", tail_share, {.help = "Share of single hits that have more charge", .least = 0, .most = 1});
    v("tail_pe", tail_pe, {.help = "Mean of what those have more, exponential", .unit = "photo-electrons", .least = 0, .most = 100});
    v("bursts_hz", bursts_hz, {.help = "Bursts of bioluminescence of a floor", .unit = "Hz", .least = 0, .most = 100});
    v("burst_factor", burst_factor, {.help = "By which a burst multiplies single hits", .least = 1, .most = 100});
    v("burst_s", burst_s, {.help = "Mean length of a burst, exponential, cut at four times it", .unit = "s", .most = 10, .above = 0});
  }
};

// So many times the single hits, for a time.
struct LoudConfig {
  static constexpr config::Component component{"TowerLoud",
                                               "A burst at a time that is given, for tests of what has to be buffered."};

  std::uint32_t floor = 0;
  std::uint32_t slice = 0;
  std::uint32_t slices = 5;
  double factor = 4;

  template <class Visit>
  void visit(Visit&& v) {
    v("floor", floor, {.help = "The floor; 0: all", .least = 0, .most = kFloorsMax});
    v("slice", slice, {.help = "First slice", .unit = "slices", .least = 0, .most = 1e9});
    v("slices", slices, {.help = "Length", .unit = "slices", .least = 1, .most = 1e6});
    v("factor", factor, {.help = "By which it multiplies single hits", .least = 0, .most = 100});
  }
};

struct MuonConfig {
  static constexpr config::Component component{"TowerMuons", "Muons: straight tracks at the speed of light, with Cherenkov light."};

  double rate_hz = 1;
  double cos_zenith_min = 0;
  double cos_zenith_max = 1;
  double radius_m = 60;
  double light_pe_m = 80;
  double absorption_m = 60;
  double time_sigma_ns = 2;
  double scattered_share = 0.1;
  double scattered_ns = 20;

  template <class Visit>
  void visit(Visit&& v) {
    v("rate_hz", rate_hz, {.help = "Muons near the tower", .unit = "Hz", .least = 0, .most = 10'000});
    v("cos_zenith_min", cos_zenith_min, {.help = "Where they come from: 1 from above, -1 from below", .least = -1, .most = 1});
    v("cos_zenith_max", cos_zenith_max, {.help = "Upper end of that range", .least = -1, .most = 1});
    v("radius_m", radius_m,
      {.help = "How far from the middle of the tower they pass at most", .unit = "m", .most = 1000, .above = 0});
    v("light_pe_m", light_pe_m,
      {.help = "Photo-electrons in a photomultiplier that faces the light, times its distance from the track",
       .unit = "m",
       .least = 0,
       .most = 10'000});
    v("absorption_m", absorption_m, {.help = "Way after which 1/e of the light is left", .unit = "m", .most = 1000, .above = 0});
    v("time_sigma_ns", time_sigma_ns, {.help = "Spread of the time of a photo-electron", .unit = "ns", .least = 0, .most = 100});
    v("scattered_share", scattered_share, {.help = "Share of hits that come later, scattered", .least = 0, .most = 1});
    v("scattered_ns", scattered_ns, {.help = "How much later on the average", .unit = "ns", .least = 0, .most = 1000});
  }

  // The range of zeniths is one.
  std::optional<config::Problem> check() const;
};

struct BeaconConfig {
  static constexpr config::Component component{"TowerBeacon", "An acoustic beacon at a known place."};

  double x_m = 0;
  double y_m = 0;
  double z_m = 0;
  double period_s = 1;
  double phase_s = 0;

  template <class Visit>
  void visit(Visit&& v) {
    v("x_m", x_m, {.help = "Position", .unit = "m", .least = -10'000, .most = 10'000});
    v("y_m", y_m, {.help = "Position", .unit = "m", .least = -10'000, .most = 10'000});
    v("z_m", z_m, {.help = "Height over the sea floor", .unit = "m", .least = -10'000, .most = 10'000});
    v("period_s", period_s, {.help = "Time from pulse to pulse", .unit = "s", .least = 0.01, .most = 3600});
    v("phase_s", phase_s, {.help = "GPS time of a pulse, modulo period_s", .unit = "s", .least = 0, .most = 3600});
  }
};

struct SoundConfig {
  static constexpr config::Component component{"TowerSound", "What hydrophones hear: noise, and pulses of beacons."};

  double noise_counts = 200;
  double speed_m_s = 1500;
  double pulse_counts = 2'000'000;
  double pulse_ms = 5;
  double pulse_from_hz = 20'000;
  double pulse_to_hz = 40'000;
  std::vector<BeaconConfig> beacons{
      {.x_m = 250, .y_m = 0, .z_m = 0, .period_s = 1, .phase_s = 0},
      {.x_m = -125, .y_m = 216.5, .z_m = 0, .period_s = 1, .phase_s = 0.25},
      {.x_m = -125, .y_m = -216.5, .z_m = 0, .period_s = 1, .phase_s = 0.5},
      {.x_m = 300, .y_m = 300, .z_m = 50, .period_s = 1, .phase_s = 0.75},
  };

  template <class Visit>
  void visit(Visit&& v) {
    v("noise_counts", noise_counts, {.help = "Spread of the noise", .unit = "counts", .least = 0, .most = 1e6});
    v("speed_m_s", speed_m_s, {.help = "Speed of sound, the same everywhere", .unit = "m/s", .least = 1000, .most = 2000});
    v("pulse_counts", pulse_counts,
      {.help = "Height of a pulse at 1 m; it falls with the distance", .unit = "counts", .least = 0, .most = 1e9});
    v("pulse_ms", pulse_ms, {.help = "Length of a pulse", .unit = "ms", .least = 0.1, .most = 100});
    v("pulse_from_hz", pulse_from_hz,
      {.help = "Frequency at its beginning; it rises evenly", .unit = "Hz", .least = 10, .most = 90'000});
    v("pulse_to_hz", pulse_to_hz, {.help = "Frequency at its end", .unit = "Hz", .least = 10, .most = 90'000});
    v("beacons", beacons, {.help = "The beacons"});
  }
};

struct SilenceConfig {
  static constexpr config::Component component{"TowerSilence", "A floor that sends nothing for a time, and returns."};

  std::uint32_t floor = 1;
  std::uint32_t slice = 0;
  std::uint32_t slices = 1;

  template <class Visit>
  void visit(Visit&& v) {
    v("floor", floor, {.help = "The floor", .least = 1, .most = kFloorsMax});
    v("slice", slice, {.help = "First slice of which it sends nothing", .unit = "slices", .least = 0, .most = 1e9});
    v("slices", slices, {.help = "How many", .unit = "slices", .least = 1, .most = 1e9});
  }
};

struct JumpConfig {
  static constexpr config::Component component{"TowerJump", "The GPS time of a floor jumps."};

  std::uint32_t floor = 1;
  std::uint32_t slice = 0;
  std::int64_t jump_us = 1'000'000;
  bool said = false;

  template <class Visit>
  void visit(Visit&& v) {
    v("floor", floor, {.help = "The floor", .least = 1, .most = kFloorsMax});
    v("slice", slice, {.help = "First slice with the other time", .unit = "slices", .least = 0, .most = 1e9});
    v("jump_us", jump_us, {.help = "By how much; less than 0: back", .unit = "us", .least = -1e12, .most = 1e12});
    v("said", said, {.help = "The floor knows it, and sets the flag that its time is not right"});
  }
};

struct FaultsConfig {
  static constexpr config::Component component{
      "TowerFaults", "What goes wrong on purpose, packet by packet with a probability, seeded. All is counted."};

  double loss = 0;
  double duplicate = 0;
  double reorder = 0;
  double damage = 0;
  double old_hits = 0;
  double old_hits_ms = 300;
  std::vector<SilenceConfig> silent;
  std::vector<JumpConfig> jumps;

  template <class Visit>
  void visit(Visit&& v) {
    v("loss", loss, {.help = "Probability that a packet is not sent", .least = 0, .most = 1});
    v("duplicate", duplicate, {.help = "Probability that a packet is sent twice", .least = 0, .most = 1});
    v("reorder", reorder, {.help = "Probability that a packet is sent after the next one of its stream", .least = 0, .most = 1});
    v("damage", damage, {.help = "Probability that one bit of one field of a packet is flipped", .least = 0, .most = 1});
    v("old_hits", old_hits, {.help = "Probability that a hit of noise is older than its slice", .least = 0, .most = 1});
    v("old_hits_ms", old_hits_ms, {.help = "How much older it is", .unit = "ms", .least = 0, .most = 2000});
    v("silent", silent, {.help = "Floors that send nothing for a time"});
    v("jumps", jumps, {.help = "Floors whose GPS time jumps"});
  }

  // The probabilities of a packet add up to at most 1.
  std::optional<config::Problem> check() const;
};

struct TowerConfig {
  static constexpr config::Component component{"Tower", "One tower of KM3NeT: floors that send, and answer slow control."};

  std::uint64_t seed = 1;
  std::uint32_t tower = 1;
  std::uint32_t floors = 14;
  std::string detector;

  std::vector<std::string> destinations{"udp://127.0.0.1:7100"};
  std::optional<std::string> control;
  std::uint32_t run = 1;
  bool waits_for_start = false;
  std::uint32_t gps_second = 1'500'000'000;
  std::uint32_t slice_ms = 200;
  double duration_s = 10;
  double speed = 1;
  std::uint32_t pool_slices = 0;
  std::uint32_t burst_packets = 4;
  std::uint32_t packet_bytes_max = kPacketBytesMax;

  bool hits = true;
  std::uint32_t samples = 0;
  bool hydrophones = true;
  bool instruments = true;
  NoiseConfig noise;
  std::vector<LoudConfig> loud;
  MuonConfig muons;
  SoundConfig sound;
  FaultsConfig faults;
  std::optional<int> cpu_core;

  template <class Visit>
  void visit(Visit&& v) {
    visit_tower(v);
    visit_run(v);
    visit_data(v);
  }

  // Something is sent, to somewhere.
  std::optional<config::Problem> check() const;

  std::uint64_t slice_ns() const { return std::uint64_t{slice_ms} * 1'000'000; }

 private:
  template <class Visit>
  void visit_tower(Visit& v) {
    v("seed", seed, {.help = "Seed of the random numbers", .least = 0, .below = 0x1p63});
    v("tower", tower, {.help = "Number of the tower", .least = 0, .most = 255});
    v("floors", floors, {.help = "Floors, numbered from 1, the lowest", .unit = "floors", .least = 1, .most = kFloorsMax});
    v("detector", detector,
      {.help = "Detector file (.detx) with the tower's places and time offsets; null: a standard tower of so many floors",
       .nullable = true});
    v("destinations", destinations,
      {.help = "Where to send: one endpoint for all floors, or one for each", .length_least = 1, .form = "Endpoint"});
    v("control", control,
      {.help = "Where floor 1 takes slow control; the others take the ports after it; null: nowhere", .form = "Endpoint"});
  }

  template <class Visit>
  void visit_run(Visit& v) {
    v("run", run, {.help = "Number of the run that begins by itself", .least = 0, .most = 2147483647.0});
    v("waits_for_start", waits_for_start,
      {.help = "No run begins by itself: slow control starts it, with the next second if slices fit into one"});
    v("gps_second", gps_second, {.help = "GPS second at which the program begins", .unit = "s", .least = 0, .most = 4e9});
    v("slice_ms", slice_ms, {.help = "Length of a time slice", .unit = "ms", .least = 1, .most = 2000});
    v("duration_s", duration_s,
      {.help = "How much detector time to send, in whole slices; 0: until stopped", .unit = "s", .least = 0, .most = 86400});
    v("speed", speed, {.help = "Detector time over time; 1: as the tower sends; 0: as fast as possible", .least = 0, .most = 1000});
    v("pool_slices", pool_slices,
      {.help = "Slices made before the run and sent repeatedly, with times of their own; 0: each is made when its turn comes",
       .unit = "slices",
       .least = 0,
       .most = 1000,
       .too_big = "memory: 8 MB a slice with short hits, 105 MB with samples at 300 Mb/s a floor"});
    v("burst_packets", burst_packets, {.help = "Packets of a stream that leave together", .unit = "packets", .least = 1, .most = 48});
    v("packet_bytes_max", packet_bytes_max,
      {.help = "Longest packet", .unit = "bytes", .least = 300, .most = kPacketBytesMax, .too_big = "more than an MTU less 28"});
    v("cpu_core", cpu_core, {.help = "Core of the emulator's thread; null: not pinned", .form = "Core"});
  }

  template <class Visit>
  void visit_data(Visit& v) {
    v("hits", hits, {.help = "Floors send short hits"});
    v("samples", samples,
      {.help = "Floors send hits with so many samples; 0: they do not. 106: 300 Mb/s a floor at 55 kHz",
       .unit = "samples",
       .least = 0,
       .most = 255});
    v("hydrophones", hydrophones, {.help = "Floors send sound, 192 000 samples a second of each of two hydrophones"});
    v("instruments", instruments, {.help = "Floors send what their instruments say, once a slice"});
    v("noise", noise, {.help = "Light of noise"});
    v("loud", loud, {.help = "Bursts of light at given times"});
    v("muons", muons, {.help = "Muons"});
    v("sound", sound, {.help = "Sound"});
    v("faults", faults, {.help = "What goes wrong on purpose"});
  }
};

}  // namespace nanet::km3_emulate
