// SPDX-License-Identifier: Apache-2.0
// PhysicsSample: Monte Carlo events that stay here, their truth as arrays, and what a ring finder makes of them.
//
// A true ring is one with light (radius above 0); only those are looked for. Columns named `ring...` have an entry a true ring, in order of event.
// Distances in mm, times in ns.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <tuple>

#include "arrays.hpp"
#include "config.hpp"
#include "emulate/monte_carlo.hpp"
#include "emulate/ring_match.hpp"
#include "finders.hpp"

namespace nanet::bindings {
namespace {

using emulate::McEvent;
using emulate::McRing;
using rich::EventRings;

constexpr double kTimingNs = 2.5e8;  // passes are repeated until this is spent, to keep the fastest
constexpr std::size_t kTriesAnEvent = 1000;

double distance_mm(const McRing& a, const McRing& b) { return std::hypot(a.x_mm - b.x_mm, a.y_mm - b.y_mm); }

bool are_apart(const emulate::McTruth& truth, double apart_mm) {
  for (std::uint32_t a = 0; a < truth.ring_count; ++a) {
    for (std::uint32_t b = 0; b < a; ++b) {
      if (distance_mm(truth.rings[a], truth.rings[b]) < apart_mm) return false;
    }
  }
  return true;
}

class PhysicsSample {
 public:
  PhysicsSample(const emulate::MonteCarloConfig& config, std::size_t event_count, double centers_apart_mm);

  nb::dict measure(const std::string& finder, const nb::dict& cuts, const std::string& how, int passes) const;
  nb::dict truth() const;
  std::tuple<Array, Array, Array> hits() const;

 private:
  // Of a true ring.
  struct RingOf {
    std::uint32_t event;
    std::uint32_t ring;
  };

  const McRing& ring_of(const RingOf& at) const { return events_[at.event].truth.rings[at.ring]; }
  template <class T, class Value>
  nb::object ring_column(Value value) const {
    std::vector<T> column;
    column.reserve(rings_.size());
    for (const RingOf& at : rings_) column.push_back(static_cast<T>(value(at)));
    return to_array(std::move(column));
  }
  template <class T, class Value>
  nb::object event_column(Value value) const {
    std::vector<T> column;
    column.reserve(events_.size());
    for (std::size_t e = 0; e < events_.size(); ++e) column.push_back(static_cast<T>(value(e)));
    return to_array(std::move(column));
  }
  double nearest_mm(const RingOf& at) const;
  nb::dict against_truth(const std::vector<EventRings>& found) const;

