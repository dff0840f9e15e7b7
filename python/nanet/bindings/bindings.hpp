// SPDX-License-Identifier: Apache-2.0
// The Python module in parts: one function a file adds its classes.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nanet/flow/counters.hpp"
#include "nanet/link/link.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::bindings {

namespace nb = nanobind;

void bind_histogram(nb::module_& module);
void bind_rings(nb::module_& module);
void bind_format(nb::module_& module);
void bind_components(nb::module_& module);
void bind_finders(nb::module_& module);
void bind_engine(nb::module_& module);
void bind_l0tp(nb::module_& module);
void bind_trigger(nb::module_& module);
void bind_emulator(nb::module_& module);
void bind_km3_emulate(nb::module_& module);
void bind_port(nb::module_& module);
void bind_replay(nb::module_& module);
void bind_physics(nb::module_& module);
void bind_stencil(nb::module_& module);
void bind_stencil_gpu(nb::module_& module);
void bind_km3(nb::module_& module);

// True when the run of an emulator is over, false after timeout_s. In slices, so that Ctrl-C is seen.
template <class Run>
bool wait_for_end(const Run& run, double timeout_s) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  while (run.running()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    {
      nb::gil_scoped_release release;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return true;
}

// Value of a configuration key, converted. Throws SetupError when it is missing or of another type: the Python models have
// validated the file, so this says that model and binding have come apart.
template <class T>
T get(const nb::dict& dict, const char* key) {
  if (!dict.contains(key))
    throw SetupError(std::string("no ") + key, "the native module needs it", "pass a validated configuration");
  T value{};
  if (!nb::try_cast<T>(dict[key], value)) {
    throw SetupError(std::string("cannot use ") + key, "wrong type or out of range: " + std::string(nb::repr(dict[key]).c_str()),
                     "pass a validated configuration");
  }
  return value;
}

// {name: value} of every counter; `value_of` gives that of one.
template <class F>
nb::dict counters_dict(F&& value_of) {
  nb::dict dict;
  for (std::size_t c = 0; c < flow::kCounterCount; ++c) {
    dict[nb::str(flow::kCounterTable[c].name.data())] = value_of(static_cast<flow::Counter>(c));
  }
  return dict;
}

// {name: value} of every statistic of a link.
inline nb::dict stats_dict(const link::LinkStats& stats) {
  nb::dict dict;
#define NANET_STAT(name) dict[#name] = stats.name
  NANET_STAT(rx_packets);
  NANET_STAT(rx_bytes);
  NANET_STAT(rx_calls);
  NANET_STAT(rx_batches);
  NANET_STAT(rx_copied_bytes);
  NANET_STAT(rx_kernel_dropped);
  NANET_STAT(rx_dropped_unseen);
  NANET_STAT(rx_truncated);
  NANET_STAT(rx_errors);
  NANET_STAT(rx_foreign);
  NANET_STAT(rx_malformed);
  NANET_STAT(rx_skipped_not_udp);
  NANET_STAT(rx_skipped_port);
  NANET_STAT(rx_skipped_fragment);
  NANET_STAT(rx_skipped_cut);
  NANET_STAT(rx_bytes_damaged);
  NANET_STAT(recorded);
  NANET_STAT(unrecorded);
  NANET_STAT(tx_packets);
  NANET_STAT(tx_bytes);
  NANET_STAT(tx_calls);
  NANET_STAT(tx_refused);
  NANET_STAT(tx_dropped);
#undef NANET_STAT
  return dict;
}

// True for a key that is there and not None.
inline bool has(const nb::dict& dict, const char* key) { return dict.contains(key) && !dict[key].is_none(); }

}  // namespace nanet::bindings
