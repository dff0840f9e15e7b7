// SPDX-License-Identifier: Apache-2.0
// A torus that this process simulates for hosts in other ones (torus:// links).
#include <nanobind/stl/string.h>

#include <chrono>
#include <ctime>
#include <stdexcept>

#include "model/torus/rdma_shared.hpp"
#include "nanet/setup_error.hpp"
#include "torus.hpp"

namespace nanet::bindings {
namespace {

namespace nb = nanobind;
using Clock = std::chrono::steady_clock;

// One thread, which calls serve.
class Served {
 public:
  Served(const std::string& shape, const std::string& path, std::uint32_t wire_cycles, unsigned threads) try
      : torus_(torus::Shape::read(shape, torus::RdmaTorus::kShapeMax), path, wire_cycles, threads) {
  } catch (const SetupError& error) {
    throw std::invalid_argument(error.what());  // as the rest of this module
  }

  torus::SharedTorus& torus() { return torus_; }
  double busy_s() const { return busy_s_; }

  void read_registers() {
    const nb::gil_scoped_release release;
    const auto begin = Clock::now();
    torus_.torus().read_registers();
    busy_s_ += std::chrono::duration<double>(Clock::now() - begin).count();
  }

  void serve(double seconds) {
    const nb::gil_scoped_release release;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    for (auto now = Clock::now(); now < end;) {
      const bool was_busy = torus_.turn();
      if (!was_busy) {
        const timespec pause{.tv_sec = 0, .tv_nsec = 50'000};
        ::nanosleep(&pause, nullptr);
      }
      const auto then = Clock::now();
      if (was_busy) busy_s_ += std::chrono::duration<double>(then - now).count();
      now = then;
    }
  }

 private:
  torus::SharedTorus torus_;
  double busy_s_ = 0;
};

nb::dict counts_of(Served& self, std::uint32_t node) {
  nb::dict dict;
  add_counts(dict, self.torus().torus().node(node).counts());
  return dict;
}

}  // namespace

void bind_torus_shared(nb::module_& module) {
  nb::class_<Served>(module, "SharedTorus", "See nanet.torus.serve.")
      .def(nb::init<const std::string&, const std::string&, std::uint32_t, unsigned>(), nb::arg("shape"), nb::arg("file"),
           nb::arg("wire_cycles"), nb::arg("threads"))
      .def("serve", &Served::serve, nb::arg("seconds"))
      .def_prop_ro("shape", [](Served& self) { return self.torus().torus().shape().text(); })
      .def_prop_ro("size", [](Served& self) { return self.torus().torus().size(); })
      .def_prop_ro("cycle", [](Served& self) { return self.torus().torus().cycle(); })
      .def_prop_ro("threads", [](Served& self) { return self.torus().torus().threads(); })
      .def_prop_ro("busy_s", &Served::busy_s)
      .def_prop_ro("flights",
                   [](Served& self) {
                     const torus::Flights& all = self.torus().flights();
                     return nb::make_tuple(all.count, all.cycles_min, all.cycles_sum, all.cycles_max);
                   })
      .def("read_registers", &Served::read_registers)
      .def("registers", [](Served& self, std::uint32_t node) { return registers_of(self.torus().torus().node(node)); })
      .def("counts", &counts_of, nb::arg("node"));
}

}  // namespace nanet::bindings