  std::vector<McEvent> events_;
  std::vector<RingOf> rings_;
};

PhysicsSample::PhysicsSample(const emulate::MonteCarloConfig& config, std::size_t event_count, double centers_apart_mm) {
  emulate::MonteCarlo monte_carlo(config);
  events_.reserve(event_count);
  McEvent event;
  for (std::size_t tries = 0; events_.size() < event_count; ++tries) {
    if (tries == kTriesAnEvent * event_count) {
      throw SetupError("too few events with centres " + std::to_string(centers_apart_mm) + " mm apart",
                       "fewer than one in " + std::to_string(kTriesAnEvent), "ask for a smaller distance");
    }
    monte_carlo.next(event);
    if (are_apart(event.truth, centers_apart_mm)) events_.push_back(event);
  }
  for (std::uint32_t e = 0; e < events_.size(); ++e) {
    for (std::uint32_t r = 0; r < events_[e].truth.ring_count; ++r) {
      if (events_[e].truth.rings[r].radius_mm > 0) rings_.push_back({e, r});
    }
  }
}

// To the nearest other true centre; infinite where there is none.
double PhysicsSample::nearest_mm(const RingOf& at) const {
  const emulate::McTruth& truth = events_[at.event].truth;
  double nearest = std::numeric_limits<double>::infinity();
  for (std::uint32_t r = 0; r < truth.ring_count; ++r) {
    if (r != at.ring && truth.rings[r].radius_mm > 0) nearest = std::min(nearest, distance_mm(truth.rings[r], ring_of(at)));
  }
  return nearest;
}

nb::dict PhysicsSample::truth() const {
  const auto squares = [&](const RingOf& at) {
    std::array<float, emulate::kMaxEventHits> distances_mm;
    const std::uint32_t count = emulate::hit_residuals(events_[at.event], at.ring, distances_mm);
    double sum = 0;
    for (std::uint32_t k = 0; k < count; ++k) sum += double{distances_mm[k]} * double{distances_mm[k]};
    return sum;
  };
  const auto hit_count = [&](const RingOf& at) {
    const McEvent& event = events_[at.event];
    return std::count_if(event.owners.begin(), event.owners.begin() + event.hit_count,
                         [&](std::uint8_t owners) { return (owners >> at.ring & 1) != 0; });
  };
  std::vector<std::uint32_t> rings_in_event(events_.size());
  for (const RingOf& at : rings_) ++rings_in_event[at.event];
  nb::dict dict;
  dict["ring_event"] = ring_column<std::uint32_t>([](const RingOf& at) { return at.event; });
  dict["ring_index"] = ring_column<std::uint8_t>([](const RingOf& at) { return at.ring; });
  dict["ring_particle"] = ring_column<std::uint8_t>([&](const RingOf& at) { return ring_of(at).particle; });
  dict["ring_disk"] = ring_column<std::uint8_t>([&](const RingOf& at) { return ring_of(at).disk; });
  dict["ring_momentum_gev"] = ring_column<float>([&](const RingOf& at) { return ring_of(at).momentum_gev; });
  dict["ring_x_mm"] = ring_column<float>([&](const RingOf& at) { return ring_of(at).x_mm; });
  dict["ring_y_mm"] = ring_column<float>([&](const RingOf& at) { return ring_of(at).y_mm; });
  dict["ring_radius_mm"] = ring_column<float>([&](const RingOf& at) { return ring_of(at).radius_mm; });
  dict["ring_time_ns"] = ring_column<float>([&](const RingOf& at) { return ring_of(at).time_ns; });
  dict["ring_hits"] = ring_column<std::uint16_t>(hit_count);
  dict["ring_bound"] = ring_column<double>([&](const RingOf& at) { return emulate::radius_bound(events_[at.event], at.ring); });
  dict["ring_squares_mm2"] = ring_column<double>(squares);
  dict["ring_nearest_mm"] = ring_column<double>([&](const RingOf& at) { return nearest_mm(at); });
  dict["event_rings"] = to_array(std::move(rings_in_event));
  dict["event_hits"] = event_column<std::uint32_t>([&](std::size_t e) { return events_[e].hit_count; });
  dict["event_noise_hits"] = event_column<std::uint32_t>([&](std::size_t e) { return events_[e].truth.noise_hits; });
  return dict;
}

nb::dict PhysicsSample::against_truth(const std::vector<EventRings>& found) const {
  std::vector<emulate::RingMatch> matches;
  matches.reserve(events_.size());
  for (std::size_t e = 0; e < events_.size(); ++e) matches.push_back(emulate::match_rings(events_[e].truth, found[e]));
  const auto partner = [&](const RingOf& at) -> const rich::Ring* {
    const std::int8_t index = matches[at.event].found_of[at.ring];
    return index == emulate::kUnmatched ? nullptr : &found[at.event].rings[index];
  };
  const auto column = [&](auto value) {
    return ring_column<float>([&](const RingOf& at) {
      const rich::Ring* ring = partner(at);
      return ring == nullptr ? std::numeric_limits<float>::quiet_NaN() : value(*ring, ring_of(at));
    });
  };
  using rich::Ring;
  nb::dict dict;
  dict["ring_matched"] = ring_column<std::uint8_t>([&](const RingOf& at) { return partner(at) != nullptr ? 1 : 0; });
  dict["ring_dx_mm"] = column([](const Ring& ring, const McRing& truth) { return ring.x_mm - truth.x_mm; });
  dict["ring_dy_mm"] = column([](const Ring& ring, const McRing& truth) { return ring.y_mm - truth.y_mm; });
  dict["ring_dr_mm"] = column([](const Ring& ring, const McRing& truth) { return ring.radius_mm - truth.radius_mm; });
  dict["ring_dt_ns"] = column([](const Ring& ring, const McRing& truth) { return ring.time_ns - truth.time_ns; });
  dict["ring_found_radius_mm"] = column([](const Ring& ring, const McRing&) { return ring.radius_mm; });
  dict["ring_found_rms_mm"] = column([](const Ring& ring, const McRing&) { return ring.rms_mm; });
  dict["ring_found_hits"] = column([](const Ring& ring, const McRing&) { return static_cast<float>(ring.hits); });
  dict["event_found"] = event_column<std::uint32_t>([&](std::size_t e) { return found[e].count; });
  dict["event_fakes"] = event_column<std::uint32_t>([&](std::size_t e) { return matches[e].fakes; });
  dict["event_clones"] = event_column<std::uint32_t>([&](std::size_t e) { return matches[e].clones; });
  return dict;
}

nb::dict PhysicsSample::measure(const std::string& finder, const nb::dict& cuts, const std::string& how, int passes) const {
  if (how != "vector" && how != "scalar" && how != "oracle") {
    throw SetupError("no way '" + how + "' to find rings", "there are vector, scalar and oracle", "choose one of them");
  }
  const rich::FinderConfig config = how == "oracle" ? rich::FinderConfig{} : finder_config(finder, cuts);
  std::vector<std::uint16_t> hits;  // one event behind the other, as packets hold them: a rate should not be that of spread-out memory
  for (const McEvent& event : events_) hits.insert(hits.end(), event.hits.begin(), event.hits.begin() + event.hit_count);
  std::vector<event::Event> events;
  events.reserve(events_.size());
  const std::uint16_t* next = hits.data();
  for (const McEvent& event : events_) {
    events.push_back({next, event.hit_count});
    next += event.hit_count;
  }
  std::vector<EventRings> found(events_.size());
  const auto find = [&] {
    if (how == "vector") return rich::find_rings(config, events, found);
    for (std::size_t e = 0; e < events.size(); ++e) {
      found[e] = how == "oracle" ? emulate::oracle_rings(events_[e]) : rich::find_rings_scalar(config, events[e]);
    }
  };
  double best_ns = std::numeric_limits<double>::infinity();
  {
    nb::gil_scoped_release release;
    double spent_ns = 0;
    for (int pass = 0; pass < std::max(passes, 1) && (pass == 0 || spent_ns < kTimingNs); ++pass) {
      const auto begin = std::chrono::steady_clock::now();
      find();
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
      best_ns = std::min(best_ns, took.count());
      spent_ns += took.count();
    }
  }
  nb::dict dict = against_truth(found);
  dict["ns_per_event"] = best_ns / static_cast<double>(std::max<std::size_t>(events_.size(), 1));
  return dict;
}

std::tuple<Array, Array, Array> PhysicsSample::hits() const {
  std::vector<std::uint16_t> hits(events_.size() * emulate::kMaxEventHits);
  std::vector<std::uint8_t> owners(hits.size());
  std::vector<std::uint32_t> counts(events_.size());
  for (std::size_t e = 0; e < events_.size(); ++e) {
    const auto to = static_cast<std::ptrdiff_t>(e * emulate::kMaxEventHits);
    std::copy_n(events_[e].hits.begin(), events_[e].hit_count, hits.begin() + to);
    std::copy_n(events_[e].owners.begin(), events_[e].hit_count, owners.begin() + to);
    counts[e] = events_[e].hit_count;
  }
  return {to_array(std::move(hits), {events_.size(), emulate::kMaxEventHits}), to_array(std::move(counts)),
          to_array(std::move(owners), {events_.size(), emulate::kMaxEventHits})};
}

PhysicsSample physics_sample(const nb::dict& config, std::size_t event_count, double centers_apart_mm) {
  const emulate::MonteCarloConfig made = monte_carlo_config(config);
  nb::gil_scoped_release release;
  return {made, event_count, centers_apart_mm};
}

double mean_photons(const nb::dict& config, double radius_mm) {
  return emulate::MonteCarlo(monte_carlo_config(config)).mean_photons(radius_mm);
}

}  // namespace

void bind_physics(nb::module_& module) {
  nb::class_<PhysicsSample>(module, "PhysicsSample",
                            "Simulated events with truth, and what ring finders make of them. Columns `ring_...` have an entry a "
                            "true ring with light, columns `event_...` one an event.")
      .def("truth", &PhysicsSample::truth,
           "Columns: ring_event, _index, _particle (0 e, 1 mu, 2 pi, 3 K, 4 none), _disk, _momentum_gev, _x_mm, _y_mm, _radius_mm, "
           "_time_ns, _hits, _bound (least error of the radius in units of a hit's error), _squares_mm2 (sum of squared distances "
           "of its hits), _nearest_mm (to the next true centre); event_rings, event_hits, event_noise_hits.")
      .def("hits", &PhysicsSample::hits,
           "(hits uint16 [events, 128], counts uint32 [events], owners uint8 [events, 128]: bit r: ring r fired it).")
      .def("measure", &PhysicsSample::measure, nb::arg("finder"), nb::arg("cuts"), nb::arg("how") = "vector", nb::arg("passes") = 3,
           "Columns of found against true rings, NaN where not found: ring_matched, _dx_mm, _dy_mm, _dr_mm, _dt_ns, "
           "_found_radius_mm, _found_rms_mm, _found_hits; event_found, event_fakes, event_clones; and ns_per_event, of the fastest "
           "pass. how: vector, scalar, or oracle (the true hits of each ring are given; finder and cuts are not used).");
  module.def("physics_sample", &physics_sample, nb::arg("config"), nb::arg("event_count"), nb::arg("centers_apart_mm") = 0.0,
             "Events of a Monte Carlo configuration whose true centres are at least so far apart.");
  module.def("mean_photons", &mean_photons, nb::arg("config"), nb::arg("radius_mm"),
             "Mean photons of a ring of this radius, before any is lost or shares a photomultiplier.");
}

}  // namespace nanet::bindings
