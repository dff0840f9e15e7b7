// SPDX-License-Identifier: Apache-2.0
// What ranks of a field have for Python, whatever carries their edges. Thin: no logic here.
#pragma once

#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "ranks/rank.hpp"

namespace nanet::bindings {

template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline stencil::TeamConfig team_config(const nb::dict& dict) {
  return {.thread_count = get<int>(dict, "threads"), .cores = get<std::vector<int>>(dict, "cores")};
}

inline ranks::RankConfig rank_config(const nb::dict& dict) {
  ranks::RankConfig config{.rows = get<std::size_t>(dict, "rows"),
                           .columns = get<std::size_t>(dict, "columns"),
                           .rank = get<int>(dict, "rank"),
                           .rank_count = get<int>(dict, "rank_count"),
                           .halo_rows_max = get<std::uint32_t>(dict, "halo_rows_max"),
                           .team = team_config(dict)};
  if (has(dict, "tile_bytes")) config.tile_bytes = get<std::size_t>(dict, "tile_bytes");
  return config;
}

inline nb::object rows_tuple(const ranks::RowRange& rows) { return nb::make_tuple(rows.begin, rows.end); }

inline void check_shape(bool holds) {
  if (!holds) throw SetupError("these rows cannot be taken", "there are others than the tile has", "pass rows of its shape");
}

template <class T>
void load_rank(ranks::Rank<T>& rank, const Rows<T>& rows, std::size_t columns) {
  check_shape(rows.shape(0) == rank.held().end - rank.held().begin && rows.shape(1) == columns);
  const nb::gil_scoped_release release;
  rank.load(rows.data());
}

template <class T>
nb::object store_rank(const ranks::Rank<T>& rank, std::size_t columns) {
  const std::size_t rows = rank.own().end - rank.own().begin;
  std::vector<T> field(rows * columns);
  {
    const nb::gil_scoped_release release;
    rank.store(field.data());
  }
  return to_array(std::move(field), {rows, columns});
}

template <class T>
nb::object run_with_changes(ranks::Rank<T>& rank) {
  std::vector<double> changes;
  {
    const nb::gil_scoped_release release;
    const std::span<const double> found = rank.run_with_changes();
    changes.assign(found.begin(), found.end());
  }
  return to_array(std::move(changes), {rank.inner().end - rank.inner().begin, 2});
}

// Self: `rank`, a ranks::Rank<T>, and `columns`.
template <class T, class Self>
nb::class_<Self> bind_rank(nb::module_& module, const char* name, const char* text) {
  return nb::class_<Self>(module, name, text)
      .def_prop_ro("own", [](const Self& self) { return rows_tuple(self.rank.own()); })
      .def_prop_ro("held", [](const Self& self) { return rows_tuple(self.rank.held()); })
      .def(
          "load", [](Self& self, const Rows<T>& rows) { load_rank(self.rank, rows, self.columns); }, nb::arg("rows"))
      .def("store", [](const Self& self) { return store_rank(self.rank, self.columns); })
      .def(
          "set_halo_rows", [](Self& self, std::uint32_t halo_rows) { self.rank.set_halo_rows(halo_rows); }, nb::arg("halo_rows"))
      .def(
          "run", [](Self& self, std::uint64_t sweeps) { self.rank.run(sweeps); }, nb::arg("sweeps"),
          nb::call_guard<nb::gil_scoped_release>())
      .def("run_with_changes", [](Self& self) { return run_with_changes(self.rank); })
      .def(
          "seconds_per_row", [](Self& self, std::uint32_t sweeps) { return self.rank.seconds_per_row(sweeps); }, nb::arg("sweeps"),
          nb::call_guard<nb::gil_scoped_release>())
      .def(
          "seconds_of_exchange", [](Self& self, std::uint32_t rows) { return self.rank.seconds_of_exchange(rows); },
          nb::arg("halo_rows"), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace nanet::bindings
