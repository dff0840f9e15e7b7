// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "bindings.hpp"
#include "km3_emulate/tower.hpp"
#include "nanet/config/read.hpp"
#include "values.hpp"

namespace nanet::bindings {
namespace {

using km3_emulate::Tower;
using km3_emulate::TowerConfig;
using km3_emulate::UnitMaker;

TowerConfig tower_config(const nb::dict& dict) { return config::read<TowerConfig>(value_of(dict)); }

// The detector of a file's text; of none: a standard one that has the tower.
km3::Detector detector_of(const TowerConfig& config, const std::string& text) {
  if (!text.empty()) return km3::read_detx(text);
  return km3::make_towers({.towers = std::max(1u, config.tower), .floors = config.floors});
}

nb::tuple tuple_of(const km3::Vector& vector) { return nb::make_tuple(vector.x, vector.y, vector.z); }

nb::list hits_of(const km3_emulate::Track& track) {
  nb::list hits;
  for (const km3_emulate::LightHit& hit : track.hits) {
    nb::dict one;
    one["floor"] = hit.floor + 1;
    one["pm"] = hit.pm;
    one["time_ns"] = hit.time_ns;
    one["charge"] = hit.charge;
    one["scattered"] = hit.scattered;
    hits.append(one);
  }
  return hits;
}

nb::list tracks(UnitMaker& maker, std::uint64_t slice) {
  nb::list all;
  for (const km3_emulate::Track& track : maker.tracks(slice)) {
    nb::dict one;
    one["slice"] = slice;
    one["time_ns"] = track.time_ns;
    one["position_m"] = tuple_of(track.point_m);
    one["direction"] = tuple_of(track.direction);
    one["hits"] = hits_of(track);
    all.append(one);
  }
  return all;
}

nb::bytes unit(UnitMaker& maker, std::uint64_t slice, std::uint32_t floor, int kind) {
  if (floor == 0 || floor > maker.floor_count() || kind < 1 || kind > 5) {
    throw SetupError("no unit of floor " + std::to_string(floor) + ", kind " + std::to_string(kind),
                     "floors are numbered from 1, kinds are 1 to 5", "see docs/formats-km3.md");
  }
  std::vector<std::byte> bytes;
  maker.unit(slice, floor - 1, static_cast<km3_emulate::Kind>(kind), km3_emulate::kFloorSettings, bytes);
  return nb::bytes(bytes.data(), bytes.size());
}

nb::list places(const UnitMaker& maker) {
  nb::list all;
  for (std::uint32_t floor = 0; floor < maker.floor_count(); ++floor) {
    for (std::uint32_t pm = 0; pm < km3_emulate::kPms; ++pm) {
      const km3::Pm& place = maker.detector().pms()[maker.first_pm(floor) + pm];
      nb::dict one;
      one["floor"] = floor + 1;
      one["pm"] = pm;
      one["position_m"] = tuple_of(place.position_m);
      one["direction"] = tuple_of(place.direction);
      one["time_offset_ns"] = place.time_offset_ns;
      all.append(one);
    }
  }
  return all;
}

nb::dict tower_snapshot(const Tower& tower) {
  nb::dict dict;
  for (std::size_t k = 0; k < km3_emulate::kTowerCounters; ++k) {
    dict[nb::str(km3_emulate::kTowerCounterNames[k].data())] = tower.counters().value(static_cast<km3_emulate::TowerCounter>(k));
  }
  nb::dict damaged;
  for (std::size_t k = 0; k < std::size(km3_emulate::kPacketFields); ++k) {
    damaged[nb::str(km3_emulate::kPacketFields[k].name.data())] = tower.counters().damaged(k);
  }
  dict["damaged_fields"] = damaged;
  dict["elapsed_s"] = 1e-9 * static_cast<double>(tower.elapsed_ns());
  dict["lateness"] = nb::cast(tower.lateness());
  const link::LinkStats stats = tower.link_stats();
  dict["tx_dropped"] = stats.tx_dropped;
  dict["tx_refused"] = stats.tx_refused;
  dict["tx_calls"] = stats.tx_calls;
  dict["refused_by"] = tower.refusals();
  return dict;
}

}  // namespace

void bind_km3_emulate(nb::module_& module) {
  module.def(
      "look_up",
      [](const std::string& url) {
        const link::Endpoint found = link::parse_endpoint(url);
        return nb::make_tuple(link::to_string(found.address), found.port);
      },
      nb::arg("url"), "Address and port of an endpoint udp://HOST:PORT. Raises SetupError.");
  nb::class_<UnitMaker>(module, "TowerUnits",
                        "What the floors of an emulated tower send, made again: bytes of units, tracks, places.")
      .def(
          "__init__",
          [](UnitMaker* self, const nb::dict& config, const std::string& detector) {
            const TowerConfig read = tower_config(config);
            new (self) UnitMaker(read, detector_of(read, detector));
          },
          nb::arg("config"), nb::arg("detector") = "")
      .def("unit", &unit, nb::arg("slice"), nb::arg("floor"), nb::arg("kind"),
           "The bytes of a unit, with the settings that a floor has at first.")
      .def("tracks", &tracks, nb::arg("slice"),
           "The muons of a slice: time_ns since it began, position_m there, direction, hits (floor, pm, time_ns, charge, "
           "scattered).")
      .def(
          "instrument",
          [](const UnitMaker& maker, std::uint64_t slice, std::uint32_t floor, std::uint16_t number) {
            return maker.instrument(slice, floor - 1, number);
          },
          nb::arg("slice"), nb::arg("floor"), nb::arg("number"), "What an instrument of a floor says in a slice.")
      .def("places", &places, "Floor, pm, position_m, direction and time_offset_ns of each photomultiplier.")
      .def(
          "detx", [](const UnitMaker& maker) { return km3::write_detx(maker.detector()); }, "The detector file.");
  nb::class_<Tower>(module, "Tower", "The floors of one tower, in one thread.")
      .def(
          "__init__",
          [](Tower* self, const nb::dict& config, const std::string& detector) {
            const TowerConfig read = tower_config(config);
            new (self) Tower(read, detector_of(read, detector));
          },
          nb::arg("config"), nb::arg("detector") = "")
      .def("start", &Tower::start, nb::call_guard<nb::gil_scoped_release>())
      .def("stop", &Tower::stop, nb::call_guard<nb::gil_scoped_release>(), "Ends sending and joins.")
      .def("wait", &wait_for_end<Tower>, nb::arg("timeout_s"), "True when all is sent, False after timeout_s.")
      .def_prop_ro("running", &Tower::running)
      .def_prop_ro("notes", &Tower::notes)
      .def_prop_ro("control_ports", &Tower::control_ports)
      .def("snapshot", &tower_snapshot, "Counters, time, lateness.");
}

}  // namespace nanet::bindings
