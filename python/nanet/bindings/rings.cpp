// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/tuple.h>

#include <limits>
#include <tuple>

#include "arrays.hpp"
#include "bindings.hpp"
#include "config.hpp"
#include "emulate/monte_carlo.hpp"
#include "finders.hpp"
#include "nanet/rich/pm_map.hpp"
#include "rich/math_fit.hpp"
#include "rich/ring_cuts_config.hpp"

namespace nanet::bindings {
namespace {

Array ring_records(const std::vector<rich::Ring>& rings) {
  return to_records(rings, {{"x_mm", "<f4", offsetof(rich::Ring, x_mm)},
                            {"y_mm", "<f4", offsetof(rich::Ring, y_mm)},
                            {"radius_mm", "<f4", offsetof(rich::Ring, radius_mm)},
                            {"rms_mm", "<f4", offsetof(rich::Ring, rms_mm)},
                            {"time_ns", "<f4", offsetof(rich::Ring, time_ns)},
                            {"hits", "<u2", offsetof(rich::Ring, hits)},
                            {"status", "<u2", offsetof(rich::Ring, status)}});
}

Array fit_rings(const HitArray& hits, const CountArray& counts) {
  const std::vector<event::Event> events = events_of(hits, counts);
  std::vector<rich::Ring> rings(events.size());
  {
    nb::gil_scoped_release release;
    rich::fit_rings(events, rings);
  }
  return ring_records(rings);
}

Array fit_rings_scalar(const HitArray& hits, const CountArray& counts) {
  const std::vector<event::Event> events = events_of(hits, counts);
  std::vector<rich::Ring> rings(events.size());
  {
    nb::gil_scoped_release release;
    for (std::size_t e = 0; e < events.size(); ++e) rings[e] = rich::fit_ring(events[e]);
  }
  return ring_records(rings);
}

Array pm_positions() {
  std::vector<float> positions;
  for (const rich::Pm& pm : rich::kPmMap) {
    positions.push_back(pm.mapped ? static_cast<float>(pm.x_mm()) : std::numeric_limits<float>::quiet_NaN());
    positions.push_back(pm.mapped ? static_cast<float>(pm.y_mm()) : std::numeric_limits<float>::quiet_NaN());
  }
  return to_array(std::move(positions), {rich::kChannelCount, 2});
}

std::tuple<Array, Array, Array> monte_carlo(const nb::dict& dict, std::size_t event_count) {
  const emulate::MonteCarloConfig config = monte_carlo_config(dict);
  emulate::MonteCarlo generator(config);
  std::vector<std::uint16_t> hits(event_count * config.hits_max);
  std::vector<std::uint32_t> counts(event_count);
  std::vector<emulate::McTruth> truth(event_count);
  emulate::McEvent event;
  for (std::size_t e = 0; e < event_count; ++e) {
    generator.next(event);
    std::copy_n(event.hits.begin(), event.hit_count, hits.begin() + static_cast<std::ptrdiff_t>(e * config.hits_max));
    counts[e] = event.hit_count;
    truth[e] = event.truth;
  }
  using emulate::McTruth;
  return {to_array(std::move(hits), {event_count, config.hits_max}), to_array(std::move(counts)),
          to_records(truth, {{"particle", "u1", offsetof(McTruth, rings) + offsetof(emulate::McRing, particle)},
                             {"disk", "u1", offsetof(McTruth, rings) + offsetof(emulate::McRing, disk)},
                             {"ring_hits", "<u2", offsetof(McTruth, ring_hits)},
                             {"noise_hits", "<u2", offsetof(McTruth, noise_hits)},
                             {"momentum_gev", "<f4", offsetof(McTruth, rings) + offsetof(emulate::McRing, momentum_gev)},
                             {"x_mm", "<f4", offsetof(McTruth, rings) + offsetof(emulate::McRing, x_mm)},
                             {"y_mm", "<f4", offsetof(McTruth, rings) + offsetof(emulate::McRing, y_mm)},
                             {"radius_mm", "<f4", offsetof(McTruth, rings) + offsetof(emulate::McRing, radius_mm)}})};
}

nb::dict default_cuts() {
  nb::dict dict;
  rich::RingCutsConfig cuts;
  cuts.visit([&](const char* key, auto& value, const config::Setting& setting) {
    dict[key] = setting.nullable ? nb::none() : nb::object(nb::cast(value));
  });
  return dict;
}

}  // namespace

void bind_rings(nb::module_& module) {
  module.def(
      "fit_rings", &fit_rings, nb::arg("hits"), nb::arg("counts"),
      "MATH fit of each event, vectorised. hits: uint16 [events, width], counts: uint32 [events]. Returns a structured array "
      "[events]: x_mm, y_mm, radius_mm, rms_mm, hits, status (bit 0: ring found; bit 1: only the first 128 hits used).");
  module.def("fit_rings_scalar", &fit_rings_scalar, nb::arg("hits"), nb::arg("counts"),
             "The same, one event after the other. Gives the same bits.");
  module.def("default_cuts", &default_cuts, "The cuts that the C++ library starts from; the configuration has the same.");
  module.def("pm_positions", &pm_positions, "float32 [2048, 2]: x, y [mm] of the PM at each channel, NaN where there is none.");
  module.def("monte_carlo", &monte_carlo, nb::arg("config"), nb::arg("event_count"),
             "(hits uint16 [events, hits_max], counts uint32 [events], truth [events]) of simulated events.");
}

}  // namespace nanet::bindings
