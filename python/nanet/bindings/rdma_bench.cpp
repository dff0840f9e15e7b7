// SPDX-License-Identifier: Apache-2.0
// One side of `nanet rdma bench`: it exposes a region and writes and reads the other's, all with one worker.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <optional>

#include "bindings.hpp"
#include "rdma.hpp"
#include "rdma/bench.hpp"

namespace nanet::bindings {
namespace {

class Rank {
 public:
  explicit Rank(const nb::dict& config) : exposed_(config), source_(exposed_.worker, config, "bench source", "source_given") {}

  std::uint16_t port() const { return exposed_.target.port(); }

  void connect(const nb::dict& config) {
    rdma::ConnectionConfig converted = connection_config(config);
    converted.local = &source_.region;
    const nb::gil_scoped_release release;
    connection_.emplace(exposed_.worker, converted);
  }

  // In order, which the other side has to serve; where it does not, after the time limit.
  void close() {
    const nb::gil_scoped_release release;
    connection_.reset();
  }

  nb::dict path() { return path_dict(connection().path()); }
  nb::list ways() { return ways_list(connection().ways()); }
  const std::string& error() { return connection().error(); }

  void serve(std::uint32_t milliseconds, bool spin) {
    const nb::gil_scoped_release release;
    serve_for(exposed_.worker, milliseconds, spin);
  }

  nb::dict stream(bool is_put, std::size_t bytes, std::uint64_t count, std::uint32_t depth, std::uint32_t batch) {
    const rdma::BenchRun run{.operation = operation(is_put), .count = count, .depth = depth, .batch = batch};
    return measured([&] { return rdma::stream(connection(), source_part(bytes), run); });
  }

  nb::dict one_by_one(bool is_put, std::size_t bytes, std::uint64_t count) {
    const rdma::BenchRun run{.operation = operation(is_put), .count = count};
    return measured([&] { return rdma::one_by_one(connection(), source_part(bytes), run); });
  }

  nb::dict ping(std::size_t bytes, std::uint64_t count, std::uint64_t time_limit_ns) {
    const rdma::BenchRun run{.count = count, .time_limit_ns = time_limit_ns};
    const auto own = part(true, exposed_.memory.region.bytes()), from = part(false, bytes);
    return measured([&] { return rdma::ping(connection(), own, from, run); });
  }

  std::string_view pong(std::size_t bytes, std::uint64_t count, std::uint64_t time_limit_ns) {
    const rdma::BenchRun run{.count = count, .time_limit_ns = time_limit_ns};
    const auto own = part(true, exposed_.memory.region.bytes()), from = part(false, bytes);
    const nb::gil_scoped_release release;
    return name(rdma::pong(connection(), own, from, run));
  }

  void fill(bool of_region, std::size_t bytes, std::uint64_t seed) { rdma::fill_pattern(part(of_region, bytes), seed); }
  std::size_t check(bool of_region, std::size_t bytes, std::uint64_t seed) {
    return rdma::first_difference(part(of_region, bytes), seed);
  }
  void clear_last(std::size_t bytes) { part(true, bytes).back() = std::byte{0}; }

 private:
  rdma::Connection& connection() {
    if (!connection_) throw SetupError("nothing can be measured", "there is no connection", "call connect first");
    return *connection_;
  }

  // For this CPU.
  std::span<std::byte> part(bool of_region, std::size_t bytes) {
    const Memory& memory = of_region ? exposed_.memory : source_;
    check_size(memory, bytes);
    if (memory.is_device())
      throw SetupError("a GPU's memory is not filled, checked or polled here", "no CPU may touch it", "copy it: CudaMemory");
    return memory.region.span().first(bytes);
  }
  rdma::Connection::Part source_part(std::size_t bytes) {
    check_size(source_, bytes);
    return {source_.region, 0, bytes};
  }
  static void check_size(const Memory& memory, std::size_t bytes) {
    if (bytes == 0 || bytes > memory.region.bytes())
      throw SetupError("a transfer of " + std::to_string(bytes) + " bytes cannot be measured",
                       "the region has " + std::to_string(memory.region.bytes()), "give 1 to as many");
  }

  static rdma::BenchOperation operation(bool is_put) { return is_put ? rdma::BenchOperation::put : rdma::BenchOperation::get; }

  template <typename Measure>
  static nb::dict measured(const Measure& measure) {
    std::optional<rdma::BenchResult> result;
    {
      const nb::gil_scoped_release release;
      result.emplace(measure());
    }
    nb::dict dict;
    dict["status"] = name(result->status);
    dict["count"] = result->count;
    dict["elapsed_ns"] = result->elapsed_ns;
    const flow::LatencyHistogram& latency = result->latency;
    dict["min_ns"] = latency.min();
    for (const auto& [key, percent] : {std::pair{"p50_ns", 50.0}, {"p99_ns", 99.0}, {"p99_9_ns", 99.9}})
      dict[key] = latency.value_at_percentile(percent);
    dict["max_ns"] = latency.max();
    return dict;
  }

  Exposed exposed_;
  Memory source_;
  std::optional<rdma::Connection> connection_;  // goes before the worker
};

}  // namespace

void bind_rank(nb::module_& module) {
  nb::class_<Rank>(module, "Rank", "One side of the benchmark: a region that the other side uses, a source, and a connection.")
      .def(
          "__init__", [](Rank* self, const nb::dict& config) { new (self) Rank(config); }, nb::arg("config"),
          "As of Target; the source is as large as the region and of the same memory, source_given if that is given.")
      .def_prop_ro("port", &Rank::port)
      .def("connect", &Rank::connect, nb::arg("config"), "As of Connection; the other side has to serve meanwhile.")
      .def("close", &Rank::close, "The connection; the other side has to serve meanwhile.")
      .def_prop_ro("path", &Rank::path)
      .def_prop_ro("ways", &Rank::ways)
      .def_prop_ro("error", &Rank::error)
      .def("serve", &Rank::serve, nb::arg("milliseconds"), nb::arg("spin"))
      .def("stream", &Rank::stream, nb::arg("is_put"), nb::arg("bytes"), nb::arg("count"), nb::arg("depth"), nb::arg("batch"))
      .def("one_by_one", &Rank::one_by_one, nb::arg("is_put"), nb::arg("bytes"), nb::arg("count"))
      .def("ping", &Rank::ping, nb::arg("bytes"), nb::arg("count"), nb::arg("time_limit_ns"), "Latencies are of round trips.")
      .def("pong", &Rank::pong, nb::arg("bytes"), nb::arg("count"), nb::arg("time_limit_ns"))
      .def("fill", &Rank::fill, nb::arg("of_region"), nb::arg("bytes"), nb::arg("seed"),
           "The pattern, into the region or the source.")
      .def("check", &Rank::check, nb::arg("of_region"), nb::arg("bytes"), nb::arg("seed"), "First place that differs; bytes: none.")
      .def("clear_last", &Rank::clear_last, nb::arg("bytes"), "Of the region, before ping and pong.");
}

}  // namespace nanet::bindings
