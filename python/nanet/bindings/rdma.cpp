// SPDX-License-Identifier: Apache-2.0
// nanet._rdma: remote memory for Python, a module of its own, since it alone needs UCX. Thin: nanet.rdma is what to use.
// Needs nanet._core to be loaded before: that one turns SetupError into Python's.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "bindings.hpp"
#include "nanet/flow/clock.hpp"
#include "rdma.hpp"
#include "rdma/bench.hpp"

namespace nanet::bindings {
namespace {

using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstBytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::array<std::pair<std::string_view, rdma::RegionKind>, 5> MEMORY_KINDS{{
    {"shared", rdma::RegionKind::host_shared},
    {"host", rdma::RegionKind::host},
    {"cuda", rdma::RegionKind::cuda_device},
    {"pinned", rdma::RegionKind::cuda_pinned},
    {"managed", rdma::RegionKind::cuda_managed},
}};
constexpr std::array<std::pair<std::string_view, rdma::Require>, 5> REQUIREMENTS{{
    {"", rdma::Require::anything},
    {"one-sided", rdma::Require::one_sided},
    {"rdma", rdma::Require::rdma},
    {"zero-copy", rdma::Require::zero_copy},
    {"gpudirect", rdma::Require::gpudirect},
}};
constexpr std::array<std::string_view, 3> SIDED{"one_sided", "emulated", "not_known"};

template <typename Table>
auto value_of(const Table& table, const std::string& name, const std::string& problem) {
  std::string known;
  for (const auto& [text, value] : table) {
    if (text == name) return value;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  throw SetupError(problem, "there are: " + known, "name one of these");
}

rdma::WorkerConfig worker_config(const nb::dict& dict) {
  return {.transports = get<std::string>(dict, "transports"),
          .address = get<std::string>(dict, "address"),
          .trust_network = get<bool>(dict, "trust_network")};
}

std::string_view put(Initiator& initiator, std::uint64_t offset_bytes, const ConstBytes& data) {
  const nb::gil_scoped_release release;
  return name(initiator.connection->put(offset_bytes, std::as_bytes(std::span(data.data(), data.size()))));
}

std::string_view get_into(Initiator& initiator, std::uint64_t offset_bytes, const Bytes& data) {
  const nb::gil_scoped_release release;
  return name(initiator.connection->get(offset_bytes, std::as_writable_bytes(std::span(data.data(), data.size()))));
}

template <rdma::Status (rdma::Connection::*Call)(std::uint64_t, const rdma::Connection::Part&)>
std::string_view move_given(Initiator& initiator, std::uint64_t offset_bytes, std::size_t bytes) {
  if (!initiator.memory) throw SetupError("there is no given memory", "the connection was made without", "pass given");
  const nb::gil_scoped_release release;
  return name(((*initiator.connection).*Call)(offset_bytes, {initiator.memory->region, 0, bytes}));
}

template <rdma::Status (rdma::Connection::*Call)()>
std::string_view call(Initiator& initiator) {
  const nb::gil_scoped_release release;
  return name(((*initiator.connection).*Call)());
}

nb::object region_view(Exposed& exposed) {
  if (exposed.memory.is_device())
    throw SetupError("a GPU's memory cannot be looked at", "no CPU may touch it", "copy it: CudaMemory.read");
  const rdma::Region& region = exposed.memory.region;
  return nb::cast(
      nb::ndarray<nb::numpy, std::uint8_t>(reinterpret_cast<std::uint8_t*>(region.data()), {region.bytes()}, nb::find(exposed)));
}

void fill_pattern(const Bytes& data, std::uint64_t seed, std::size_t offset_bytes) {
  rdma::fill_pattern(std::as_writable_bytes(std::span(data.data(), data.size())), seed, offset_bytes);
}

std::size_t first_difference(const ConstBytes& data, std::uint64_t seed, std::size_t offset_bytes) {
  return rdma::first_difference(std::as_bytes(std::span(data.data(), data.size())), seed, offset_bytes);
}

void serve(Exposed& exposed, std::uint32_t milliseconds, bool spin) {
  const nb::gil_scoped_release release;
  serve_for(exposed.worker, milliseconds, spin);
}

void bind_target(nb::module_& module) {
  nb::class_<Exposed>(module, "Target", "A region of this process, exposed under a name.")
      .def(
          "__init__", [](Exposed* self, const nb::dict& config) { new (self) Exposed(config); }, nb::arg("config"),
          "transports, trust_network, address, port (0: any), region, bytes, memory, given (memory of CUDA, or None), read, write, "
          "token.")
      .def("serve", &serve, nb::arg("milliseconds"), nb::arg("spin"), "Serves connections for so long; spin: without sleeping.")
      .def_prop_ro("memory", &region_view, "uint8 [bytes]: the region itself, not a copy.")
      .def_prop_ro("port", [](const Exposed& self) { return self.target.port(); })
      .def_prop_ro(
          "reach", [](const Exposed& self) { return self.worker.reach(); }, "Who can do what through it: one sentence.")
      .def_prop_ro("connection_count", [](const Exposed& self) { return self.target.connection_count(); })
      .def_prop_ro("refused_count", [](const Exposed& self) { return self.target.refused_count(); });
}

void bind_connection(nb::module_& module) {
  nb::class_<Initiator>(module, "Connection", "To one region of one target. Calls return the name of a status, ok or why not.")
      .def(
          "__init__", [](Initiator* self, const nb::dict& config) { new (self) Initiator(config); }, nb::arg("config"),
          "transports, trust_network, address, port, region, token, timeout_ms, chunk_bytes, depth, require (empty: nothing), "
          "memory and given: "
          "of this "
          "side, None unless it is CUDA's.")
      .def("put", &put, nb::arg("offset_bytes"), nb::arg("data"),
           "Returns when data (uint8) may be changed; flush tells that it is there.")
      .def("get", &get_into, nb::arg("offset_bytes"), nb::arg("data"), "Fills data (uint8).")
      .def("put_given", &move_given<&rdma::Connection::put>, nb::arg("offset_bytes"), nb::arg("bytes"),
           "From the given memory's begin.")
      .def("get_given", &move_given<&rdma::Connection::get>, nb::arg("offset_bytes"), nb::arg("bytes"),
           "To the given memory's begin.")
      .def("flush", &call<&rdma::Connection::flush>, "All before it is done, in the target's memory.")
      .def("close", &call<&rdma::Connection::close>, "Flushes, then closes.")
      .def_prop_ro(
          "bytes", [](const Initiator& self) { return self.connection->bytes(); }, "Of the region.")
      .def_prop_ro("may_read", [](const Initiator& self) { return self.connection->permissions().read; })
      .def_prop_ro("may_write", [](const Initiator& self) { return self.connection->permissions().write; })
      .def_prop_ro(
          "path", [](const Initiator& self) { return path_dict(self.connection->path()); }, "lanes, sided, text.")
      .def_prop_ro(
          "ways", [](const Initiator& self) { return ways_list(self.connection->ways()); }, "operation, bytes, text of each.")
      .def_prop_ro(
          "error", [](const Initiator& self) { return self.connection->error(); }, "UCX's own word, empty before.");
}

}  // namespace

nb::list ways_list(const std::vector<rdma::Way>& ways) {
  nb::list list;
  for (const rdma::Way& way : ways) {
    nb::dict one;
    one["operation"] = way.operation == rdma::Way::Operation::put ? "put" : "get";
    one["bytes"] = way.bytes;
    one["text"] = way.text;
    list.append(one);
  }
  return list;
}

rdma::RegionKind memory_kind(const std::string& name) {
  return value_of(MEMORY_KINDS, name, "no region can be of memory '" + name + "'");
}

rdma::ConnectionConfig connection_config(const nb::dict& dict) {
  const auto require = get<std::string>(dict, "require");
  return {.address = get<std::string>(dict, "address"),
          .port = get<std::uint16_t>(dict, "port"),
          .region = get<std::string>(dict, "region"),
          .token = get<std::uint64_t>(dict, "token"),
          .timeout_ms = get<std::uint32_t>(dict, "timeout_ms"),
          .chunk_bytes = get<std::size_t>(dict, "chunk_bytes"),
          .depth = get<std::uint32_t>(dict, "depth"),
          .require = value_of(REQUIREMENTS, require, "'" + require + "' cannot be required of a path")};
}

nb::dict path_dict(const rdma::Path& path) {
  nb::list lanes;
  for (const rdma::Lane& lane : path.lanes) {
    nb::dict one;
    one["transport"] = lane.transport;
    one["device"] = lane.device;
    lanes.append(one);
  }
  nb::dict dict;
  dict["lanes"] = lanes;
  dict["sided"] = SIDED[static_cast<std::size_t>(path.sided)];
  dict["gpudirect"] = path.gpudirect();
  dict["text"] = path.text();
  return dict;
}

void serve_for(rdma::Worker& worker, std::uint32_t milliseconds, bool spin) {
  const std::uint64_t end = flow::clock_now_ns() + milliseconds * std::uint64_t{1'000'000};
  for (std::uint64_t now = flow::clock_now_ns(); now < end; now = flow::clock_now_ns()) {
    if (!spin) worker.wait(static_cast<std::uint32_t>((end - now) / 1'000'000 + 1));
    for (int turn = 0; spin && turn < 1000; ++turn) worker.progress();
  }
}

namespace {

rdma::Region make_region(const rdma::Worker& worker, const nb::dict& config, const std::string& name, const nb::object& given) {
  const rdma::RegionConfig region{
      .name = name, .bytes = get<std::size_t>(config, "bytes"), .kind = memory_kind(get<std::string>(config, "memory"))};
  if (given.is_none()) return {worker, region};
  const auto address = nb::cast<std::uintptr_t>(given.attr("address"));
  return {worker, region, std::span(reinterpret_cast<std::byte*>(address), nb::cast<std::size_t>(given.attr("bytes")))};
}

}  // namespace

Memory::Memory(const rdma::Worker& worker, const nb::dict& config, const std::string& name, const char* given_key)
    : given(get<nb::object>(config, given_key)), region(make_region(worker, config, name, given)) {}

Exposed::Exposed(const nb::dict& config)
    : worker(worker_config(config)),
      memory(worker, config, get<std::string>(config, "region"), "given"),
      target(worker, {.address = get<std::string>(config, "address"), .port = get<std::uint16_t>(config, "port")}) {
  target.expose(memory.region, {.name = get<std::string>(config, "region"),
                                .permissions = {.read = get<bool>(config, "read"), .write = get<bool>(config, "write")},
                                .token = get<std::uint64_t>(config, "token")});
}

Initiator::Initiator(const nb::dict& config) : worker(worker_config(config)) {
  if (!get<nb::object>(config, "given").is_none()) memory.emplace(worker, config, "of this side", "given");
  rdma::ConnectionConfig converted = connection_config(config);
  if (memory) converted.local = &memory->region;
  connection.emplace(worker, converted);
}

namespace {

constexpr int BROKEN = 1;  // exit code

std::array<char, 512> last_words;
std::size_t last_words_bytes = 0;

void say_last_words(int) {
  // Nothing else may be called while a process aborts.
  (void)!::write(STDERR_FILENO, last_words.data(), last_words_bytes);
  ::_exit(BROKEN);
}

// UCX aborts a process that has to answer a peer which is gone, and no setting that was tried says otherwise.
void say_at_abort(const std::string& words) {
  last_words_bytes = std::min(words.size(), last_words.size());
  std::copy_n(words.begin(), last_words_bytes, last_words.begin());
  std::signal(SIGABRT, say_last_words);
}

}  // namespace

NB_MODULE(_rdma, module) {
  module.doc() = "Remote memory through UCX. Use it through nanet.rdma.";
  module.def("ucx_version", &rdma::ucx_version, "Of the library that is loaded.");
  module.def("fill_pattern", &fill_pattern, nb::arg("data"), nb::arg("seed"), nb::arg("offset_bytes"),
             "A piece (uint8) of the benchmark's pattern, from offset_bytes (a multiple of 8) on.");
  module.def("first_difference", &first_difference, nb::arg("data"), nb::arg("seed"), nb::arg("offset_bytes"),
             "The first place in such a piece that differs; its length: none.");
  module.def("say_at_abort", &say_at_abort, nb::arg("words"),
             "What goes to standard error, with exit code 1, should this process abort.");
  bind_target(module);
  bind_connection(module);
  bind_rank(module);
}

}  // namespace nanet::bindings
