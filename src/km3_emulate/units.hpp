// SPDX-License-Identifier: Apache-2.0
// The bytes of units (docs/formats-km3.md): what a floor sends of one kind in one slice. A unit depends on the configuration, its slice, floor and
// kind alone, so any can be made again: for a test, and for the truth.
//
// Thread rules: unit() keeps the tracks of the slices that it was asked for last: one thread per object. It allocates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "km3_emulate/config.hpp"
#include "km3_emulate/random.hpp"
#include "km3_emulate/sound.hpp"
#include "km3_emulate/tracks.hpp"
#include "nanet/km3/detector.hpp"

namespace nanet::km3_emulate {

enum class Kind : std::uint8_t { hits = 1, sampled = 2, hydrophone_0 = 3, hydrophone_1 = 4, instruments = 5 };

// What slow control changes of a floor.
struct FloorSettings {
  std::array<std::int32_t, kPms> voltage;     // 0.1 V; 0: the PM sees nothing
  std::array<std::int32_t, kPms> threshold;   // 0.01 photo-electrons; hits below it are not sent
  std::array<std::int32_t, 2> hydrophone_on;  // else the hydrophone's units are empty
};
inline constexpr FloorSettings kFloorSettings{{15000, 15000, 15000, 15000, 15000, 15000}, {30, 30, 30, 30, 30, 30}, {1, 1}};

inline constexpr std::int32_t kTemperature = 1390;  // of sea water down there, 0.01 degrees C
inline constexpr std::uint16_t kInstruments[] = {64, 65, 66, 67};

class UnitMaker {
 public:
  // Throws SetupError where the detector has no such tower.
  UnitMaker(const TowerConfig& config, km3::Detector detector);
  UnitMaker(const UnitMaker&) = delete;  // its parts refer to it

  const km3::Detector& detector() const { return detector_; }
  std::uint32_t first_pm(std::uint32_t floor) const { return first_pms_[floor]; }  // floor: from 0, here and below
  std::uint32_t floor_count() const { return static_cast<std::uint32_t>(first_pms_.size()); }
  const std::vector<Kind>& kinds() const { return kinds_; }

  // The unit replaces what is in `bytes`. Counts the hits of each PM in `hits`, if it is a unit of hits.
  void unit(std::uint64_t slice, std::uint32_t floor, Kind kind, const FloorSettings& settings, std::vector<std::byte>& bytes,
            std::array<std::uint32_t, kPms>* hits = nullptr);

  // Those of TrackMaker. The light of the slice itself is in them, and that of the neighbours.
  const std::vector<Track>& tracks(std::uint64_t slice);

  std::int32_t instrument(std::uint64_t slice, std::uint32_t floor, std::uint16_t number) const;

 private:
  struct NoiseHit {
    double time_ns;
    std::uint8_t pm;
    std::uint8_t charge;
  };
  struct Stretch {  // of a slice, with one rate
    double begin_ns;
    double end_ns;
    double factor;
  };
  struct Kept {
    std::uint64_t slice = ~std::uint64_t{0};
    std::vector<Track> tracks;
  };

  void find_floors();
  void make_charges();
  std::vector<Stretch> stretches(std::uint64_t slice, std::uint32_t floor) const;
  std::vector<NoiseHit> coincident(std::uint64_t slice, std::uint32_t floor);
  void add_coincidences(Random& random, std::uint32_t of, std::uint32_t first_pm, std::uint32_t pm_count, double rate_hz,
                        std::vector<NoiseHit>& hits) const;
  void add_light(std::uint64_t slice, std::uint32_t floor, std::vector<NoiseHit>& hits);
  void hits_unit(std::uint64_t slice, std::uint32_t floor, bool sampled, const FloorSettings& settings,
                 std::vector<std::byte>& bytes, std::array<std::uint32_t, kPms>* counts);
  void instruments_unit(std::uint64_t slice, std::uint32_t floor, std::vector<std::byte>& bytes) const;

  TowerConfig config_;
  km3::Detector detector_;
  std::vector<std::uint32_t> first_pms_;  // by floor
  std::vector<Kind> kinds_;
  std::optional<TrackMaker> track_maker_;
  std::optional<SoundMaker> sound_;
  std::array<Kept, 4> kept_;
  std::vector<std::uint8_t> charges_;  // of single hits, drawn evenly from
  std::vector<std::byte> pulses_;      // samples by charge
};

}  // namespace nanet::km3_emulate
