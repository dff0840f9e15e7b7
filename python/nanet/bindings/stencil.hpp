// SPDX-License-Identifier: Apache-2.0
// What the sweepers of a whole field share, on the CPU and on GPUs: fields to and from numpy, and norms as tuples.
//
// Sweeper: stencil::Jacobi<T> or gpu::Jacobi<T>. Other threads of Python go on while one sweeps or copies.
#pragma once

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "stencil/jacobi.hpp"

namespace nanet::bindings {

template <class T>
using Cells = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The shape and the sweeps; the rest of the configuration is as it is by default.
template <class Config>
Config sweep_config(const nb::dict& dict) {
  Config config;
  config.rows = get<std::size_t>(dict, "rows");
  config.columns = get<std::size_t>(dict, "columns");
  config.sweeps_per_pass = get<std::uint32_t>(dict, "sweeps_per_pass");
  config.norm_every = get<std::uint64_t>(dict, "norm_every");
  return config;
}

// sweeps_done: where the sweeper takes it.
template <class Sweeper, class T, class... Count>
void load_field(Sweeper& sweeper, const Cells<const T>& field, Count... sweeps_done) {
  if (field.shape(0) != sweeper.config().rows || field.shape(1) != sweeper.config().columns) {
    throw SetupError("the field cannot be loaded", "it has another shape than it was made for", "make one for this shape");
  }
  const nb::gil_scoped_release release;
  sweeper.load(field.data(), sweeps_done...);
}

template <class T, class Sweeper>
Array store_field(Sweeper& sweeper) {
  std::vector<T> field(sweeper.config().rows * sweeper.config().columns);
  {
    const nb::gil_scoped_release release;
    sweeper.store(field.data());
  }
  return to_array(std::move(field), {sweeper.config().rows, sweeper.config().columns});
}

template <class Sweeper>
std::vector<std::tuple<std::uint64_t, double, double>> run_sweeps(Sweeper& sweeper, std::uint64_t sweeps) {
  std::vector<stencil::ChangeNorm> norms(sweeper.norm_count(sweeps));
  {
    const nb::gil_scoped_release release;
    sweeper.run(sweeps, norms);
  }
  std::vector<std::tuple<std::uint64_t, double, double>> rows;
  for (const stencil::ChangeNorm& norm : norms) rows.emplace_back(norm.sweep, norm.max, norm.l2);
  return rows;
}

// The class, with all but what differs: its constructor, load() and copy().
template <class Sweeper, class T>
nb::class_<Sweeper> bind_sweeper(nb::module_& module, const char* name, const char* doc) {
  return nb::class_<Sweeper>(module, name, doc)
      .def("store", &store_field<T, Sweeper>, "The field now, a new array [rows, columns].")
      .def("run", &run_sweeps<Sweeper>, nb::arg("sweeps"), "Sweeps; returns (sweep, max, l2) of each norm.");
}

}  // namespace nanet::bindings
