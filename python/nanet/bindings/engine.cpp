// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/engine.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "config.hpp"
#include "na62/rich_processor.hpp"
#include "nanet/config/read.hpp"
#include "nanet/engine/checks.hpp"
#include "values.hpp"

namespace nanet::bindings {
namespace {

nb::dict counters_of(const flow::Counters& counters) {
  return counters_dict([&](flow::Counter counter) { return counters.value(counter); });
}

nb::object faults_dict(const link::FaultInjector* injector) {
  if (injector == nullptr) return nb::none();
  const link::FaultStats faults = injector->faults();
  nb::dict dict;
  dict["passed"] = faults.passed;
  dict["lost"] = faults.lost;
  dict["duplicated"] = faults.duplicated;
  dict["reordered"] = faults.reordered;
  dict["corrupted"] = faults.corrupted;
  dict["truncated"] = faults.truncated;
  dict["delayed"] = faults.delayed;
  dict["held"] = faults.held;
  return dict;
}

nb::object nic_times(const link::Link& link) {
  const std::optional<link::NicTimes> times = link.nic_times();
  if (!times) return nb::none();
  nb::list stages;
  for (const link::NicStageTimes& of : times->stages) {
    nb::list histogram;
    for (const link::NicTimesBin& bin : of.bins) {
      nb::dict one;
      one["from_cycles"] = bin.from_cycles;
      one["to_cycles"] = bin.to_cycles == link::NicTimesBin::no_end ? nb::object(nb::none()) : nb::cast(bin.to_cycles);
      one["count"] = bin.count;
      histogram.append(one);
    }
    nb::dict stage;
    stage["name"] = of.name;
    stage["sample"] = of.sample;
    stage["count"] = of.count;
    stage["min_cycles"] = of.min_cycles;
    stage["max_cycles"] = of.max_cycles;
    stage["sum_cycles"] = of.sum_cycles;
    stage["bins"] = histogram;
    stages.append(stage);
  }
  nb::dict dict;
  dict["clock"] = times->clock;
  dict["cycle_ns"] = times->cycle_ns;
  dict["stages"] = stages;
  return dict;
}

nb::list nic_counts(const link::Link& link) {
  nb::list groups;
  for (const link::NicCounts& group : link.nic_counts()) {
    nb::dict counts;
    for (const auto& [name, count] : group.counts) counts[nb::str(name.c_str())] = count;
    nb::dict one;
    one["name"] = group.name;
    one["port"] = group.port ? nb::cast(*group.port) : nb::object(nb::none());
    one["counts"] = counts;
    groups.append(one);
  }
  return groups;
}

nb::object bins(std::span<const std::uint64_t> from) { return to_array(std::vector<std::uint64_t>(from.begin(), from.end())); }

nb::list numbers_of(const rich::ChannelSet& channels) {
  nb::list numbers;
  for (std::uint32_t c = 0; c < rich::kChannelCount; ++c) {
    if (channels.has(c)) numbers.append(c);
  }
  return numbers;
}

// The one that finds rings. Another processor has seen none, and no channel.
const na62::RichProcessor& rich_processor(const engine::Engine& engine) {
  static const na62::RichProcessor nothing_seen({});
  const auto* rich = dynamic_cast<const na62::RichProcessor*>(engine.config().processor.get());
  return rich != nullptr ? *rich : nothing_seen;
}

// Hits of every channel, and what follows from them.
nb::dict channels_dict(const engine::Engine& engine) {
  const na62::ChannelMonitor& channels = rich_processor(engine).channels();
  const auto hits = channels.hits();
  nb::list found;
  for (const na62::MaskedChannel& one : channels.found()) {
    nb::dict masked;
    masked["channel"] = one.channel;
    masked["at_s"] = one.at_ns > engine.start_ns() ? 1e-9 * static_cast<double>(one.at_ns - engine.start_ns()) : 0.0;
    masked["events"] = one.events;
    found.append(masked);
  }
  nb::dict dict;
  dict["hits"] = bins(hits);
  dict["hot"] = numbers_of(rich::hot_channels(hits));
  dict["dead"] = numbers_of(rich::dead_channels(hits));
  dict["masked"] = numbers_of(channels.configured());
  dict["masked_in_run"] = found;
  return dict;
}

nb::dict engine_snapshot(const engine::Engine& engine) {
  nb::list sources;
  nb::list links;
  for (const engine::Input& input : engine.inputs()) {
    nb::dict one_link;
    one_link["name"] = input.config.name;
    one_link["path"] = input.link->path();
    one_link["stats"] = stats_dict(input.link->stats());
    one_link["nic_times"] = nic_times(*input.link);
    one_link["nic_counts"] = nic_counts(*input.link);
    one_link["faults"] = faults_dict(input.faults);
    one_link["counters"] = counters_of(input.receiver->link_counters());
    links.append(one_link);
    for (std::size_t s = 0; s < input.config.sources.size(); ++s) {
      nb::dict source;
      source["link"] = input.config.name;
      source["name"] = input.config.sources[s].name;
      source["source_id"] = input.config.sources[s].source_id;
      source["source_sub_id"] = input.config.sources[s].source_sub_id;
      source["counters"] = counters_of(input.receiver->source_counters(s));
      sources.append(source);
    }
  }
  if (engine.send_link() != nullptr) {
    nb::dict answers;
    answers["name"] = engine.config().send->name;
    answers["path"] = engine.send_link()->path();
    answers["stats"] = stats_dict(engine.send_link()->stats());
    answers["nic_times"] = nb::none();  // of a socket, or of an input's link and told there
    answers["nic_counts"] = engine.config().send->via.empty() ? nic_counts(*engine.send_link()) : nb::list();
    answers["faults"] = nb::none();
    answers["counters"] = nb::dict();
    links.append(answers);
  }
  const rich::Spectra spectra = rich_processor(engine).rings().spectra();
  nb::dict rings;
  rings["radius_mm"] = bins(std::span(spectra.radius_mm).first(rich::kSpectrumRadiusBins));
  rings["multiplicity"] = bins(spectra.multiplicity);
  rings["count"] = bins(spectra.ring_count);
  nb::dict dict;
  dict["elapsed_s"] = engine.elapsed_s();
  dict["core_wait_s"] = 1e-9 * static_cast<double>(engine.core_wait_ns());
  dict["counters"] = counters_dict([&](flow::Counter counter) { return engine.total(counter); });
  dict["sources"] = sources;
  dict["links"] = links;
  dict["rings"] = rings;
  dict["channels"] = channels_dict(engine);
  dict["latency_ns"] = nb::cast(engine.residence_ns());
  return dict;
}

nb::dict source_metrics(const std::string& name, const flow::Counters& counters) {
  nb::dict source;
  source["name"] = name;
  source["counters"] = counters_of(counters);
  return source;
}

nb::list link_metrics(const engine::Engine& engine) {
  nb::list links;
  bool sends_by_itself = engine.send_link() != nullptr;
  for (const engine::Input& input : engine.inputs()) {
    nb::list sources;
    for (std::size_t s = 0; s < input.config.sources.size(); ++s) {
      sources.append(source_metrics(input.config.sources[s].name, input.receiver->source_counters(s)));
    }
    if (input.config.sources.empty()) sources.append(source_metrics("", input.receiver->source_counters(0)));  // raw datagrams
    nb::dict one_link;
    one_link["name"] = input.config.name;
    one_link["stats"] = stats_dict(input.link->stats());
    one_link["nic_times"] = nic_times(*input.link);
    one_link["nic_counts"] = nic_counts(*input.link);
    one_link["faults"] = faults_dict(input.faults);
    one_link["counters"] = counters_of(input.receiver->link_counters());
    one_link["sources"] = sources;
    links.append(one_link);
    if (input.link.get() == engine.send_link()) sends_by_itself = false;
  }
  if (sends_by_itself) {
    nb::dict answers;
    answers["name"] = engine.config().send->name;
    answers["stats"] = stats_dict(engine.send_link()->stats());
    answers["nic_times"] = nb::none();
    answers["nic_counts"] = nic_counts(*engine.send_link());
    answers["faults"] = nb::none();
    answers["counters"] = nb::none();
    answers["sources"] = nb::list();
    links.append(answers);
  }
  return links;
}

nb::dict metrics(const engine::Engine& engine, const std::vector<std::uint64_t>& bounds_ns) {
  std::vector<std::uint64_t> counts(bounds_ns.size());
  const flow::LatencyHistogram residence = engine.residence_ns();
  const std::uint64_t count = residence.counts_up_to(bounds_ns, counts);
  nb::dict latency;
  latency["counts"] = counts;
  latency["count"] = count;
  latency["sum_ns"] = residence.mean() * static_cast<double>(count);
  nb::dict dict;
  dict["elapsed_s"] = engine.elapsed_s();
  dict["running"] = engine.running();
  dict["faults"] = engine.faults();
  dict["links"] = link_metrics(engine);
  dict["channels"] = channels_dict(engine);
  dict["counters"] = counters_dict([&](flow::Counter counter) { return engine.total(counter); });
  dict["latency_ns"] = latency;
  return dict;
}

void set_faults(const engine::Engine& engine, const std::string& link, const nb::dict& faults) {
  for (const engine::Input& input : engine.inputs()) {
    if (input.config.name != link) continue;
    if (input.faults == nullptr) {
      throw SetupError("link " + link + " has no faults to set", "its configuration has no fault injector",
                       "configure faults: {} to have one that does nothing yet");
    }
    return input.faults->reconfigure(config::read<link::FaultConfig>(value_of(faults), "faults"));
  }
  throw SetupError("no link " + link, "the configuration does not name it", "name one of its links");
}

// Those that passed the cuts, the one with most hits first.
nb::list good_rings(const rich::EventSample& sample) {
  nb::list rings;
  for (std::uint32_t k = 0; k < sample.rings.count; ++k) {
    if ((sample.good_rings >> k & 1) == 0) continue;
    const rich::Ring& ring = sample.rings.rings[k];
    nb::dict dict;
    dict["x_mm"] = ring.x_mm;
    dict["y_mm"] = ring.y_mm;
    dict["radius_mm"] = ring.radius_mm;
    dict["rms_mm"] = ring.rms_mm;
    dict["time_ns"] = ring.time_ns;
    dict["hits"] = ring.hits;
    rings.append(dict);
  }
  return rings;
}

nb::list event_samples(const engine::Engine& engine) {
  nb::list samples;
  for (const rich::EventSample& sample : rich_processor(engine).rings().samples()) {
    const std::size_t kept = std::min<std::size_t>(sample.hit_count, rich::kMaxHits);
    nb::dict dict;
    dict["hits"] = to_array(std::vector<std::uint16_t>(sample.hits, sample.hits + kept));
    dict["timestamp"] = sample.answer.timestamp;
    dict["fine_time"] = sample.answer.fine_time;
    dict["rings"] = good_rings(sample);
    dict["found"] = (sample.answer.id & rich::kPrimitiveRingFound) != 0;
    dict["electron"] = (sample.answer.id & rich::kPrimitiveElectron) != 0;
    samples.append(dict);
  }
  return samples;
}

}  // namespace

void bind_engine(nb::module_& module) {
  using engine::Engine;
  module.def(
      "kinds", &kinds_with, nb::arg("plugins"),
      "What an engine can be built from: protocols, processors and links by name, with those of the plug-ins. Loads them; raises "
      "SetupError.");
  module.def(
      "check_engine", [](const nb::dict& config) { engine::check(engine_config(config)); }, nb::arg("config"),
      "Makes the processor and checks what goes with it; opens no link. Raises SetupError.");
  nb::class_<Engine>(module, "Engine", "A configured pipeline with its threads.")
      .def(
          "__init__", [](Engine* self, const nb::dict& config) { new (self) Engine(engine_config(config)); }, nb::arg("config"))
      .def("start", &Engine::start, nb::call_guard<nb::gil_scoped_release>())
      .def("stop", &Engine::stop, nb::call_guard<nb::gil_scoped_release>(), "Drains, answers what is open, joins the threads.")
      .def("flush", &Engine::flush, "Hands partly filled buffers over at once.")
      .def_prop_ro("running", &Engine::running)
      .def_prop_ro("inputs_finished", &Engine::inputs_finished, "Whether every link plays a file, and all are at their ends.")
      .def_prop_ro("notes", [](const Engine& engine) { return engine.notes(); })
      .def_prop_ro("device_names", &Engine::device_names, "The GPUs that process; none: the engine's own threads do.")
      .def_prop_ro("faults", &Engine::faults, "Why GPUs were given up, a line each; their buffers are then given back unjudged.")
      .def("snapshot", &engine_snapshot, "Counters, link statistics, spectra and residence times so far.")
      .def("metrics", &metrics, nb::arg("bounds_ns"),
           "What a scrape needs and no more: counters in total and of each link and source, link statistics, faults, and of the "
           "residence"
           " times count, sum_ns and how many are at most each of the ascending bounds_ns.")
      .def("set_faults", &set_faults, nb::arg("link"), nb::arg("faults"),
           "Other faults of a link with a fault injector, from its next batch on. Raises SetupError.")
      .def("event_samples", &event_samples, "The first events with their hits and rings.");
}

}  // namespace nanet::bindings
