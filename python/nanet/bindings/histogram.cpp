// SPDX-License-Identifier: Apache-2.0
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "nanet/flow/latency_histogram.hpp"

namespace nanet::bindings {

using flow::LatencyHistogram;

void bind_histogram(nb::module_& module) {
  nb::class_<LatencyHistogram>(module, "LatencyHistogram", "Latencies in ns with HdrHistogram(1, 3600 * 10**9, 3)'s buckets.")
      .def(nb::init<>())
      .def("record", &LatencyHistogram::record, nb::arg("value_ns"), nb::arg("count") = 1)
      .def("add", &LatencyHistogram::add, nb::arg("other"))
      .def("reset", &LatencyHistogram::reset)
      .def_prop_ro("count", &LatencyHistogram::count)
      .def_prop_ro("clamped", &LatencyHistogram::clamped)
      .def_prop_ro("min", &LatencyHistogram::min, "ns, 0 when empty")
      .def_prop_ro("max", &LatencyHistogram::max, "ns, 0 when empty")
      .def_prop_ro("mean", &LatencyHistogram::mean, "ns, 0 when empty")
      .def("percentile", &LatencyHistogram::value_at_percentile, nb::arg("q"), "ns; q in 0..100")
      .def(
          "counts_up_to",
          [](const LatencyHistogram& histogram, const std::vector<std::uint64_t>& bounds_ns) {
            std::vector<std::uint64_t> counts(bounds_ns.size());
            histogram.counts_up_to(bounds_ns, counts);
            return to_array(std::move(counts));
          },
          nb::arg("bounds_ns"), "uint64 [bounds]: records of at most each bound [ns]; the bounds ascend")
      .def(
          "counts",
          [](const LatencyHistogram& histogram) {
            return to_array(std::vector<std::uint64_t>(histogram.counts().begin(), histogram.counts().end()));
          },
          "uint64 [33792]: records in each bucket")
      .def(
          "buckets",
          [](const LatencyHistogram&) {
            std::vector<std::uint64_t> values(LatencyHistogram::kBucketCount);
            for (std::size_t bucket = 0; bucket < values.size(); ++bucket) {
              values[bucket] = LatencyHistogram::value_of_bucket(bucket);
            }
            return to_array(std::move(values));
          },
          "uint64 [33792]: smallest value [ns] of each bucket");
}

}  // namespace nanet::bindings
