// SPDX-License-Identifier: Apache-2.0
#include "finders.hpp"

#include <nanobind/stl/string.h>

#include <cmath>
#include <type_traits>

#include "arrays.hpp"
#include "config.hpp"
#include "nanet/rich/decision.hpp"

namespace nanet::bindings {
namespace {

// Sets the members of `cuts` that `dict` names; returns how many that were.
template <class Cuts>
std::size_t set_cuts(const nb::dict& dict, Cuts& cuts) {
  std::size_t used = 0;
  cuts.visit([&](const char* name, auto& value, const config::Setting&) {
    if (!dict.contains(name)) return;
    value = get<std::remove_reference_t<decltype(value)>>(dict, name);
    ++used;
  });
  return used;
}

// EventRings as numpy sees it: count, mapped_hits, truncated, more_rings and rings [kMaxRings].
Array event_ring_records(const std::vector<rich::EventRings>& events) {
  const nb::object numpy = nb::module_::import_("numpy");
  const auto dtype_of = [&](std::initializer_list<Field> fields, std::size_t bytes) {
    nb::list names, formats, offsets;
    for (const Field& field : fields) names.append(field.name), formats.append(field.format), offsets.append(field.offset);
    nb::dict spec;
    spec["names"] = names;
    spec["formats"] = formats;
    spec["offsets"] = offsets;
    spec["itemsize"] = bytes;
    return numpy.attr("dtype")(spec);
  };
  const nb::object ring = dtype_of({{"x_mm", "<f4", offsetof(rich::Ring, x_mm)},
                                    {"y_mm", "<f4", offsetof(rich::Ring, y_mm)},
                                    {"radius_mm", "<f4", offsetof(rich::Ring, radius_mm)},
                                    {"rms_mm", "<f4", offsetof(rich::Ring, rms_mm)},
                                    {"time_ns", "<f4", offsetof(rich::Ring, time_ns)},
                                    {"hits", "<u2", offsetof(rich::Ring, hits)},
                                    {"status", "<u2", offsetof(rich::Ring, status)}},
                                   sizeof(rich::Ring));
  nb::list names, formats, offsets;
  for (const char* name : {"count", "mapped_hits", "truncated", "more_rings", "rings"}) names.append(name);
  for (int k = 0; k < 4; ++k) formats.append("<u2");
  formats.append(nb::make_tuple(ring, nb::make_tuple(rich::kMaxRings)));
  for (const std::size_t offset :
       {offsetof(rich::EventRings, count), offsetof(rich::EventRings, mapped_hits), offsetof(rich::EventRings, truncated),
        offsetof(rich::EventRings, more_rings), offsetof(rich::EventRings, rings)}) {
    offsets.append(offset);
  }
  nb::dict spec;
  spec["names"] = names;
  spec["formats"] = formats;
  spec["offsets"] = offsets;
  spec["itemsize"] = sizeof(rich::EventRings);
  std::vector<std::uint8_t> bytes(events.size() * sizeof(rich::EventRings));
  if (!events.empty()) std::memcpy(bytes.data(), static_cast<const void*>(events.data()), bytes.size());
  return nb::steal<Array>(nb::object(to_array(std::move(bytes)).attr("view")(numpy.attr("dtype")(spec))).release());
}

Array find_rings(const std::string& finder, const nb::dict& cuts, const HitArray& hits, const CountArray& counts) {
  const rich::FinderConfig config = finder_config(finder, cuts);
  const std::vector<event::Event> events = events_of(hits, counts);
  std::vector<rich::EventRings> rings(events.size());
  {
    nb::gil_scoped_release release;
    rich::find_rings(config, events, rings);
  }
  return event_ring_records(rings);
}

Array find_rings_scalar(const std::string& finder, const nb::dict& cuts, const HitArray& hits, const CountArray& counts) {
  const rich::FinderConfig config = finder_config(finder, cuts);
  const std::vector<event::Event> events = events_of(hits, counts);
  std::vector<rich::EventRings> rings(events.size());
  {
    nb::gil_scoped_release release;
    for (std::size_t e = 0; e < events.size(); ++e) rings[e] = rich::find_rings_scalar(config, events[e]);
  }
  return event_ring_records(rings);
}

// What a rich::Verdict says, and the primitive that it makes.
struct Judgement {
  rich::Verdict verdict;
  std::uint16_t primitive_id;
};

// rings: the bytes of find_rings' answer.
Array judge(const nb::dict& dict, const nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& rings) {
  const rich::Decision decision = decision_config(dict);
  if (rings.size() % sizeof(rich::EventRings) != 0) {
    throw SetupError("these are no rings of events", std::to_string(rings.size()) + " bytes", "pass what find_rings returned");
  }
  std::vector<Judgement> judged(rings.size() / sizeof(rich::EventRings));
  for (std::size_t e = 0; e < judged.size(); ++e) {
    rich::EventRings event;
    std::memcpy(&event, rings.data() + e * sizeof(event), sizeof(event));
    judged[e].verdict = rich::judge(event, decision.cuts);
    judged[e].primitive_id = rich::primitive_id(judged[e].verdict, decision.conditions);
  }
  const auto verdict = [](std::size_t offset) { return offsetof(Judgement, verdict) + offset; };
  using rich::Verdict;
  return to_records(judged, {{"rings", "u1", verdict(offsetof(Verdict, rings))},
                             {"electrons", "u1", verdict(offsetof(Verdict, electrons))},
                             {"muons", "u1", verdict(offsetof(Verdict, muons))},
                             {"pions", "u1", verdict(offsetof(Verdict, pions))},
                             {"kaons", "u1", verdict(offsetof(Verdict, kaons))},
                             {"multiplicity", "u1", verdict(offsetof(Verdict, multiplicity))},
                             {"good_rings", "u1", verdict(offsetof(Verdict, good_rings))},
                             {"radius_mm", "<f4", verdict(offsetof(Verdict, radius_mm))},
                             {"primitive_id", "<u2", offsetof(Judgement, primitive_id)}});
}

nb::list finder_names() {
  nb::list names;
  for (std::uint32_t k = 0; k < rich::kFinderCount; ++k) names.append(rich::finder_name(static_cast<rich::FinderKind>(k)));
  return names;
}

nb::dict default_finder_cuts() {
  nb::dict finders;
  rich::FinderConfig config;
  config.visit_cuts([&](const char* finder, auto& cuts) {
    nb::dict dict;
    cuts.visit([&](const char* name, auto& value, const config::Setting&) { dict[name] = value; });
    finders[finder] = dict;
  });
  return finders;
}

}  // namespace

rich::FinderConfig finder_config(const std::string& finder, const nb::dict& cuts) {
  rich::FinderConfig config;
  std::uint32_t kind = 0;
  while (kind < rich::kFinderCount && finder != rich::finder_name(static_cast<rich::FinderKind>(kind))) ++kind;
  if (kind == rich::kFinderCount) {
    throw SetupError("no ring finder " + finder, "there are math, almagest, triplets, mixture and more",
                     "see nanet._core.finder_names()");
  }
  config.kind = static_cast<rich::FinderKind>(kind);
  std::size_t used = 0;
  config.visit_cuts([&](const char* name, auto& of_finder) {
    if (finder == name) used = set_cuts(cuts, of_finder);
  });
  if (used != cuts.size()) {
    throw SetupError("a cut of finder " + finder + " is unknown", "given were " + std::string(nb::repr(cuts).c_str()),
                     "see nanet._core.default_finder_cuts()");
  }
  return config;
}

std::vector<event::Event> events_of(const HitArray& hits, const CountArray& counts) {
  if (hits.shape(0) != counts.shape(0)) {
    throw SetupError("hits and counts differ in length", std::to_string(hits.shape(0)) + " and " + std::to_string(counts.shape(0)),
                     "give one count an event");
  }
  std::vector<event::Event> events(counts.shape(0));
  for (std::size_t e = 0; e < events.size(); ++e) {
    if (counts(e) > hits.shape(1)) {
      throw SetupError("event " + std::to_string(e) + " has more hits than its row",
                       std::to_string(counts(e)) + " against " + std::to_string(hits.shape(1)), "make the rows wider");
    }
    events[e] = {hits.data() + e * hits.shape(1), counts(e)};
  }
  return events;
}

void bind_finders(nb::module_& module) {
  module.def("finder_names", &finder_names, "Names of all ring finders.");
  module.def("default_finder_cuts", &default_finder_cuts, "{finder: {cut: default}}; a finder without cuts is not in it.");
  module.def(
      "find_rings", &find_rings, nb::arg("finder"), nb::arg("cuts"), nb::arg("hits"), nb::arg("counts"),
      "Rings of each event. hits: uint16 [events, width], counts: uint32 [events]; cuts: {cut: number}, the others keep their "
      "default. Returns a structured array [events]: count, mapped_hits, truncated, more_rings, rings [4] of x_mm, y_mm, "
      "radius_mm, rms_mm, "
      "time_ns, hits, status.");
  module.def("judge", &judge, nb::arg("decision"), nb::arg("rings"),
             "decision: a dictionary with `cuts` and `conditions`; rings: find_rings' answer as uint8. Returns a structured array "
             "[events]: rings, electrons, muons, pions, kaons, multiplicity, good_rings (bits), radius_mm, primitive_id.");
  module.def("find_rings_scalar", &find_rings_scalar, nb::arg("finder"), nb::arg("cuts"), nb::arg("hits"), nb::arg("counts"),
             "The same by the scalar function, one event after the other. Gives the same bits.");
}

}  // namespace nanet::bindings
