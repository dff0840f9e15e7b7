// SPDX-License-Identifier: Apache-2.0
#include "link/pcap/replay.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "emulate/recording.hpp"

namespace nanet::bindings {
namespace {

using link::Replay;

emulate::RecordingConfig recording_config(const nb::dict& dict) {
  return {
      .path = get<std::string>(dict, "file"),
      .only_port = get<std::uint16_t>(dict, "only_port"),
      .layout = get<std::string>(dict, "layout") == "packed" ? wire::MgpLayout::packed : wire::MgpLayout::padded,
      .source_id = get<std::uint8_t>(dict, "source_id"),
      .fine_time = get<std::uint8_t>(dict, "fine_time"),
  };
}

link::ReplayConfig replay_config(const nb::dict& dict) {
  using link::ReplayPace;
  const auto pace = get<std::string>(dict, "pace");
  link::ReplayConfig config{.to = get<std::string>(dict, "to"), .laps = get<std::uint64_t>(dict, "laps")};
  if (has(dict, "rate")) config.rate = get<double>(dict, "rate");
  config.pace = pace == "original"  ? ReplayPace::original
                : pace == "max"     ? ReplayPace::maximum
                : pace == "packets" ? ReplayPace::packets
                                    : ReplayPace::events;
  return config;
}

nb::dict replay_snapshot(const Replay& replay) {
  const link::ReplayStats stats = replay.stats();
  nb::dict dict;
  dict["packets_sent"] = stats.packets_sent;
  dict["bytes_sent"] = stats.bytes_sent;
  dict["events_sent"] = stats.events_sent;
  dict["laps_done"] = stats.laps_done;
  dict["elapsed_s"] = 1e-9 * static_cast<double>(stats.elapsed_ns);
  dict["latest_us"] = 1e-3 * static_cast<double>(stats.latest_ns);
  dict["tx_dropped"] = stats.tx_dropped;
  dict["tx_refused"] = stats.tx_refused;
  return dict;
}

nb::dict counts(const Replay& replay) {
  nb::dict dict;
  for (const auto& [name, count] : replay.counts()) dict[nb::str(name.data(), name.size())] = count;
  return dict;
}

}  // namespace

void bind_replay(nb::module_& module) {
  nb::class_<Replay>(module, "Replay", "Plays a recording to a destination.")
      .def(
          "__init__",
          [](Replay* self, const nb::dict& config) {
            new (self) Replay(emulate::open_recording(recording_config(config)), replay_config(config));
          },
          nb::arg("config"))
      .def("run", &Replay::run, nb::call_guard<nb::gil_scoped_release>(),
           "Plays until the end, or until stop() from another thread.")
      .def("stop", &Replay::stop)
      .def_prop_ro("finished", &Replay::finished)
      .def_prop_ro("notes", &Replay::notes)
      .def("snapshot", &replay_snapshot, "Totals so far.")
      .def("counts", &counts, "What of the recording was read and what was passed over in the last lap; once finished.");
}

}  // namespace nanet::bindings
