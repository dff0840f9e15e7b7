// SPDX-License-Identifier: Apache-2.0
// nanet._torus: a simulated torus of nodes with network interfaces for Python, a module of its own, since it alone needs the verilated nodes. Thin: nanet.torus is
// what to use. It raises ValueError where that raises SetupError.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <stdexcept>

#include "arrays.hpp"
#include "model/torus/rdma_torus.hpp"
#include "torus.hpp"

namespace nanet::bindings {
namespace {

using torus::RdmaTorus;
using torus::Region;

// One call at a time: while one simulates without the interpreter's lock, others are refused.
class Simulation {
 public:
  Simulation(const std::string& shape, std::uint32_t wire_cycles)
      : torus_(torus::Shape::read(shape, torus::RdmaTorus::kShapeMax), wire_cycles) {}
  Simulation(const Simulation&) = delete;

  RdmaTorus& torus() {
    if (is_running_)
      throw std::invalid_argument("the torus is being simulated (another thread has called run or settle) use it from one thread");
    return torus_;
  }
  template <class Call>
  auto without_lock(Call&& call) {
    RdmaTorus& torus = this->torus();
    is_running_ = true;
    struct End {
      bool& is_running;
      ~End() { is_running = false; }
    } const end{is_running_};
    const nb::gil_scoped_release release;  // taken back before `end`
    return call(torus);
  }

