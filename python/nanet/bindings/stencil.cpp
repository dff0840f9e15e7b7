// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "nanet/stencil/passes.hpp"

namespace nanet::bindings {
namespace {

stencil::JacobiConfig jacobi_config(const nb::dict& dict) {
  stencil::JacobiConfig config;
  config.rows = get<std::size_t>(dict, "rows");
  config.columns = get<std::size_t>(dict, "columns");
  config.sweeps_per_pass = get<std::uint32_t>(dict, "sweeps_per_pass");
  config.norm_every = get<std::uint64_t>(dict, "norm_every");
  config.team.thread_count = get<int>(dict, "threads");
  config.team.cores = get<std::vector<int>>(dict, "cores");
  if (has(dict, "tile_bytes")) config.tile_bytes = get<std::size_t>(dict, "tile_bytes");
  return config;
}

template <class T>
using Field = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
void load(stencil::Jacobi<T>& jacobi, const Field<T>& field, std::uint64_t sweeps_done) {
  if (field.shape(0) != jacobi.config().rows || field.shape(1) != jacobi.config().columns) {
    throw SetupError("the field cannot be loaded", "it has another shape than it was made for", "make one for this shape");
  }
  const nb::gil_scoped_release release;
  jacobi.load(field.data(), sweeps_done);
}

template <class T>
nb::object store(stencil::Jacobi<T>& jacobi) {
  std::vector<T> field(jacobi.config().rows * jacobi.config().columns);
  {
    const nb::gil_scoped_release release;
    jacobi.store(field.data());
  }
  return to_array(std::move(field), {jacobi.config().rows, jacobi.config().columns});
}

template <class T>
nb::object run(stencil::Jacobi<T>& jacobi, std::uint64_t sweeps) {
  std::vector<stencil::ChangeNorm> norms(jacobi.norm_count(sweeps));
  {
    const nb::gil_scoped_release release;
    jacobi.run(sweeps, norms);
  }
  nb::list rows;
  for (const stencil::ChangeNorm& norm : norms) rows.append(nb::make_tuple(norm.sweep, norm.max, norm.l2));
  return rows;
}

template <class T>
std::size_t copy(stencil::Jacobi<T>& jacobi, bool streaming) {
  const nb::gil_scoped_release release;
  return jacobi.copy(streaming ? stencil::Stores::streaming : stencil::Stores::cached);
}

template <class T>
void bind_jacobi(nb::module_& module, const char* name) {
  nb::class_<stencil::Jacobi<T>>(module, name, "Five-point Jacobi sweeps with a team of threads; see nanet.stencil.")
      .def(
          "__init__", [](stencil::Jacobi<T>* self, const nb::dict& dict) { new (self) stencil::Jacobi<T>(jacobi_config(dict)); },
          nb::arg("config"), "rows, columns, sweeps_per_pass, norm_every, threads, cores (empty: not pinned), tile_bytes or None.")
      .def("load", &load<T>, nb::arg("field"), nb::arg("sweeps_done") = 0,
           "Takes a copy of the field [rows, columns]; sweeps are counted on from there.")
      .def("store", &store<T>, "The field now, a new array [rows, columns].")
      .def("run", &run<T>, nb::arg("sweeps"), "Sweeps; returns (sweep, max, l2) of each norm.")
      .def("copy", &copy<T>, nb::arg("streaming"),
           "Copies the field to the other one's memory, as STREAM does; returns the bytes read and written.");
}

nb::object norm_of_rows(const nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& changes) {
  const stencil::ChangeNorm norm = stencil::norm_of_rows({changes.data(), changes.size()});
  return nb::make_tuple(norm.max, norm.l2);
}

}  // namespace

void bind_stencil(nb::module_& module) {
  module.def("norm_of_rows", &norm_of_rows, nb::arg("changes"),
             "(max, l2) of one sweep from [inner rows, 2] changes, added in this order.");
  bind_jacobi<float>(module, "JacobiF32");
  bind_jacobi<double>(module, "JacobiF64");
}

}  // namespace nanet::bindings
