// SPDX-License-Identifier: Apache-2.0
#include "json_writer.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>

#include "output.hpp"

namespace nanet::bench {
namespace {

struct Figure {
  std::string_view name;
  Histogram Latencies::*of;
};
constexpr std::array<Figure, 4> kFigures{{{"first_byte_to_last_write", &Latencies::first_to_write},
                                          {"last_byte_to_last_write", &Latencies::last_to_write},
                                          {"first_byte_to_completion", &Latencies::first_to_completion},
                                          {"last_byte_to_completion", &Latencies::last_to_completion}}};

std::vector<const Case*> ready_host(const Report& report) {
  std::vector<const Case*> all;
  for (const auto* cases : {&report.cases, &report.long_runs, &report.mixed}) {
    for (const Case& one : *cases) all.push_back(&one);
  }
  return all;
}

// Least and most of all cases; spread: the most by which packets of one case, frame size and lane differ.
void write_bounds(JsonWriter& json, const std::vector<const Case*>& cases, Histogram Latencies::*of) {
  Histogram all;
  std::uint64_t spread = 0;
  for (const Case* one : cases) {
    for_each_size(*one, [&](std::size_t, unsigned, const Latencies& latencies) {
      const Histogram& histogram = latencies.*of;
      if (histogram.count() == 0) return;
      all.add(histogram.min());
      all.add(histogram.max());
      spread = std::max(spread, histogram.spread());
    });
  }
  json.open('{').pair("min", all.min()).pair("max", all.max()).pair("spread", spread).close('}');
}

void write_histograms(JsonWriter& json, const Latencies& latencies) {
  for (const Figure& figure : kFigures) {
    const Histogram& histogram = latencies.*figure.of;
    json.key(figure.name).open('[');
    for (std::uint64_t cycles = histogram.min(); histogram.count() != 0 && cycles <= histogram.max(); ++cycles) {
      if (histogram.of(cycles) != 0) json.open('[').value(cycles).value(histogram.of(cycles)).close(']');
    }
    json.close(']');
  }
}

void write_cases(JsonWriter& json, const std::vector<Case>& cases) {
  json.open('[');
  for (const Case& one : cases) {
    for_each_size(one, [&](std::size_t bytes, unsigned lane, const Latencies& latencies) {
      const Histogram& write = latencies.last_to_write;
      json.open('{').pair("frame_bytes", frame_bytes(bytes)).pair("payload_bytes", bytes);
      json.pair("packets_per_buffer", one.packets_per_buffer).pair("start_lane", lane).pair("packets", write.count());
      json.pair("min", write.min()).pair("max", write.max());
      write_histograms(json, latencies);
      json.close('}');
    });
  }
  json.close(']');
}

void write_throughput(JsonWriter& json, const std::vector<Case>& cases, gateware::Line line) {
  json.open('[');
  for (const Case& one : cases) {
    const Measured& measured = one.measured;
    json.open('{').pair("frame_bytes", frame_bytes(one.payload_bytes)).pair("packets_per_buffer", one.packets_per_buffer);
    json.pair("sent", measured.sent).pair("stored", measured.compared.packets).pair("lost", measured.lost()).key("drops").open('{');
    for (const auto& [name, count] : measured.drops) json.pair(name, count);
    json.close('}').pair("packets_per_s", measured.packets_per_s(line));
    json.pair("payload_bytes_per_s", measured.packets_per_s(line) * static_cast<double>(one.payload_bytes));
    json.pair("line_rate_fraction", measured.line_rate_fraction).close('}');
  }
  json.close(']');
}

void write_router(JsonWriter& json, const std::vector<RouterMeasured>& loads) {
  json.open('{').pair("ports", kRouterPorts).pair("word_bytes", kRouterWordBytes).pair("clock_hz", kRouterCyclesPerSecond);
  json.pair("full_rate_bytes_per_s", static_cast<double>(kRouterPorts * kRouterWordBytes) * kRouterCyclesPerSecond).key("loads").open('[');
  for (const RouterMeasured& one : loads) {
    json.open('{').key("name").text(one.load.name).key("pattern");
    json.text(kPatternNames[static_cast<std::size_t>(one.load.pattern)])
        .pair("cycles", one.cycles)
        .pair("bytes_per_s", one.bytes_per_s());
    json.pair("full_rate_fraction", one.of_full_rate()).pair("jain_index", one.jain_index());
    json.key("packets").open('[');
    for (const std::uint64_t packets : one.packets) json.value(packets);
    json.close(']').key("bytes").open('[');
    for (const std::uint64_t bytes : one.bytes) json.value(bytes);
    json.close(']').close('}');
  }
  json.close(']').close('}');
}

void write_host(JsonWriter& json, const Report& report) {
  const gateware::HostTiming& host = report.host;
  json.open('{').key("timing").open('{').pair("write_cycles", host.write_cycles);
  json.pair("read_cycles_min", host.read_cycles_min).pair("read_cycles_max", host.read_cycles_max);
  json.pair("busy_per_1024", host.busy_per_1024).pair("seed", host.seed).close('}').key("cases");
  write_cases(json, report.with_host);
  json.key("throughput");
  write_throughput(json, report.with_host, report.line);
  json.close('}');
}

double cycles_per_wall_second(const std::vector<NodeMeasured>& runs) {
  double cycles = 0, wall_s = 0;
  for (const NodeMeasured& run : runs) {
    cycles += static_cast<double>(run.cycles);
    wall_s += run.wall_s;
  }
  return cycles / wall_s;
}

void write_cycles(JsonWriter& json, const NodeMeasured& run) {
  json.key("last_part_to_last_write_cycles");
  if (!run.last_part_to_last_write) {
    json.null();
    return;
  }
  const CycleRange& range = *run.last_part_to_last_write;
  json.open('{').pair("min", range.min).pair("max", range.max).pair("spread", range.spread()).close('}');
}

void write_node(JsonWriter& json, const std::vector<NodeMeasured>& runs) {
  json.open('{').pair("merged_gbit_per_s", runs.front().merged_gbit_per_s);
  write_cycles(json, runs.front());
  json.pair("cycles_per_wall_second", cycles_per_wall_second(runs)).key("runs").open('[');
  for (const NodeMeasured& run : runs) {
    json.open('{').pair("events_per_packet", run.load.events_per_packet).pair("hits_per_part", run.load.hits_per_part);
    json.pair("flush_cycles", run.load.flush_cycles).pair("packets", run.packets).pair("events", run.events);
    json.pair("whole_events", run.whole_events).pair("in_gbit_per_s", run.in_gbit_per_s);
    json.pair("merged_gbit_per_s", run.merged_gbit_per_s).pair("out_gbit_per_s", run.out_gbit_per_s);
    write_cycles(json, run);
    json.key("bound_cycles");
    if (const auto bound = run.load.bound_cycles()) {
      json.value(*bound);
    } else {
      json.null();
    }
    json.close('}');
  }
  json.close(']').close('}');
}

void write_conditions(JsonWriter& json, const std::vector<Condition>& conditions) {
  json.open('[');
  for (const Condition& one : conditions) {
    const Measured& measured = one.measured;
    json.open('{').key("name").text(one.name).pair("sent", measured.sent).pair("compared_packets", measured.compared.packets);
    json.pair("wrong_packets", measured.compared.wrong).pair("lost_packets", measured.compared.missing);
    json.pair("starts", one.starts).pair("wrong_starts", one.wrong_starts);
    json.pair("min_cycles", one.min_cycles).pair("max_cycles", one.max_cycles).pair("spread_cycles", one.spread_cycles);
    json.pair("tx_packets", measured.tx_sent).pair("tx_line_rate_fraction", measured.tx_line_rate_fraction).key("bounds").open('{');
    json.pair("max_cycles", one.bounds.max_cycles).pair("spread_cycles", one.bounds.spread_cycles);
    json.pair("lost_packets", one.bounds.lost_packets).key("tx_line_rate_fraction");
    one.bounds.tx_line_rate_fraction ? json.value(*one.bounds.tx_line_rate_fraction) : json.null();
    json.close('}').key("is_kept").boolean(one.passed_bounds().empty()).close('}');
  }
  json.close(']');
}

void write_tx_rates(JsonWriter& json, const std::vector<TxRate>& rates) {
  json.open('{');
  for (const TxRate& rate : rates) {
    json.key(std::to_string(frame_bytes(rate.payload_bytes))).open('{').pair("alone", rate.alone);
    json.pair("beside_16", rate.beside_16).pair("beside_1", rate.beside_1).close('}');
  }
  json.close('}');
}

}  // namespace

void print_json(const Report& report) {
  JsonWriter json;
  json.open('{');
  for (const Figure& figure : kFigures) {
    json.key(std::string(figure.name) + "_cycles");
    write_bounds(json, ready_host(report), figure.of);
  }
  std::map<std::size_t, double> lowest;
  for (const Case& one : report.cases) {
    const auto [place, is_new] = lowest.try_emplace(frame_bytes(one.payload_bytes), 1.0);
    place->second = std::min(place->second, one.measured.line_rate_fraction);
  }
  std::uint64_t lost = 0;
  for (const Case* one : ready_host(report)) lost += one->measured.lost();
  json.pair("line_gbps", static_cast<unsigned>(report.line)).pair("ns_per_cycle", gateware::ns_per_cycle(report.line));
  json.pair("compared_packets", report.compared_packets()).pair("wrong_packets", report.wrong_packets());
  json.key("tx_line_rate_fraction");
  write_tx_rates(json, tx_rates(report.conditions));
  json.key("conditions");
  write_conditions(json, report.conditions);
  json.pair("lost_packets", lost).key("line_rate_fraction").open('{');
  for (const auto& [bytes, fraction] : lowest) json.pair(std::to_string(bytes), fraction);
  json.close('}').pair("cycles_per_wall_second", report.cycles_per_wall_second).key("cases");
  write_cases(json, report.cases);
  json.key("throughput");
  write_throughput(json, report.cases, report.line);
  json.key("long_runs");
  write_cases(json, report.long_runs);
  json.key("mixed");
  write_cases(json, report.mixed);
  json.key("modelled_host");
  write_host(json, report);
  json.key("router");
  write_router(json, report.router);
  json.key("node");
  write_node(json, report.node);
  json.close('}');
  std::printf("\n");
}

}  // namespace nanet::bench
