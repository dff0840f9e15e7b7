// SPDX-License-Identifier: Apache-2.0
// nanet._tiles: ranks and moved tiles of a stencil for Python, a module of its own, since it needs UCX. Thin: no logic here.
// Needs nanet._core to be loaded before: that one turns SetupError into Python's.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "tiles/moved_tile.hpp"
#include "tiles/rank.hpp"

namespace nanet::bindings {
namespace {

template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Address = std::optional<std::pair<std::string, std::uint16_t>>;

stencil::TeamConfig team_config(const nb::dict& dict) {
  return {.thread_count = get<int>(dict, "threads"), .cores = get<std::vector<int>>(dict, "cores")};
}

tiles::RankConfig rank_config(const nb::dict& dict) {
  tiles::RankConfig config{.rows = get<std::size_t>(dict, "rows"),
                           .columns = get<std::size_t>(dict, "columns"),
                           .rank = get<int>(dict, "rank"),
                           .rank_count = get<int>(dict, "rank_count"),
                           .halo_rows_max = get<std::uint32_t>(dict, "halo_rows_max"),
                           .address = get<std::string>(dict, "address"),
                           .transports = get<std::string>(dict, "transports"),
                           .trust_network = get<bool>(dict, "trust_network"),
                           .token = get<std::uint64_t>(dict, "token"),
                           .timeout_ms = get<std::uint32_t>(dict, "timeout_ms"),
                           .team = team_config(dict)};
  if (has(dict, "tile_bytes")) config.tile_bytes = get<std::size_t>(dict, "tile_bytes");
  return config;
}

tiles::OwnerConfig owner_config(const nb::dict& dict) {
  return {.rows = get<std::size_t>(dict, "rows"),
          .columns = get<std::size_t>(dict, "columns"),
          .address = get<std::string>(dict, "address"),
          .transports = get<std::string>(dict, "transports"),
          .trust_network = get<bool>(dict, "trust_network"),
          .token = get<std::uint64_t>(dict, "token")};
}

tiles::MoverConfig mover_config(const nb::dict& dict) {
  tiles::MoverConfig config{.rows = get<std::size_t>(dict, "rows"),
                            .columns = get<std::size_t>(dict, "columns"),
                            .owner = {get<std::string>(dict, "address"), get<std::uint16_t>(dict, "port")},
                            .transports = get<std::string>(dict, "transports"),
                            .trust_network = get<bool>(dict, "trust_network"),
                            .token = get<std::uint64_t>(dict, "token"),
                            .timeout_ms = get<std::uint32_t>(dict, "timeout_ms"),
                            .chunk_bytes = get<std::size_t>(dict, "chunk_bytes"),
                            .sweeps_per_pass = get<std::uint32_t>(dict, "sweeps_per_pass"),
                            .team = team_config(dict)};
  if (has(dict, "spins_max")) config.team.spins_max = get<std::uint32_t>(dict, "spins_max");
  if (has(dict, "tile_bytes")) config.tile_bytes = get<std::size_t>(dict, "tile_bytes");
  return config;
}

nb::object times_tuple(const tiles::MoveTimes& times) {
  return nb::make_tuple(times.in_s, times.compute_s, times.out_s, times.total_s);
}

nb::object rows_tuple(const tiles::RowRange& rows) { return nb::make_tuple(rows.begin, rows.end); }

void check_shape(bool holds) {
  if (!holds) throw SetupError("these rows cannot be taken", "there are others than the tile has", "pass rows of its shape");
}

template <class T>
void connect(tiles::Rank<T>& rank, const Address& up, const Address& down) {
  const auto neighbour = [](const Address& to) {
    return to ? std::optional(tiles::Neighbour{to->first, to->second}) : std::nullopt;
  };
  const nb::gil_scoped_release release;
  rank.connect(neighbour(up), neighbour(down));
}

template <class T>
void load_rank(tiles::Rank<T>& rank, const Rows<T>& rows, std::size_t columns) {
  check_shape(rows.shape(0) == rank.held().end - rank.held().begin && rows.shape(1) == columns);
  const nb::gil_scoped_release release;
  rank.load(rows.data());
}

template <class T>
nb::object store_rank(const tiles::Rank<T>& rank, std::size_t columns) {
  const std::size_t rows = rank.own().end - rank.own().begin;
  std::vector<T> field(rows * columns);
  {
    const nb::gil_scoped_release release;
    rank.store(field.data());
  }
  return to_array(std::move(field), {rows, columns});
}

template <class T>
nb::object run_with_changes(tiles::Rank<T>& rank) {
  std::vector<double> changes;
  {
    const nb::gil_scoped_release release;
    const std::span<const double> found = rank.run_with_changes();
    changes.assign(found.begin(), found.end());
  }
  return to_array(std::move(changes), {rank.inner().end - rank.inner().begin, 2});
}

template <class T>
struct RankOfField {
  explicit RankOfField(const nb::dict& dict) : columns(get<std::size_t>(dict, "columns")), rank(rank_config(dict)) {}
  std::size_t columns;
  tiles::Rank<T> rank;
};

template <class T>
void bind_rank(nb::module_& module, const char* name) {
  using Self = RankOfField<T>;
  nb::class_<Self>(module, name, "One rank of a field that several processes sweep; see nanet.stencil.ranks.")
      .def(nb::init<const nb::dict&>(), nb::arg("config"))
      .def_prop_ro("port", [](const Self& self) { return self.rank.port(); })
      .def_prop_ro("own", [](const Self& self) { return rows_tuple(self.rank.own()); })
      .def_prop_ro("held", [](const Self& self) { return rows_tuple(self.rank.held()); })
      .def_prop_ro("path", [](const Self& self) { return self.rank.path(); })
      .def(
          "connect", [](Self& self, const Address& up, const Address& down) { connect(self.rank, up, down); }, nb::arg("up").none(),
          nb::arg("down").none())
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
          nb::arg("halo_rows"), nb::call_guard<nb::gil_scoped_release>())
      .def(
          "serve", [](Self& self, std::uint32_t sleep_ms) { self.rank.serve(sleep_ms); }, nb::arg("sleep_ms"),
          nb::call_guard<nb::gil_scoped_release>());
}

template <class T>
struct OwnedTile {
  explicit OwnedTile(const nb::dict& dict) : config(owner_config(dict)), owner(config) {}
  void check(std::size_t row_begin, std::size_t row_count) const {
    check_shape(row_begin <= config.rows && row_count <= config.rows - row_begin);
  }
  tiles::OwnerConfig config;
  tiles::Owner<T> owner;
};

template <class T>
void bind_owner(nb::module_& module, const char* name) {
  using Self = OwnedTile<T>;
  nb::class_<Self>(module, name, "A tile that other processes get and put; see nanet.stencil.owner.")
      .def(nb::init<const nb::dict&>(), nb::arg("config"))
      .def_prop_ro("port", [](const Self& self) { return self.owner.port(); })
      .def(
          "load",
          [](Self& self, const Rows<T>& cells, std::size_t row_begin) {
            self.check(row_begin, cells.shape(0));
            check_shape(cells.shape(1) == self.config.columns);
            self.owner.load(cells.data(), row_begin, cells.shape(0));
          },
          nb::arg("cells"), nb::arg("row_begin"))
      .def(
          "store",
          [](const Self& self, std::size_t row_begin, std::size_t row_count) {
            self.check(row_begin, row_count);
            std::vector<T> cells(row_count * self.config.columns);
            self.owner.store(cells.data(), row_begin, row_count);
            return to_array(std::move(cells), {row_count, self.config.columns});
          },
          nb::arg("row_begin"), nb::arg("row_count"))
      .def(
          "serve", [](Self& self, std::uint32_t sleep_ms) { self.owner.serve(sleep_ms); }, nb::arg("sleep_ms"),
          nb::call_guard<nb::gil_scoped_release>());
}

template <class T>
tiles::MoveTimes timed(tiles::Mover<T>& mover, std::uint32_t sweeps, tiles::MoveTimes (tiles::Mover<T>::*call)(std::uint32_t)) {
  const nb::gil_scoped_release release;
  return (mover.*call)(sweeps);
}

template <class T>
void bind_mover(nb::module_& module, const char* name) {
  using Self = tiles::Mover<T>;
  nb::class_<Self>(
      module, name,
      "Gets a tile from its owner, sweeps it and puts it back; see nanet.stencil.modes. Times: in, compute, out, total [s].")
      .def(
          "__init__", [](Self* self, const nb::dict& dict) { new (self) Self(mover_config(dict)); }, nb::arg("config"))
      .def_prop_ro("path", &Self::path)
      .def(
          "move",
          [](Self& self, std::uint32_t sweeps) {
            return times_tuple([&] {
              const nb::gil_scoped_release release;
              return self.move(sweeps);
            }());
          },
          nb::arg("sweeps"))
      .def(
          "stream", [](Self& self, std::uint32_t sweeps) { return times_tuple(timed(self, sweeps, &Self::stream)); },
          nb::arg("sweeps"))
      .def(
          "stream_transfer_alone",
          [](Self& self, std::uint32_t sweeps) { return times_tuple(timed(self, sweeps, &Self::stream_transfer_alone)); },
          nb::arg("sweeps"));
}

}  // namespace

NB_MODULE(_tiles, module) {
  module.doc() = "Ranks and moved tiles of a stencil, through UCX. Use it through nanet.stencil.";
  nb::exception<tiles::TransferError>(module, "TransferError", PyExc_RuntimeError);
  bind_rank<float>(module, "RankF32");
  bind_rank<double>(module, "RankF64");
  bind_owner<float>(module, "OwnerF32");
  bind_owner<double>(module, "OwnerF64");
  bind_mover<float>(module, "MoverF32");
  bind_mover<double>(module, "MoverF64");
}

}  // namespace nanet::bindings
