// SPDX-License-Identifier: Apache-2.0
// Where the PMs of a detector are: read and written as KM3NeT's detector file (.detx), or made as a block of standard towers.
//
// Terms
//   tower   or string: what stands on the sea floor. Numbers are those of the file.
//   floor   a bar with the PMs that one floor control module reads, or an optical module of a string. Its PMs are neighbours in pms().
//   place   on the floor: PMs nearer than 1 m to one another, directly or by way of others (ours). An end of a tower's bar is a place, its
//           middle another; an optical module is one.
//   ends    the two places of a floor that are farthest apart, if they are at least 4 m apart (ours). Coincidences of a floor are between them.
//
// Thread rules: nothing changes after it was made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nanet/km3/hit.hpp"

namespace nanet::km3 {

struct Vector {
  double x = 0;
  double y = 0;
  double z = 0;  // upwards
};

inline constexpr double kPlaceMeters = 1.0;
inline constexpr double kEndsMeters = 4.0;

enum class End : std::uint8_t { none = 0, first = 1, second = 2 };

struct Pm {
  std::int64_t id = 0;
  std::uint32_t floor = 0;  // index in Detector::floors()
  std::uint8_t number = 0;  // on the floor: what a hit's record says
  std::uint8_t place = 0;   // on the floor
  End end = End::none;
  std::int64_t status = 0;
  Vector position_m;
  Vector direction;           // of its axis, into the water
  double time_offset_ns = 0;  // calibrated time = raw time + this
};

struct Floor {
  std::int64_t id = 0;  // of the module
  std::int32_t tower = 0;
  std::int32_t number = 0;  // from 1, the lowest; 0: a module at the bottom of a string
  std::uint32_t first_pm = 0;
  std::uint32_t pm_count = 0;
};

// The head of a detector file, as far as nanet keeps it.
struct DetectorHead {
  std::int64_t id = 0;
  double valid_from_s = 0;  // Unix time
  double valid_until_s = 9'999'999'999.0;
  std::string place_on_earth = "UTM WGS84 33N 587600.0 4016800.0 -3450.0";  // the line as it is
};

// A block of towers on a square. S: 14 floors, 20 m apart, bars of 8 m, each at right angles to the one below it, 6 PMs: 2 at either end, 2 in the
// middle. The rest is ours.
struct TowerBlock {
  std::uint32_t towers = 1;
  std::uint32_t floors = 14;
  double floor_distance_m = 20.0;
  double bar_m = 8.0;
  double lowest_floor_m = 100.0;    // above the sea floor, where z is 0
  double tower_distance_m = 100.0;  // of neighbours
  double pair_distance_m = 0.5;     // of the two PMs of a place, along the bar
};

class Detector {
 public:
  // floors say how many PMs are theirs, and pms follow in their order; the rest (index of the floor, number, place, end, first_pm) is filled in.
  // Throws SetupError: no PM, more than kFloorsMax floors or kPmsMax PMs, more than 255 PMs on a floor, a value that is not finite, two floors with
  // one id.
  Detector(DetectorHead head, std::vector<Floor> floors, std::vector<Pm> pms);

  const DetectorHead& head() const { return head_; }
  const std::vector<Floor>& floors() const { return floors_; }
  const std::vector<Pm>& pms() const { return pms_; }

  // What is added to raw times of a PM: its offset from the smallest offset of all, rounded to 1/1024 ns. So calibrated times begin where the slice
  // does and end at most time_shift_ns_max() after it; the common part, time_base_ns(), is to be added where true time is wanted.
  const std::vector<double>& time_shifts_ns() const { return time_shifts_ns_; }
  double time_shift_ns_max() const { return time_shift_ns_max_; }
  double time_base_ns() const { return time_base_ns_; }

  FloorCalibration calibration(std::uint32_t floor) const;

  // Index of a floor, or floors().size() if there is none.
  std::uint32_t floor_with_id(std::int64_t id) const;
  std::uint32_t floor_at(std::int32_t tower, std::int32_t number) const;

 private:
  void check() const;
  void find_places();
  void make_shifts();

  DetectorHead head_;
  std::vector<Floor> floors_;
  std::vector<Pm> pms_;
  std::vector<double> time_shifts_ns_;
  double time_shift_ns_max_ = 0;
  double time_base_ns_ = 0;
};

inline constexpr std::size_t kFloorsMax = 65'536;
inline constexpr std::size_t kPmsMax = 1u << 21;

// Towers are numbered from 1, floors from 1, PMs of a floor: 0 and 1 at one end, 2 and 3 in the middle, 4 and 5 at the other end. Even ones look down,
// odd ones outwards along the bar (R: NEMO). A floor's id is tower x 2048 + floor x 8, as in the streams of docs/formats-km3.md.
// Throws SetupError.
Detector make_towers(const TowerBlock& block);

// The text of a detector file, versions 1 to 5 (comments and empty lines are skipped). Throws SetupError, which names the line.
Detector read_detx(std::string_view text);

// Version 3, which km3pipe and km3io read: every number so that reading it gives the same bits.
std::string write_detx(const Detector& detector);

}  // namespace nanet::km3
