// SPDX-License-Identifier: Apache-2.0
// nanet.km3: detector and trigger of KM3NeT.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.hpp"
#include "bindings.hpp"
#include "nanet/config/read.hpp"
#include "nanet/km3/trigger.hpp"
#include "values.hpp"

namespace nanet::bindings {
namespace {

using km3::Detector;
using km3::Hit;
using km3::Trigger;

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Points = nb::ndarray<const double, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;

template <class Record>
std::span<const Record> records_of(const Bytes& bytes) {
  if (bytes.size() % sizeof(Record) != 0 || reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(Record) != 0) {
    throw SetupError("hits of " + std::to_string(bytes.size()) + " bytes",
                     "each has " + std::to_string(sizeof(Record)) + ", aligned", "pass an array of nanet.km3.HIT");
  }
  return {reinterpret_cast<const Record*>(bytes.data()), bytes.size() / sizeof(Record)};
}

Array hit_records(const std::vector<Hit>& hits) {
  return to_records(hits, {{"time_ns", "<f8", offsetof(Hit, time_ns)},
                           {"pm", "<u4", offsetof(Hit, pm)},
                           {"charge_pe", "<f4", offsetof(Hit, charge_pe)}});
}

Array seed_records(const std::vector<km3::Seed>& seeds) {
  using km3::Point;
  using km3::Seed;
  return to_records(seeds, {{"x_m", "<f8", offsetof(Seed, point) + offsetof(Point, x)},
                            {"y_m", "<f8", offsetof(Seed, point) + offsetof(Point, y)},
                            {"z_m", "<f8", offsetof(Seed, point) + offsetof(Point, z)},
                            {"time_ns", "<f8", offsetof(Seed, point) + offsetof(Point, time_ns)},
                            {"pm", "<u4", offsetof(Seed, pm)},
                            {"kinds", "<u4", offsetof(Seed, kinds)}});
}

Array event_records(const std::vector<km3::Event>& events) {
  using km3::Event;
  return to_records(events, {{"number", "<u8", offsetof(Event, number)},
                             {"slice", "<u4", offsetof(Event, slice)},
                             {"kinds", "<u4", offsetof(Event, kinds)},
                             {"begin_ns", "<f8", offsetof(Event, begin_ns)},
                             {"end_ns", "<f8", offsetof(Event, end_ns)},
                             {"first_hit", "<u4", offsetof(Event, first_hit)},
                             {"hit_count", "<u4", offsetof(Event, hit_count)},
                             {"first_seed", "<u4", offsetof(Event, first_seed)},
                             {"seed_count", "<u4", offsetof(Event, seed_count)},
                             {"is_cut", "<u4", offsetof(Event, is_cut)}});
}

// Events with all of their hits and seeds, copied: the trigger uses its memory again.
class Found {
 public:
  void add(const Trigger& trigger, std::span<const km3::Event> events) {
    for (km3::Event event : events) {
      const auto hits = trigger.hits(event);
      const auto seeds = trigger.seeds(event);
      event.first_hit = static_cast<std::uint32_t>(hits_.size());
      event.first_seed = static_cast<std::uint32_t>(seeds_.size());
      hits_.insert(hits_.end(), hits.begin(), hits.end());
      seeds_.insert(seeds_.end(), seeds.begin(), seeds.end());
      events_.push_back(event);
    }
  }
  std::tuple<Array, Array, Array> arrays() const { return {event_records(events_), hit_records(hits_), seed_records(seeds_)}; }

