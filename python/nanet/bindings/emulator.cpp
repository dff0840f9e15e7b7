// SPDX-License-Identifier: Apache-2.0
#include "emulate/emulator.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "config.hpp"

namespace nanet::bindings {
namespace {

using emulate::Emulator;

const char* phase_name(emulate::RunPhase phase) {
  switch (phase) {
    case emulate::RunPhase::ready: return "ready";
    case emulate::RunPhase::sending: return "sending";
    case emulate::RunPhase::draining: return "draining";
    case emulate::RunPhase::finished: return "finished";
  }
  return "unknown";
}

nb::object course_records(const std::vector<emulate::CoursePoint>& course) {
  using emulate::CoursePoint;
  return to_records(course, {{"end_ns", "<u8", offsetof(CoursePoint, end_ns)},
                             {"sent", "<u8", offsetof(CoursePoint, events_sent)},
                             {"answered", "<u8", offsetof(CoursePoint, events_answered)},
                             {"p50_ns", "<u8", offsetof(CoursePoint, p50_ns)},
                             {"p99_ns", "<u8", offsetof(CoursePoint, p99_ns)},
                             {"max_ns", "<u8", offsetof(CoursePoint, max_ns)}});
}

nb::list detector_list(const std::vector<emulate::DetectorCounts>& detectors) {
  nb::list list;
  for (const emulate::DetectorCounts& counts : detectors) {
    nb::dict detector;
    detector["packets"] = counts.packets;
    detector["primitives"] = counts.primitives;
    detector["events_shown"] = counts.events_shown;
    detector["events_seen"] = counts.events_seen;
    detector["accidentals"] = counts.accidentals;
    list.append(detector);
  }
  return list;
}

nb::dict decisions_dict(const emulate::EmulatorSnapshot& now) {
  const emulate::DecisionCounts& counts = now.decisions;
  nb::dict dict;
  dict["packets"] = counts.packets;
  dict["packets_bad_length"] = counts.packets_bad_length;
  dict["packets_bad_format"] = counts.packets_bad_format;
  dict["physics"] = counts.physics;
  dict["calibration"] = counts.calibration;
  dict["unknown"] = counts.unknown;
  dict["stale"] = counts.stale;
  dict["missing"] = counts.missing;
  dict["out_of_order"] = counts.out_of_order;
  dict["kernel_dropped"] = now.decisions_kernel_dropped;
  return dict;
}

nb::dict emulator_snapshot(const Emulator& emulator) {
  const emulate::EmulatorSnapshot now = emulator.snapshot();
  nb::dict bad_packets;
  bad_packets["length"] = now.answers.packets_bad_length;
  bad_packets["format"] = now.answers.packets_bad_format;
  bad_packets["source"] = now.answers.packets_bad_source;
  nb::dict stalls;
  stalls["count"] = now.stalls.count;
  stalls["total_ns"] = now.stalls.total_ns;
  stalls["longest_ns"] = now.stalls.longest_ns;
  nb::dict dict;
  dict["phase"] = phase_name(now.phase);
  dict["elapsed_s"] = 1e-9 * static_cast<double>(now.elapsed_ns);
  dict["packets_sent"] = now.packets_sent;
  dict["markers_sent"] = now.markers_sent;
  dict["sent"] = now.events_sent;
  dict["answered"] = now.answers.answered;
  dict["lost"] = now.events_unanswered();
  dict["answer_packets"] = now.answers.packets;
  dict["bad_packets"] = bad_packets;
  dict["bad_primitives"] = now.answers.bad_primitives;
  dict["duplicate_answers"] = now.answers.duplicate;
  dict["stale_answers"] = now.answers.stale;
  dict["unknown_answers"] = now.answers.unknown;
  dict["wrong_answers"] = now.answers.wrong;
  dict["tx_dropped"] = now.link.tx_dropped;
  dict["answers_kernel_dropped"] = now.link.rx_kernel_dropped;
  dict["stalls"] = stalls;
  dict["latency"] = nb::cast(now.latency);
  dict["latency_clean"] = nb::cast(now.latency_clean);
  dict["send_lateness"] = nb::cast(now.send_lateness);
  dict["detectors"] = detector_list(now.detectors);
  dict["decisions"] = decisions_dict(now);
  dict["decision_latency"] = nb::cast(now.decision_latency);
  dict["series"] = course_records(now.course);
  return dict;
}

nb::list truth(const Emulator& emulator, std::size_t event_count) {
  nb::list events;
  const emulate::Sample* const sample = emulator.sample();
  if (sample == nullptr) return events;
  for (std::size_t e = 0; e < std::min(event_count, sample->events().size()); ++e) {
    const emulate::McTruth& of_event = sample->events()[e].truth;
    nb::list rings;
    for (std::uint32_t r = 0; r < of_event.ring_count; ++r) {
      const emulate::McRing& ring = of_event.rings[r];
      if (ring.radius_mm <= 0) continue;  // no light
      nb::dict dict;
      dict["x_mm"] = ring.x_mm;
      dict["y_mm"] = ring.y_mm;
      dict["radius_mm"] = ring.radius_mm;
      dict["time_ns"] = ring.time_ns;
      dict["hits"] = ring.hits;
      rings.append(dict);
    }
    const wire::Primitive time = sample->event_time(static_cast<std::uint32_t>(e));
    nb::dict dict;
    dict["timestamp"] = time.timestamp;
    dict["fine_time"] = time.fine_time;
    dict["rings"] = rings;
    events.append(dict);
  }
  return events;
}

}  // namespace

void bind_emulator(nb::module_& module) {
  nb::class_<Emulator>(module, "Emulator",
                       "Readout boards, checker of answers, detectors and receiver of decisions on one clock, in one thread.")
      .def(
          "__init__", [](Emulator* self, const nb::dict& config) { new (self) Emulator(emulator_config(config)); }, nb::arg("config"))
      .def("start", &Emulator::start, nb::call_guard<nb::gil_scoped_release>())
      .def("stop", &Emulator::stop, nb::call_guard<nb::gil_scoped_release>(), "Ends sending, waits for the last answers, joins.")
      .def("wait", &wait_for_end<Emulator>, nb::arg("timeout_s"), "True when the run is over, False after timeout_s.")
      .def_prop_ro("running", &Emulator::running)
      .def_prop_ro("notes", &Emulator::notes)
      .def_prop_ro("answers_port", [](const Emulator& emulator) { return emulator.answers_endpoint().port; })
      .def_prop_ro("decisions_port", [](const Emulator& emulator) { return emulator.decisions_endpoint().port; })
      .def("truth", &truth, nb::arg("event_count"),
           "Of the first events of the pool: timestamp, fine_time, rings (x_mm, y_mm, radius_mm, time_ns, hits) as they were made.")
      .def("snapshot", &emulator_snapshot, "Totals, latencies and course of the run so far.");
}

}  // namespace nanet::bindings
