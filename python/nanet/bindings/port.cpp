// SPDX-License-Identifier: Apache-2.0
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "arrays.hpp"
#include "bindings.hpp"
#include "config.hpp"
#include "nanet/engine/port.hpp"
#include "nanet/gpu/pinned_memory.hpp"
#include "nanet/link/endpoint.hpp"

namespace nanet::bindings {
namespace {

// A completion as Python sees it. It keeps the port's memory alive, so a view used too late shows new data, never freed memory.
struct CompletionView {
  std::shared_ptr<engine::Port> port;
  Completion completion;
};

nb::capsule owner_of(const CompletionView& view) {
  auto* keep = new std::shared_ptr<engine::Port>(view.port);
  return {keep, [](void* pointer) noexcept { delete static_cast<std::shared_ptr<engine::Port>*>(pointer); }};
}

Array buffer_of(const CompletionView& view) {
  const auto bytes = view.port->bytes(view.completion);
  const std::size_t shape[1] = {bytes.size()};
  return nb::steal<Array>(nb::cast(nb::ndarray<nb::numpy, const std::uint8_t>(bytes.data(), 1, shape, owner_of(view))).release());
}

const gpu::PinnedMemory& pinned_of(const engine::Port& port) {
  if (port.pinned() != nullptr) return *port.pinned();
  throw SetupError("no GPU sees this port's buffers", "its memory is host", "open it with memory host_pinned");
}

std::uintptr_t device_address_of(const CompletionView& view) {
  return pinned_of(*view.port).device_address(view.port->bytes(view.completion).data());
}

std::uintptr_t device_index_address_of(const CompletionView& view) {
  return pinned_of(*view.port).device_address(view.port->packet_index(view.completion).data());
}

// For DLPack. Read-only in memory of the host; a GPU may write, as the libraries there know no read-only arrays.
template <class T, std::size_t dimensions>
nb::object dlpack_array(const CompletionView& view, const T* host, const std::size_t (&shape)[dimensions], int device_type,
                        int device_index) {
  const nb::capsule owner = owner_of(view);
  if (device_type != nb::device::cuda::value) {
    return nb::cast(
        nb::ndarray<nb::array_api, const T>(host, dimensions, shape, owner, nullptr, nb::dtype<T>(), device_type, device_index));
  }
  auto* const seen = reinterpret_cast<T*>(pinned_of(*view.port).device_address(host));
  return nb::cast(nb::ndarray<nb::array_api, T>(seen, dimensions, shape, owner, nullptr, nb::dtype<T>(), device_type, device_index));
}

nb::object array_of(const CompletionView& view, int device_type, int device_index) {
  const auto bytes = view.port->bytes(view.completion);
  return dlpack_array(view, reinterpret_cast<const std::uint8_t*>(bytes.data()), {bytes.size()}, device_type, device_index);
}

nb::object index_array_of(const CompletionView& view, int device_type, int device_index) {
  const auto index = view.port->packet_index(view.completion);
  return dlpack_array(view, reinterpret_cast<const std::uint32_t*>(index.data()),
                      {index.size(), sizeof(PacketRef) / sizeof(std::uint32_t)}, device_type, device_index);
}

Array index_of(const CompletionView& view) {
  const auto index = view.port->packet_index(view.completion);
  return to_records(std::vector<PacketRef>(index.begin(), index.end()), {{"offset", "<u4", offsetof(PacketRef, offset)},
                                                                         {"bytes", "<u2", offsetof(PacketRef, bytes)},
                                                                         {"source", "<u2", offsetof(PacketRef, source)}});
}

nb::dict unit_of(const CompletionView& view) {
  const UnitHead& head = view.port->unit(view.completion).head;
  nb::dict dict;
  dict["stream"] = head.stream;
  dict["unit"] = head.unit;
  dict["time"] = head.time;
  dict["bytes"] = head.bytes;
  dict["bytes_missing"] = head.bytes_missing;
  dict["packet_count"] = head.packet_count;
  dict["packets_missing"] = head.packets_missing;
  dict["piece_bytes"] = head.piece_bytes;
  return dict;
}

Array present_of(const CompletionView& view) {
  const auto ranges = view.port->unit(view.completion).present;
  const std::size_t shape[2] = {ranges.size(), 2};
  const auto* first = reinterpret_cast<const std::uint32_t*>(ranges.data());
  return nb::steal<Array>(nb::cast(nb::ndarray<nb::numpy, const std::uint32_t>(first, 2, shape, owner_of(view))).release());
}

nb::list streams_of(const engine::Port& port) {
  nb::list streams;
  for (const engine::StreamBooks& books : port.streams()) {
    nb::dict one;
    one["stream"] = books.stream;
    one["packets_accepted"] = books.packets_accepted;
    one["packets_refused"] = books.packets_refused;
    one["packets_lost"] = books.packets_lost;
    one["units_complete"] = books.units_complete;
    one["units_incomplete"] = books.units_incomplete;
    one["units_no_buffer"] = books.units_no_buffer;
    one["units_lost"] = books.units_lost;
    streams.append(one);
  }
  return streams;
}

MemoryKind memory_kind(const nb::dict& dict) {
  const auto name = get<std::string>(dict, "memory_kind");
  if (name == "host_pinned") return MemoryKind::host_pinned;
  return name == "device" ? MemoryKind::device : MemoryKind::host;
}

std::shared_ptr<engine::Port> make_port(const nb::dict& dict) {
  return std::make_shared<engine::Port>(port_config(dict), memory_kind(dict));
}

// Bytes of anything with the buffer protocol, in one piece; read where they lie.
bool send(engine::Port& port, std::uint32_t destination, nb::handle payload) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(payload.ptr(), &buffer, PyBUF_SIMPLE) != 0) throw nb::python_error();
  const bool sent = port.send(destination, {static_cast<const std::byte*>(buffer.buf), static_cast<std::size_t>(buffer.len)});
  PyBuffer_Release(&buffer);
  return sent;
}