 private:
  std::vector<km3::Event> events_;
  std::vector<Hit> hits_;
  std::vector<km3::Seed> seeds_;
};

std::tuple<Array, Array, Array> take_slice(Trigger& trigger, std::uint32_t slice, const Bytes& bytes) {
  const std::span<const Hit> hits = records_of<Hit>(bytes);
  Found found;
  {
    const nb::gil_scoped_release release;
    found.add(trigger, trigger.begin(slice));
    trigger.add(hits);
    found.add(trigger, trigger.finish());
  }
  return found.arrays();
}

std::tuple<Array, Array, Array> flush(Trigger& trigger) {
  Found found;
  found.add(trigger, trigger.flush());
  return found.arrays();
}

nb::dict counts_of(const Trigger& trigger) {
  const km3::TriggerCounts& counts = trigger.counts();
  nb::dict dict;
#define NANET_COUNT(name) dict[#name] = counts.name
  NANET_COUNT(slices);
  NANET_COUNT(slices_missing);
  NANET_COUNT(slices_old);
  NANET_COUNT(hits_in);
  NANET_COUNT(hits_used);
  NANET_COUNT(hits_below_threshold);
  NANET_COUNT(hits_late);
  NANET_COUNT(hits_ahead);
  NANET_COUNT(hits_bad_pm);
  NANET_COUNT(hits_bad_time);
  NANET_COUNT(hits_no_room);
  NANET_COUNT(hits_no_slice);
  NANET_COUNT(seeds);
  NANET_COUNT(seeds_simple);
  NANET_COUNT(seeds_floor);
  NANET_COUNT(seeds_charge);
  NANET_COUNT(seeds_no_room);
  NANET_COUNT(seeds_crowded);
  NANET_COUNT(cliques_given_up);
  NANET_COUNT(seeds_triggered);
  NANET_COUNT(events);
  NANET_COUNT(events_cut);
  NANET_COUNT(events_no_room);
  NANET_COUNT(event_hits);
#undef NANET_COUNT
  return dict;
}

Array pm_records(const Detector& detector) {
  using km3::Pm;
  using km3::Vector;
  return to_records(detector.pms(), {{"id", "<i8", offsetof(Pm, id)},
                                     {"floor", "<u4", offsetof(Pm, floor)},
                                     {"number", "u1", offsetof(Pm, number)},
                                     {"place", "u1", offsetof(Pm, place)},
                                     {"end", "u1", offsetof(Pm, end)},
                                     {"status", "<i8", offsetof(Pm, status)},
                                     {"x_m", "<f8", offsetof(Pm, position_m) + offsetof(Vector, x)},
                                     {"y_m", "<f8", offsetof(Pm, position_m) + offsetof(Vector, y)},
                                     {"z_m", "<f8", offsetof(Pm, position_m) + offsetof(Vector, z)},
                                     {"dx", "<f8", offsetof(Pm, direction) + offsetof(Vector, x)},
                                     {"dy", "<f8", offsetof(Pm, direction) + offsetof(Vector, y)},
                                     {"dz", "<f8", offsetof(Pm, direction) + offsetof(Vector, z)},
                                     {"time_offset_ns", "<f8", offsetof(Pm, time_offset_ns)}});
}

Array floor_records(const Detector& detector) {
  using km3::Floor;
  return to_records(detector.floors(), {{"id", "<i8", offsetof(Floor, id)},
                                        {"tower", "<i4", offsetof(Floor, tower)},
                                        {"number", "<i4", offsetof(Floor, number)},
                                        {"first_pm", "<u4", offsetof(Floor, first_pm)},
                                        {"pm_count", "<u4", offsetof(Floor, pm_count)}});
}

std::tuple<Array, nb::dict> decode(const Detector& detector, std::uint32_t floor, const std::string& kind, const Bytes& bytes) {
  if (floor >= detector.floors().size()) {
    throw SetupError("no floor " + std::to_string(floor), "the detector has " + std::to_string(detector.floors().size()),
                     "count from 0");
  }
  const std::span<const std::byte> unit(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  std::vector<Hit> hits(unit.size() / km3::kHitBytes + 1);
  km3::DecodeCounts counts;
  const km3::FloorCalibration calibration = detector.calibration(floor);
  if (kind == "hits") {
    hits.resize(km3::decode_hits(unit, calibration, hits, counts));
  } else if (kind == "sampled_hits") {
    hits.resize(km3::decode_sampled_hits(unit, calibration, hits, counts));
  } else if (kind == "clb") {
    hits.resize(km3::decode_clb_hits(unit, calibration, hits, counts));
  } else {
    throw SetupError("no kind '" + kind + "'", "records are of hits, sampled_hits or clb", "use one of these");
  }
  nb::dict dict;
  dict["hits"] = counts.hits;
  dict["samples"] = counts.samples;
  dict["records_cut"] = counts.records_cut;
  dict["records_bad_pm"] = counts.records_bad_pm;
  dict["records_bad_pad"] = counts.records_bad_pad;
  return {hit_records(hits), dict};
}

std::tuple<Array, std::uint64_t> pair_degrees(const Points& points, double radius_m, double time_extra_ns, std::size_t window) {
  const std::size_t count = points.shape(0);
  std::vector<std::uint32_t> degrees(count);
  std::uint64_t pairs = 0;
  const double* const values = points.data();
  const km3::Match3B match(radius_m, time_extra_ns);
  {
    const nb::gil_scoped_release release;
    const auto point = [&](std::size_t k) {
      return km3::Point{values[4 * k], values[4 * k + 1], values[4 * k + 2], values[4 * k + 3]};
    };
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t end = std::min(count, window < count ? i + 1 + window : count);
      for (std::size_t k = i + 1; k < end; ++k) {
        if (!match(point(i), point(k))) continue;
        ++degrees[i];
        ++degrees[k];
        ++pairs;
      }
    }
  }
  return {to_array(std::move(degrees)), pairs};
}

}  // namespace

void bind_km3(nb::module_& module) {
  nb::class_<Detector>(module, "Km3Detector", "Where the PMs of a KM3NeT detector are; see nanet.km3.")
      .def_static(
          "from_detx", [](const std::string& text) { return km3::read_detx(text); }, nb::arg("text"))
      .def_static(
          "from_towers",
          [](std::uint32_t towers, std::uint32_t floors, double tower_distance_m) {
            return km3::make_towers({.towers = towers, .floors = floors, .tower_distance_m = tower_distance_m});
          },
          nb::arg("towers"), nb::arg("floors"), nb::arg("tower_distance_m"))
      .def("to_detx", [](const Detector& detector) { return km3::write_detx(detector); })
      .def("pms", &pm_records)
      .def("floors", &floor_records)
      .def("id", [](const Detector& detector) { return detector.head().id; })
      .def("time_base_ns", &Detector::time_base_ns)
      .def("decode", &decode, nb::arg("floor"), nb::arg("kind"), nb::arg("unit"));
  nb::class_<Trigger>(module, "Km3Trigger", "The trigger of a KM3NeT detector; see nanet.km3.")
      .def(
          "__init__",
          [](Trigger* self, const Detector& detector, const nb::dict& settings) {
            new (self) Trigger(detector, config::read<km3::TriggerConfig>(value_of(settings), "trigger"));
          },
          nb::arg("detector"), nb::arg("settings"))
      .def("take_slice", &take_slice, nb::arg("slice"), nb::arg("hits"))
      .def("flush", &flush)
      .def("counts", &counts_of);
  module.attr("KM3_CHARGE_UNIT_PE") = km3::kChargeUnitPe;
  module.attr("KM3_TIME_OVER_THRESHOLD_NS") = km3::kTimeOverThresholdNs;
  module.def("km3_pair_degrees", &pair_degrees, nb::arg("points"), nb::arg("radius_m"), nb::arg("time_extra_ns"), nb::arg("window"),
             "match3B of each hit with the `window` hits after it: (degree of each uint32 [n], number of pairs). points: float64 "
             "[n, 4], x y z [m], "
             "time [ns].");
}

}  // namespace nanet::bindings
