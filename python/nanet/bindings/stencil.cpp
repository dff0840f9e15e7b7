// SPDX-License-Identifier: Apache-2.0
#include "stencil.hpp"

#include <nanobind/stl/pair.h>

#include <utility>

#include "stencil/passes.hpp"

namespace nanet::bindings {
namespace {

stencil::JacobiConfig jacobi_config(const nb::dict& dict) {
  auto config = sweep_config<stencil::JacobiConfig>(dict);
  config.team.thread_count = get<int>(dict, "threads");
  config.team.cores = get<std::vector<int>>(dict, "cores");
  if (has(dict, "tile_bytes")) config.tile_bytes = get<std::size_t>(dict, "tile_bytes");
  return config;
}

template <class T>
std::size_t copy(stencil::Jacobi<T>& jacobi, bool streaming) {
  const nb::gil_scoped_release release;
  return jacobi.copy(streaming ? stencil::Stores::streaming : stencil::Stores::cached);
}

template <class T>
void bind_jacobi(nb::module_& module, const char* name) {
  using Jacobi = stencil::Jacobi<T>;
  bind_sweeper<Jacobi, T>(module, name, "Five-point Jacobi sweeps with a team of threads; see nanet.stencil.")
      .def(
          "__init__", [](Jacobi* self, const nb::dict& dict) { new (self) Jacobi(jacobi_config(dict)); }, nb::arg("config"),
          "rows, columns, sweeps_per_pass, norm_every, threads, cores (empty: not pinned), tile_bytes or None.")
      .def("load", &load_field<Jacobi, T, std::uint64_t>, nb::arg("field"), nb::arg("sweeps_done") = 0,
           "Takes a copy of the field [rows, columns]; sweeps are counted on from there.")
      .def("copy", &copy<T>, nb::arg("streaming"),
           "Copies the field to the other one's memory, as STREAM does; returns the bytes read and written.");
}

std::pair<double, double> norm_of_rows(const Cells<const double>& changes) {
  const stencil::ChangeNorm norm = stencil::norm_of_rows({changes.data(), changes.size()});
  return {norm.max, norm.l2};
}

}  // namespace

void bind_stencil(nb::module_& module) {
  module.def("norm_of_rows", &norm_of_rows, nb::arg("changes"),
             "(max, l2) of one sweep from [inner rows, 2] changes, added in this order.");
  bind_jacobi<float>(module, "JacobiF32");
  bind_jacobi<double>(module, "JacobiF64");
}

}  // namespace nanet::bindings
