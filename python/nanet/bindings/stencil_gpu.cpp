// SPDX-License-Identifier: Apache-2.0
// Sweeps on GPUs; nothing is bound in a build without GPU code.
#include "bindings.hpp"

#ifdef NANET_CUDA
#include "stencil.hpp"
#include "stencil_gpu/stencil.hpp"
#endif

namespace nanet::bindings {
#ifdef NANET_CUDA
namespace {

gpu::JacobiConfig jacobi_config(const nb::dict& dict) {
  auto config = sweep_config<gpu::JacobiConfig>(dict);
  config.devices = get<std::vector<int>>(dict, "devices");
  return config;
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
  using Jacobi = gpu::Jacobi<T>;
  bind_sweeper<Jacobi, T>(module, name, "Jacobi sweeps of a field that stays on GPUs; see nanet.stencil.gpu.")
      .def(
          "__init__", [](Jacobi* self, const nb::dict& dict) { new (self) Jacobi(jacobi_config(dict)); }, nb::arg("config"),
          "rows, columns, sweeps_per_pass, norm_every, devices.")
      .def("load", &load_field<Jacobi, T>, nb::arg("field"),
           "Takes a copy of the field [rows, columns]; sweeps are counted from here.")
      .def("copy", &copy<T>, "Copies the field within the GPUs' memory: (bytes read and written, seconds).")
      .def_prop_ro("is_direct", &Jacobi::is_direct, "Rows at the seams go from GPU to GPU, not through the host.");
}

// The array is alive as long as this is.
template <class T>
struct Tile {
  Tile(const nb::dict& dict, Cells<T> array)
      : field(std::move(array)),
        tile({.rows = field.shape(0),
              .columns = field.shape(1),
              .sweeps_per_pass = get<std::uint32_t>(dict, "sweeps_per_pass"),
              .device = get<int>(dict, "device"),
              .chunk_bytes = get<std::size_t>(dict, "chunk_bytes")},
             {field.data(), field.size()}) {}
  Cells<T> field;
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
  nb::class_<Tile<T>>(module, name, "A tile in the host's memory that goes through a GPU; see nanet.stencil.gpu.")
      .def(nb::init<const nb::dict&, Cells<T>>(), nb::arg("config"), nb::arg("tile").noconvert(),
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
