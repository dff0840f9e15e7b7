// SPDX-License-Identifier: Apache-2.0
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>

#include "arrays.hpp"
#include "bindings.hpp"
#include "config.hpp"
#include "nanet/engine/port.hpp"
#include "nanet/link/endpoint.hpp"

namespace nanet::bindings {
namespace {

// A completion as Python sees it. It keeps the port's memory alive, so a view used too late shows new data, never freed memory.
struct CompletionView {
  std::shared_ptr<engine::Port> port;
  Completion completion;
};

nb::object buffer_of(const CompletionView& view) {
  const auto bytes = view.port->bytes(view.completion);
  auto* keep = new std::shared_ptr<engine::Port>(view.port);
  nb::capsule owner(keep, [](void* pointer) noexcept { delete static_cast<std::shared_ptr<engine::Port>*>(pointer); });
  const std::size_t shape[1] = {bytes.size()};
  return nb::cast(nb::ndarray<nb::numpy, const std::uint8_t>(bytes.data(), 1, shape, owner));
}

nb::object index_of(const CompletionView& view) {
  const auto index = view.port->packet_index(view.completion);
  return to_records(std::vector<PacketRef>(index.begin(), index.end()), {{"offset", "<u4", offsetof(PacketRef, offset)},
                                                                         {"bytes", "<u2", offsetof(PacketRef, bytes)},
                                                                         {"source", "<u2", offsetof(PacketRef, source)}});
}

std::shared_ptr<engine::Port> make_port(const nb::dict& dict) { return std::make_shared<engine::Port>(port_config(dict)); }

nb::object poll(const std::shared_ptr<engine::Port>& port, double timeout_s) {
  const double timeout_ns = std::clamp(timeout_s, 0.0, 1e6) * 1e9;
  // In slices, so that Ctrl-C is seen.
  constexpr double kSliceNs = 100e6;
  for (double waited_ns = 0;; waited_ns += kSliceNs) {
    const Completion* completion = nullptr;
    {
      nb::gil_scoped_release release;
      completion = port->poll(static_cast<std::uint64_t>(std::min(kSliceNs, timeout_ns - waited_ns)));
    }
    if (completion != nullptr) return nb::cast(CompletionView{port, *completion});
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (waited_ns + kSliceNs >= timeout_ns) return nb::none();
  }
}

nb::dict counters_of(const engine::Port& port) {
  return counters_dict([&](flow::Counter counter) { return port.total(counter); });
}

}  // namespace

void bind_port(nb::module_& module) {
  nb::class_<CompletionView>(module, "CompletionView", "One filled buffer. Valid until Port.release().")
      .def_prop_ro("buffer", &buffer_of, "uint8 [bytes], read-only, no copy: the bytes in use")
      .def_prop_ro("index", &index_of, "structured [packet_count]: offset, bytes, source of each packet")
      .def_prop_ro("bytes", [](const CompletionView& view) { return view.completion.bytes; })
      .def_prop_ro("packet_count", [](const CompletionView& view) { return view.completion.packet_count; })
      .def_prop_ro("event_count", [](const CompletionView& view) { return view.completion.event_count; })
      .def_prop_ro("packets_lost", [](const CompletionView& view) { return view.completion.packets_lost; })
      .def_prop_ro("status", [](const CompletionView& view) { return view.completion.status; })
      .def_prop_ro(
          "stride_bytes", [](const CompletionView& view) { return view.completion.stride_bytes; },
          "not 0: all packets are this long and lie back to back")
      .def_prop_ro("first_packet_ns", [](const CompletionView& view) { return view.completion.first_packet_ns; })
      .def_prop_ro("last_packet_ns", [](const CompletionView& view) { return view.completion.last_packet_ns; });

  nb::class_<engine::Port>(module, "Port", "A link and its CLOP for one thread; nanet.open() is the pleasant form.")
      .def(nb::new_(&make_port), nb::arg("config"))
      .def("poll", &poll, nb::arg("timeout_s"), "The next CompletionView, or None after timeout_s.")
      .def(
          "release", [](engine::Port& port) { port.release(); }, "Returns the oldest buffer that poll() gave.")
      .def("add_destination", &engine::Port::add_destination, nb::arg("url"))
      .def(
          "send",
          [](engine::Port& port, std::uint32_t destination, const nb::bytes& payload) {
            return port.send(destination, {reinterpret_cast<const std::byte*>(payload.data()), payload.size()});
          },
          nb::arg("destination"), nb::arg("payload"), "False: the kernel did not take it.")
      .def("counters", &counters_of)
      .def_prop_ro("notes", [](const engine::Port& port) { return port.notes(); })
      .def_prop_ro("local_port", [](const engine::Port& port) { return port.local().port; });
}

}  // namespace nanet::bindings
