// SPDX-License-Identifier: Apache-2.0
// Ranks of a stencil as nodes of a simulated torus, for Python; see nanet.stencil.over_torus. Thin: no logic here.
// Needs nanet._core to be loaded before: that one turns SetupError into Python's.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "model/torus/rdma_halos.hpp"
#include "rank.hpp"
#include "torus.hpp"

namespace nanet::bindings {
namespace {

using torus::TorusHalos;

template <class T>
std::shared_ptr<TorusHalos> make_halos(const nb::dict& dict) {
  return std::make_shared<TorusHalos>(torus::TorusHalosConfig{.rank_count = get<int>(dict, "rank_count"),
                                                              .halo_bytes = ranks::halo_bytes<T>(rank_config(dict)),
                                                              .wire_cycles = get<std::uint32_t>(dict, "wire_cycles"),
                                                              .timeout_ms = get<std::uint32_t>(dict, "timeout_ms")});
}

template <class T>
struct RankOverTorus {
  RankOverTorus(const nb::dict& dict, std::shared_ptr<TorusHalos> halos)
      : columns(get<std::size_t>(dict, "columns")),
        exchange(std::move(halos), get<int>(dict, "rank")),
        rank(rank_config(dict), exchange) {}
  std::size_t columns;
  torus::TorusExchange exchange;
  ranks::Rank<T> rank;
};

template <class T>
void bind_rank_over_torus(nb::module_& module, const char* name) {
  using Self = RankOverTorus<T>;
  bind_rank<T, Self>(module, name, "One rank of a field, a node of a simulated torus; see nanet.stencil.over_torus.")
      .def(nb::init<const nb::dict&, std::shared_ptr<TorusHalos>>(), nb::arg("config"), nb::arg("halos"))
      .def_static("make_halos", &make_halos<T>, nb::arg("config"));
}

}  // namespace

void bind_torus_ranks(nb::module_& module) {
  nb::exception<ranks::TransferError>(module, "TransferError", PyExc_RuntimeError);
  nb::class_<TorusHalos>(module, "TorusHalos", "The torus of all ranks.")
      .def_prop_ro("shape", [](const TorusHalos& self) { return self.shape().text(); })
      .def_prop_ro("exchanges", &TorusHalos::exchanges)
      .def_prop_ro("cycles", &TorusHalos::cycles)
      .def("end", &TorusHalos::end);
  bind_rank_over_torus<float>(module, "RankF32");
  bind_rank_over_torus<double>(module, "RankF64");
}

}  // namespace nanet::bindings
