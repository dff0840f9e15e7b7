// SPDX-License-Identifier: Apache-2.0
#include "nanet/km3/detector.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "nanet/setup_error.hpp"

namespace nanet::km3 {
namespace {

constexpr std::uint32_t kFloorPmsMax = 255;  // a hit names its PM in a byte
constexpr double kShiftsPerNs = 1024.0;

double distance_m(const Vector& a, const Vector& b) { return std::hypot(a.x - b.x, a.y - b.y, a.z - b.z); }

bool is_finite(const Vector& v) { return std::isfinite(v.x) && std::isfinite(v.y) && std::isfinite(v.z); }

void refuse(bool broken, const std::string& problem, const std::string& why, const std::string& suggestion) {
  if (broken) throw SetupError("detector: " + problem, why, suggestion);
}

// Places of the PMs of one floor, numbered in the order of their first PMs.
void number_places(Pm* pms, std::uint32_t count) {
  std::uint8_t places = 0;
  std::vector<bool> known(count, false);
  std::vector<std::uint32_t> reached;
  for (std::uint32_t first = 0; first < count; ++first) {
    if (known[first]) continue;
    known[first] = true;
    reached.assign(1, first);
    while (!reached.empty()) {
      const std::uint32_t here = reached.back();
      reached.pop_back();
      pms[here].place = places;
      for (std::uint32_t k = first + 1; k < count; ++k) {
        if (known[k] || distance_m(pms[here].position_m, pms[k].position_m) >= kPlaceMeters) continue;
        known[k] = true;
        reached.push_back(k);
      }
    }
    ++places;
  }
}

void find_ends(Pm* pms, std::uint32_t count) {
  double farthest_m = kEndsMeters;
  int first = -1;
  int second = -1;
  for (std::uint32_t a = 0; a < count; ++a) {
    for (std::uint32_t b = a + 1; b < count; ++b) {
      const double here_m = distance_m(pms[a].position_m, pms[b].position_m);
      if (pms[a].place == pms[b].place || here_m < farthest_m) continue;
      if (here_m == farthest_m && first >= 0) continue;  // of equals the first
      farthest_m = here_m;
      first = pms[a].place;
      second = pms[b].place;
    }
  }
  for (std::uint32_t k = 0; k < count; ++k) {
    pms[k].end = pms[k].place == first ? End::first : pms[k].place == second ? End::second : End::none;
  }
}

}  // namespace

Detector::Detector(DetectorHead head, std::vector<Floor> floors, std::vector<Pm> pms)
    : head_(std::move(head)), floors_(std::move(floors)), pms_(std::move(pms)) {
  check();
  std::uint32_t next = 0;
  for (std::uint32_t f = 0; f < floors_.size(); ++f) {
    floors_[f].first_pm = next;
    for (std::uint32_t k = 0; k < floors_[f].pm_count; ++k) {
      pms_[next + k].floor = f;
      pms_[next + k].number = static_cast<std::uint8_t>(k);
    }
    next += floors_[f].pm_count;
  }
  find_places();
  make_shifts();
}

void Detector::check() const {
  refuse(pms_.empty(), "no PM", "nothing could be triggered", "give at least one floor with PMs");
  refuse(floors_.size() > kFloorsMax, std::to_string(floors_.size()) + " floors", "at most " + std::to_string(kFloorsMax),
         "divide it");
  refuse(pms_.size() > kPmsMax, std::to_string(pms_.size()) + " PMs", "at most " + std::to_string(kPmsMax), "divide it");
  std::uint64_t pm_count = 0;
  std::unordered_set<std::int64_t> ids;
  for (const Floor& floor : floors_) {
    const std::string name = "floor " + std::to_string(floor.id);
    pm_count += floor.pm_count;
    refuse(floor.pm_count > kFloorPmsMax, name + " has " + std::to_string(floor.pm_count) + " PMs",
           "a hit names its PM in one byte", "give it at most 255");
    refuse(!ids.insert(floor.id).second, name + " comes twice", "an id names one floor", "give each its own");
  }
  refuse(pm_count != pms_.size(), std::to_string(pms_.size()) + " PMs", "the floors say " + std::to_string(pm_count),
         "make them agree");
  for (const Pm& pm : pms_) {
    const bool good = is_finite(pm.position_m) && is_finite(pm.direction) && std::isfinite(pm.time_offset_ns);
    refuse(!good, "PM " + std::to_string(pm.id) + " has a value that is no number", "positions and times are computed with",
           "look at its line");
  }
}

void Detector::find_places() {
  for (const Floor& floor : floors_) {
    number_places(pms_.data() + floor.first_pm, floor.pm_count);
    find_ends(pms_.data() + floor.first_pm, floor.pm_count);
  }
}

void Detector::make_shifts() {
  time_base_ns_ = pms_.front().time_offset_ns;
  for (const Pm& pm : pms_) time_base_ns_ = std::min(time_base_ns_, pm.time_offset_ns);
  for (const Pm& pm : pms_) {
    const double shift_ns = std::nearbyint((pm.time_offset_ns - time_base_ns_) * kShiftsPerNs) / kShiftsPerNs;
    time_shifts_ns_.push_back(shift_ns);
    time_shift_ns_max_ = std::max(time_shift_ns_max_, shift_ns);
  }
}

FloorCalibration Detector::calibration(std::uint32_t floor) const {
  const Floor& one = floors_.at(floor);
  return {one.first_pm, one.pm_count, time_shifts_ns_.data() + one.first_pm};
}

std::uint32_t Detector::floor_with_id(std::int64_t id) const {
  const auto found = std::find_if(floors_.begin(), floors_.end(), [id](const Floor& floor) { return floor.id == id; });
  return static_cast<std::uint32_t>(found - floors_.begin());
}

std::uint32_t Detector::floor_at(std::int32_t tower, std::int32_t number) const {
  const auto found = std::find_if(floors_.begin(), floors_.end(),
                                  [&](const Floor& floor) { return floor.tower == tower && floor.number == number; });
  return static_cast<std::uint32_t>(found - floors_.begin());
}

Detector make_towers(const TowerBlock& block) {
  refuse(block.towers == 0 || block.floors == 0, "no floor", "towers and floors are at least 1", "give both");
  refuse(block.towers > 255 || block.floors > 255, "more than 255 towers, or floors of one", "a packet names each in one byte",
         "make fewer");
  refuse(!(block.bar_m >= kEndsMeters && block.pair_distance_m > 0 && block.bar_m / 2 - 1.5 * block.pair_distance_m >= kPlaceMeters),
         "bars of " + std::to_string(block.bar_m) + " m with pairs " + std::to_string(block.pair_distance_m) + " m apart",
         "places are told by distance: bars from 4 m on, 1 m of water between places", "change bar_m or pair_distance_m");
  const auto side = static_cast<std::uint32_t>(std::ceil(std::sqrt(static_cast<double>(block.towers))));
  std::vector<Floor> floors;
  std::vector<Pm> pms;
  for (std::uint32_t tower = 0; tower < block.towers; ++tower) {
    const double tower_x_m = block.tower_distance_m * (tower % side);
    const double tower_y_m = block.tower_distance_m * (tower / side);
    for (std::uint32_t floor = 0; floor < block.floors; ++floor) {
      const auto number = static_cast<std::int32_t>(floor + 1);
      const auto tower_number = static_cast<std::int32_t>(tower + 1);
      floors.push_back({std::int64_t{tower_number} * 2048 + number * 8, tower_number, number, 0, 6});
      const double along_x = floor % 2 == 0 ? 1.0 : 0.0;
      const double along_y = 1.0 - along_x;
      for (int k = 0; k < 6; ++k) {
        const int side_of_bar = k / 2 - 1;
        const double outwards = k % 2 == 0 ? -0.5 : 0.5;  // of the two of a place, the second is farther out
        // Both PMs of an end lie within the bar.
        const double along_m = side_of_bar == 0 ? outwards * block.pair_distance_m
                                                : side_of_bar * (block.bar_m / 2 + (outwards - 0.5) * block.pair_distance_m);
        Pm pm;
        pm.id = static_cast<std::int64_t>(pms.size()) + 1;
        pm.position_m = {tower_x_m + along_x * along_m, tower_y_m + along_y * along_m,
                         block.lowest_floor_m + block.floor_distance_m * floor};
        const double sign = side_of_bar < 0 ? -1.0 : 1.0;
        pm.direction = k % 2 == 0 ? Vector{0, 0, -1} : Vector{along_x * sign, along_y * sign, 0};
        pms.push_back(pm);
      }
    }
  }
  return Detector(DetectorHead{}, std::move(floors), std::move(pms));
}

}  // namespace nanet::km3
