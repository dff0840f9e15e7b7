// SPDX-License-Identifier: Apache-2.0
// Sweeps on GPUs; nothing is bound in a build without GPU code.
#include "bindings.hpp"

#ifdef NANET_CUDA
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "nanet/gpu/stencil.hpp"
#endif

namespace nanet::bindings {
#ifdef NANET_CUDA
namespace {

template <class T>
using Field = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

gpu::JacobiConfig jacobi_config(const nb::dict& dict) {
  return {.rows = get<std::size_t>(dict, "rows"),
          .columns = get<std::size_t>(dict, "columns"),
          .sweeps_per_pass = get<std::uint32_t>(dict, "sweeps_per_pass"),
          .norm_every = get<std::uint64_t>(dict, "norm_every"),
          .devices = get<std::vector<int>>(dict, "devices")};
}

template <class T>
void load(gpu::Jacobi<T>& jacobi, const Field<const T>& field) {
  if (field.shape(0) != jacobi.config().rows || field.shape(1) != jacobi.config().columns) {
    throw SetupError("the field cannot be loaded", "it has another shape than it was made for", "make one for this shape");
  }
  const nb::gil_scoped_release release;
  jacobi.load(field.data());
}

template <class T>
nb::object store(const gpu::Jacobi<T>& jacobi) {
  std::vector<T> field(jacobi.config().rows * jacobi.config().columns);
  {
    const nb::gil_scoped_release release;
    jacobi.store(field.data());
  }
  return to_array(std::move(field), {jacobi.config().rows, jacobi.config().columns});
}

template <class T>
nb::object run(gpu::Jacobi<T>& jacobi, std::uint64_t sweeps) {
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
nb::tuple copy(gpu::Jacobi<T>& jacobi) {
  gpu::CopyTime time{};
  {
    const nb::gil_scoped_release release;
    time = jacobi.copy();
  }
  return nb::make_tuple(time.bytes, time.seconds);
}

template <class T>
void bind_jacobi(nb::module_& module, const char* name) {
  nb::class_<gpu::Jacobi<T>>(module, name, "Jacobi sweeps of a field that stays on GPUs; see nanet.stencil_gpu.")
      .def(
          "__init__", [](gpu::Jacobi<T>* self, const nb::dict& dict) { new (self) gpu::Jacobi<T>(jacobi_config(dict)); },
          nb::arg("config"), "rows, columns, sweeps_per_pass, norm_every, devices.")
      .def("load", &load<T>, nb::arg("field"), "Takes a copy of the field [rows, columns]; sweeps are counted from here.")
      .def("store", &store<T>, "The field now, a new array [rows, columns].")
      .def("run", &run<T>, nb::arg("sweeps"), "Sweeps; returns (sweep, max, l2) of each norm.")
      .def("copy", &copy<T>, "Copies the field within the GPUs' memory: (bytes read and written, seconds).")
      .def_prop_ro("is_direct", &gpu::Jacobi<T>::is_direct, "Rows at the seams go from GPU to GPU, not through the host.");
}

// The array is alive as long as this is.
template <class T>
struct Tile {
  Tile(const nb::dict& dict, Field<T> array)
      : field(std::move(array)),
        tile({.rows = field.shape(0),
              .columns = field.shape(1),
              .sweeps_per_pass = get<std::uint32_t>(dict, "sweeps_per_pass"),
              .device = get<int>(dict, "device"),
              .chunk_bytes = get<std::size_t>(dict, "chunk_bytes")},
             {field.data(), field.size()}) {}
  Field<T> field;
  gpu::JacobiTile<T> tile;
};

template <class Move>
nb::tuple timed(Move&& move) {
  gpu::TileTimes times{};
  {
    const nb::gil_scoped_release release;
    times = move();
  }
  return nb::make_tuple(times.in_seconds, times.compute_seconds, times.out_seconds, times.total_seconds);
}

template <class T>
void bind_tile(nb::module_& module, const char* name) {
  nb::class_<Tile<T>>(module, name, "A tile in the host's memory that goes through a GPU; see nanet.stencil_gpu.")
      .def(nb::init<const nb::dict&, Field<T>>(), nb::arg("config"), nb::arg("tile").noconvert(),
           "sweeps_per_pass, device, chunk_bytes; and the tile [rows, columns], which is swept in place.")
      .def(
          "move_sweep_move",
          [](Tile<T>& self, std::uint64_t sweeps) { return timed([&] { return self.tile.move_sweep_move(sweeps); }); },
          nb::arg("sweeps"), "All in, swept, all out: seconds in, of compute, out, in total.")
      .def(
          "stream", [](Tile<T>& self, std::uint64_t sweeps) { return timed([&] { return self.tile.stream(sweeps); }); },
          nb::arg("sweeps"), "The same in chunks that overlap.")
      .def(
          "transfer", [](Tile<T>& self) { return timed([&] { return self.tile.transfer(); }); }, "In and out at once, unswept.");
}

}  // namespace

void bind_stencil_gpu(nb::module_& module) {
  bind_jacobi<float>(module, "GpuJacobiF32");
  bind_jacobi<double>(module, "GpuJacobiF64");
  bind_tile<float>(module, "GpuJacobiTileF32");
  bind_tile<double>(module, "GpuJacobiTileF64");
}
#else
void bind_stencil_gpu(nb::module_&) {}
#endif

}  // namespace nanet::bindings