// The host's view of an array that a GPU sees, read-only: in place where it lies in memory of the host. It does not keep the array alive.
Array host_view(std::uintptr_t address, std::size_t bytes, std::uintptr_t stream) {
#ifdef NANET_CUDA
  auto* copy = new std::vector<std::byte>;
  nb::capsule owner(copy, [](void* pointer) noexcept { delete static_cast<std::vector<std::byte>*>(pointer); });
  std::span<const std::byte> found;
  {
    nb::gil_scoped_release release;
    found = gpu::host_bytes(address, bytes, stream, *copy);
  }
  const std::size_t shape[1] = {found.size()};
  return nb::steal<Array>(nb::cast(nb::ndarray<nb::numpy, const std::uint8_t>(found.data(), 1, shape, owner)).release());
#else
  static_cast<void>(address), static_cast<void>(bytes), static_cast<void>(stream);
  throw SetupError("an array of a GPU cannot be read", "nanet was built without CUDA",
                   "run make cuda, or pass a copy in host memory: get() of CuPy, cpu() of PyTorch, copy_to_host() of Numba");
#endif
}

std::optional<CompletionView> poll(const std::shared_ptr<engine::Port>& port, double timeout_s) {
  const double timeout_ns = std::clamp(timeout_s, 0.0, 1e6) * 1e9;
  // In slices, so that Ctrl-C is seen.
  constexpr double kSliceNs = 100e6;
  for (double waited_ns = 0;; waited_ns += kSliceNs) {
    const Completion* completion = nullptr;
    {
      nb::gil_scoped_release release;
      completion = port->poll(static_cast<std::uint64_t>(std::min(kSliceNs, timeout_ns - waited_ns)));
    }
    if (completion != nullptr) return CompletionView{port, *completion};
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (waited_ns + kSliceNs >= timeout_ns) return std::nullopt;
  }
}

nb::dict port_counters(const engine::Port& port) {
  return counters_dict([&](flow::Counter counter) { return port.total(counter); });
}

}  // namespace

void bind_port(nb::module_& module) {
  nb::class_<CompletionView>(module, "CompletionView", "One filled buffer. Valid until Port.release().")
      .def_prop_ro("buffer", &buffer_of, "uint8 [bytes], read-only, no copy: the bytes in use")
      .def_prop_ro("index", &index_of, "structured [packet_count]: offset, bytes, source of each packet")
      .def_prop_ro("unit", &unit_of, "where packets are put together to units: what this one is")
      .def_prop_ro("present", &present_of, "uint32 [ranges, 2], read-only, no copy: the bytes of the unit that came")
      .def_prop_ro("device_address", &device_address_of, "where a GPU sees the buffer; SetupError with memory host")
      .def("array", &array_of, nb::arg("device_type"), nb::arg("device_index"),
           "uint8 [bytes], no copy, as an object with DLPack, on a DLPack device: 1 CPU, 2 CUDA, 3 host memory that CUDA sees")
      .def_prop_ro("device_index_address", &device_index_address_of, "the same of the packet index")
      .def("index_array", &index_array_of, nb::arg("device_type"), nb::arg("device_index"),
           "uint32 [packet_count, 2], no copy: offset, and bytes + 65536 * source, of each packet")
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
      .def("send", &send, nb::arg("destination"), nb::arg("payload"), "False: the kernel did not take it.")
      .def(
          "wait_for_gpu",
          [](const engine::Port& port) {
            const gpu::PinnedMemory& pinned = pinned_of(port);
            nb::gil_scoped_release release;
            pinned.wait_for_gpu();
          },
          "Returns when the GPU has done all that this process gave it.")
      .def_prop_ro(
          "device_index",
          [](const engine::Port& port) { return port.pinned() != nullptr ? std::optional(port.pinned()->device()) : std::nullopt; },
          "GPU that sees the buffers; None with memory host")
      .def("counters", &port_counters)
      .def("streams", &streams_of, "The books of each stream of units.")
      .def_prop_ro("notes", [](const engine::Port& port) { return port.notes(); })
      .def_prop_ro("local_port", [](const engine::Port& port) { return port.local().port; });

  module.def("host_view", &host_view, nb::arg("address"), nb::arg("bytes"), nb::arg("stream"),
             "uint8 [bytes], read-only: what a GPU has at an address, in place where that is host memory, otherwise a copy.");
}

}  // namespace nanet::bindings
