// SPDX-License-Identifier: Apache-2.0
// nanet._tiles: ranks and moved tiles of a stencil for Python, a module of its own, since it needs UCX. Thin: no logic here.
// Needs nanet._core to be loaded before: that one turns SetupError into Python's.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "rank.hpp"
#include "tiles/mailbox.hpp"
#include "tiles/moved_tile.hpp"

namespace nanet::bindings {
namespace {

using Address = std::optional<std::pair<std::string, std::uint16_t>>;

tiles::MailboxConfig mailbox_config(const nb::dict& dict, std::size_t halo_bytes) {
  return {.halo_bytes = halo_bytes,
          .address = get<std::string>(dict, "address"),
          .transports = get<std::string>(dict, "transports"),
          .trust_network = get<bool>(dict, "trust_network"),
          .token = get<std::uint64_t>(dict, "token"),
          .timeout_ms = get<std::uint32_t>(dict, "timeout_ms")};
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

template <class T>
struct RankOfField {
  explicit RankOfField(const nb::dict& dict)
      : columns(get<std::size_t>(dict, "columns")),
        mailbox(mailbox_config(dict, ranks::halo_bytes<T>(rank_config(dict)))),
        rank(rank_config(dict), mailbox) {}
  std::size_t columns;
  tiles::Mailbox mailbox;
  ranks::Rank<T> rank;
};

void connect(tiles::Mailbox& mailbox, const Address& up, const Address& down) {
  const nb::gil_scoped_release release;
  if (up) mailbox.connect(ranks::Side::up, {up->first, up->second});
  if (down) mailbox.connect(ranks::Side::down, {down->first, down->second});
}

template <class T>
void bind_rank_of_field(nb::module_& module, const char* name) {
  using Self = RankOfField<T>;
  bind_rank<T, Self>(module, name, "One rank of a field that several processes sweep; see nanet.stencil.ranks.")
      .def(nb::init<const nb::dict&>(), nb::arg("config"))
      .def_prop_ro("port", [](const Self& self) { return self.mailbox.port(); })
      .def_prop_ro("path", [](const Self& self) { return self.mailbox.path(); })
      .def(
          "connect", [](Self& self, const Address& up, const Address& down) { connect(self.mailbox, up, down); },
          nb::arg("up").none(), nb::arg("down").none())
      .def(
          "serve", [](Self& self, std::uint32_t sleep_ms) { self.mailbox.serve(sleep_ms); }, nb::arg("sleep_ms"),
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
  nb::exception<ranks::TransferError>(module, "TransferError", PyExc_RuntimeError);
  bind_rank_of_field<float>(module, "RankF32");
  bind_rank_of_field<double>(module, "RankF64");
  bind_owner<float>(module, "OwnerF32");
  bind_owner<double>(module, "OwnerF64");
  bind_mover<float>(module, "MoverF32");
  bind_mover<double>(module, "MoverF64");
}

}  // namespace nanet::bindings