 private:
  RdmaTorus torus_;
  bool is_running_ = false;
};

RdmaTorus& of_node(Simulation& self, std::uint32_t node) {
  RdmaTorus& torus = self.torus();
  if (node >= torus.size())
    throw std::invalid_argument("node " + std::to_string(node) + " is none (they are counted from 0) give a smaller number");
  return torus;
}

nb::object memory(nb::handle self, std::uint32_t node) {
  RdmaTorus& torus = of_node(nb::cast<Simulation&>(self), node);
  const std::span<std::uint8_t> bytes = torus.memory(node);
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(bytes.data(), {bytes.size()}, self));
}

Array take(Simulation& self, std::uint32_t node) {
  return to_records(self.torus().take(node), {{"bytes", "<u4", offsetof(Completion, bytes)},
                                              {"tag", "<u8", offsetof(Completion, tag)},
                                              {"time_ns", "<u8", offsetof(Completion, last_packet_ns)},
                                              {"status", "<u2", offsetof(Completion, status)},
                                              {"kind", "u1", offsetof(Completion, kind)},
                                              {"packet_type", "u1", offsetof(Completion, reserved0)},
                                              {"source", "<u2", offsetof(Completion, reserved1)},
                                              {"number", "<u2", offsetof(Completion, reserved1) + 2},
                                              {"process", "<u2", offsetof(Completion, reserved1) + 4},
                                              {"value", "<u2", offsetof(Completion, reserved1) + 6}});
}

nb::dict counts(Simulation& self, std::uint32_t node) {
  nb::dict dict;
  add_counts(dict, self.torus().node(node).counts());
  return dict;
}

// A tuple a link: whether it is there, nothing is heard, the neighbour's host is silent, what that says of itself, since which cycle.
nb::list neighbours(Simulation& self, std::uint32_t node) {
  nb::list list;
  for (std::size_t port = 0; port < torus::kLinks; ++port) {
    const torus::NeighbourState& one = of_node(self, node).node(node).neighbour(port);
    list.append(nb::make_tuple(one.has_link, one.is_silent, one.is_host_silent, one.says, one.since_cycle));
  }
  return list;
}

// How often the node's interrupt came, and how often each link, the last one the node itself, had changed then.
nb::tuple changes(Simulation& self, std::uint32_t node) {
  const torus::Changes& changes = of_node(self, node).node(node).registers().changes();
  nb::list seen;
  for (const std::uint64_t one : changes.seen) seen.append(one);
  return nb::make_tuple(changes.interrupts, seen);
}

void bind_region(nb::module_& module) {
  nb::class_<Region>(module, "Region")
      .def(
          "__init__",
          [](Region* self, std::uint32_t node, std::uint8_t index, std::uint32_t nonce) {
            new (self) Region{.node = node, .index = index, .nonce = nonce};
          },
          nb::arg("node"), nb::arg("index"), nb::arg("nonce"))
      .def_ro("node", &Region::node)
      .def_ro("index", &Region::index)
      .def_ro("nonce", &Region::nonce);
}

void bind_torus(nb::module_& module) {
  nb::class_<Simulation>(module, "RdmaTorus")
      .def(nb::init<const std::string&, std::uint32_t>(), nb::arg("shape"), nb::arg("wire_cycles"))
      .def_prop_ro("shape",
                   [](Simulation& self) {
                     const torus::Shape& shape = self.torus().shape();
                     return nb::make_tuple(shape.of(0), shape.of(1), shape.of(2));
                   })
      .def_prop_ro("size", [](Simulation& self) { return self.torus().size(); })
      .def_prop_ro("looks_cycles", [](Simulation& self) { return self.torus().looks_cycles(); })
      .def_prop_ro("cycle", [](Simulation& self) { return self.torus().cycle(); })
      .def("distance", [](Simulation& self, std::uint32_t from, std::uint32_t to) { return self.torus().shape().distance(from, to); })
      .def("memory", [](nb::handle self, std::uint32_t node) { return memory(self, node); })
      .def("share", [](Simulation& self, std::uint32_t node, std::uint32_t offset, std::uint32_t bytes, bool read,
                       bool write) { return self.torus().share(node, offset, bytes, read, write); })
      .def("withdraw", [](Simulation& self, const Region& region) { self.torus().withdraw(region); })
      .def("put", [](Simulation& self, std::uint32_t from, std::uint32_t local, std::uint32_t bytes, const Region& to,
                     std::uint64_t offset, std::uint16_t process) { self.torus().put(from, local, bytes, to, offset, process); })
      .def("get", [](Simulation& self, const Region& into, std::uint64_t into_offset, std::uint32_t bytes, const Region& of,
                     std::uint64_t offset, std::uint64_t tag) { self.torus().get(into, into_offset, bytes, of, offset, tag); })
      .def("event", [](Simulation& self, std::uint32_t from, std::uint32_t to, std::uint16_t value,
                       std::uint16_t process) { self.torus().event(from, to, value, process); })
      .def("watch",
           [](Simulation& self, std::uint32_t beat_cycles, std::uint32_t period_cycles) {
             for (std::size_t n = 0; n < self.torus().size(); ++n) self.torus().node(n).watch(beat_cycles, period_cycles);
           })
      .def("set_host", [](Simulation& self, std::uint32_t node, bool lives) { of_node(self, node).node(node).set_host(lives); })
      .def("set_logic", [](Simulation& self, std::uint32_t node, bool lives) { of_node(self, node).node(node).set_logic(lives); })
      .def("say", [](Simulation& self, std::uint32_t node, std::uint8_t what) { of_node(self, node).node(node).say(what); })
      .def("set_cable",
           [](Simulation& self, std::uint32_t node, std::size_t port, bool whole) { self.torus().set_cable(node, port, whole); })
      .def("state", [](Simulation& self, std::uint32_t node) { return of_node(self, node).node(node).state(); })
      .def("is_logic_silent", [](Simulation& self, std::uint32_t node) { return of_node(self, node).node(node).is_logic_silent(); })
      .def("neighbours", &neighbours)
      .def("take", &take)
      .def("counts", &counts)
      .def("changes", &changes)
      .def("registers", [](Simulation& self, std::uint32_t node) { return registers_of(of_node(self, node).node(node)); })
      .def("read_registers", [](Simulation& self) { self.without_lock([](RdmaTorus& torus) { torus.read_registers(); }); })
      .def("run", [](Simulation& self, std::uint64_t cycles) { self.without_lock([&](RdmaTorus& torus) { torus.run(cycles); }); })
      .def("settle", [](Simulation& self, std::uint64_t cycles) {
        return self.without_lock([&](RdmaTorus& torus) { return torus.settle(cycles); });
      });
}

}  // namespace

void add_counts(nb::dict& dict, const torus::RdmaCounts& counts) {
  for (std::size_t k = 0; k < counts.packets.size(); ++k) dict[nb::str(torus::kPacketNames[k].data())] = counts.packets[k];
  dict["missed"] = counts.missed;
  dict["refused"] = counts.refused;
  dict["gone_good"] = counts.gone_good;
  dict["gone_bad"] = counts.gone_bad;
  dict["lost"] = counts.lost;
}

nb::list registers_of(const torus::RdmaNode& node) {
  nb::list groups;
  link::for_each_torus_group([&](const link::TorusCounter& first, std::size_t begin, std::size_t end) {
    nb::dict counts;
    for (std::size_t k = begin; k < end; ++k)
      counts[nb::str(link::kTorusCounterTable[k].name.data())] = node.registers().counters()[k];
    groups.append(nb::make_tuple(nb::str(first.group.data()), first.port, counts));
  });
  return groups;
}

NB_MODULE(_torus, module) {
  module.doc() = "A simulated torus of APEnet+ nodes with network interfaces. Use it through nanet.torus.";
  module.attr("MESSAGE_BYTES_MAX") = torus::kMessageBytesMax;
  bind_region(module);
  bind_torus(module);
  bind_torus_ranks(module);
  bind_torus_shared(module);
}

}  // namespace nanet::bindings
