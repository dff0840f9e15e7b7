// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string_view>

#include "json_writer.hpp"

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

// Of one frame size and lane, each.
template <class Function>
void for_each_size(const Measured& measured, std::size_t frame_bytes, Function&& function) {
  for (unsigned lane = 0; lane < 2; ++lane) {
    if (measured.by_size.empty() && measured.latencies[lane].last_to_write.count() != 0) {
      function(frame_bytes, 4 * lane, measured.latencies[lane]);
    }
  }
  for (const auto& [bytes, lanes] : measured.by_size) {
    for (unsigned lane = 0; lane < 2; ++lane) {
      if (lanes[lane].last_to_write.count() != 0) function(bytes, 4 * lane, lanes[lane]);
    }
  }
}

// --- JSON ---

// Least and most of all cases; spread: the most by which packets of one case, frame size and lane differ.
void write_bounds(JsonWriter& json, const std::vector<const Case*>& cases, Histogram Latencies::*of) {
  Histogram all;
  std::uint64_t spread = 0;
  for (const Case* one : cases) {
    for_each_size(one->measured, one->frame_bytes, [&](std::size_t, unsigned, const Latencies& latencies) {
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
    for_each_size(one.measured, one.frame_bytes, [&](std::size_t bytes, unsigned lane, const Latencies& latencies) {
      const Histogram& write = latencies.last_to_write;
      json.open('{').pair("frame_bytes", bytes).pair("payload_bytes", bytes - kHeadersAndFcs);
      json.pair("packets_per_buffer", one.packets_per_buffer).pair("start_lane", lane).pair("packets", write.count());
      json.pair("min", write.min()).pair("max", write.max());
      write_histograms(json, latencies);
      json.close('}');
    });
  }
  json.close(']');
}

void write_throughput(JsonWriter& json, const std::vector<Case>& cases) {
  json.open('[');
  for (const Case& one : cases) {
    const Measured& measured = one.measured;
    json.open('{').pair("frame_bytes", one.frame_bytes).pair("packets_per_buffer", one.packets_per_buffer);
    json.pair("sent", measured.sent).pair("stored", measured.stored).pair("lost", measured.lost()).key("drops").open('{');
    for (const auto& [name, count] : measured.drops) json.pair(name, count);
    json.close('}').pair("packets_per_s", measured.packets_per_s());
    json.pair("payload_bytes_per_s", measured.packets_per_s() * static_cast<double>(one.frame_bytes - kHeadersAndFcs));
    json.pair("line_rate_fraction", measured.line_rate_fraction).close('}');
  }
  json.close(']');
}

void write_router(JsonWriter& json, const std::vector<RouterMeasured>& loads) {
  json.open('{').pair("ports", kRouterPorts).pair("word_bytes", kRouterWordBytes).pair("clock_hz", kCyclesPerSecond);
  json.pair("full_rate_bytes_per_s", static_cast<double>(kRouterPorts * kRouterWordBytes) * kCyclesPerSecond).key("loads").open('[');
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
  write_throughput(json, report.with_host);
  json.close('}');
}

// --- tables ---

using Count = unsigned long long;

void print_latencies(const std::vector<Case>& cases) {
  std::printf("%6s %8s %5s %9s  %13s %13s %13s %13s %9s\n", "frame", "packets", "start", "packets", "first byte", "last byte",
              "first byte", "last byte", "last, ns");
  std::printf("%6s %8s %5s %9s  %13s %13s %13s %13s %9s\n", "[B]", "a buffer", "lane", "", "to write", "to write", "to completion",
              "to completion", "to write");
  for (const Case& one : cases) {
    for_each_size(one.measured, one.frame_bytes, [&](std::size_t bytes, unsigned lane, const Latencies& latencies) {
      std::printf("%6zu %8u %5u %9llu ", bytes, one.packets_per_buffer, lane, static_cast<Count>(latencies.last_to_write.count()));
      for (const auto of : {&Latencies::first_to_write, &Latencies::last_to_write, &Latencies::first_to_completion,
                            &Latencies::last_to_completion}) {
        const Histogram& histogram = latencies.*of;
        const bool none = histogram.count() == 0, one_value = histogram.spread() == 0;
        if (none) std::printf(" %13s", "-");
        if (!none && one_value) std::printf(" %13llu", static_cast<Count>(histogram.min()));
        if (!none && !one_value) {
          std::printf(" %6llu-%-6llu", static_cast<Count>(histogram.min()), static_cast<Count>(histogram.max()));
        }
      }
      std::printf(" %9.1f\n", static_cast<double>(latencies.last_to_write.max()) * gateware::kNsPerCycle);
    });
  }
}

void print_throughput(const std::vector<Case>& cases) {
  std::printf("%6s %8s %9s %9s %7s %12s %12s %10s\n", "frame", "packets", "sent", "stored", "lost", "packets/s", "payload MB/s",
              "of line");
  std::printf("%6s %8s\n", "[B]", "a buffer");
  for (const Case& one : cases) {
    const Measured& measured = one.measured;
    std::printf("%6zu %8u %9llu %9llu %7llu %12.0f %12.1f %10.6f", one.frame_bytes, one.packets_per_buffer,
                static_cast<Count>(measured.sent), static_cast<Count>(measured.stored), static_cast<Count>(measured.lost()),
                measured.packets_per_s(), measured.packets_per_s() * static_cast<double>(one.frame_bytes - kHeadersAndFcs) * 1e-6,
                measured.line_rate_fraction);
    for (const auto& [name, count] : measured.drops)
      std::printf("  %.*s %llu", static_cast<int>(name.size()), name.data(), static_cast<Count>(count));
    std::printf("\n");
  }
}

void print_mixed(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    std::uint64_t spread = 0, packets = 0;
    std::size_t least = SIZE_MAX, most = 0;
    for_each_size(one.measured, one.frame_bytes, [&](std::size_t bytes, unsigned, const Latencies& latencies) {
      spread = std::max(spread, latencies.last_to_write.spread());
      packets += latencies.last_to_write.count();
      least = std::min(least, bytes);
      most = std::max(most, bytes);
    });
    std::printf(
        "%llu packets, frames of %zu to %zu B at random: lost %llu, last byte to last write spreads %llu cycles at most for one "
        "size and lane\n",
        static_cast<Count>(packets), least, most, static_cast<Count>(one.measured.lost()), static_cast<Count>(spread));
  }
}

void print_router(const std::vector<RouterMeasured>& loads) {
  std::printf("%-40s %8s %12s %8s  %s\n", "load", "GB/s", "of full rate", "Jain", "packets of each input");
  for (const RouterMeasured& one : loads) {
    std::printf("%-40.*s %8.3f %12.6f %8.6f ", static_cast<int>(one.load.name.size()), one.load.name.data(),
                one.bytes_per_s() * 1e-9, one.of_full_rate(), one.jain_index());
    for (const std::uint64_t packets : one.packets) std::printf(" %llu", static_cast<Count>(packets));
    std::printf("\n");
  }
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
    json.close('}');
  }
  json.close(']').close('}');
}

void print_node(const std::vector<NodeMeasured>& runs) {
  std::printf("%8s %6s %9s %9s %9s %9s %9s %15s\n", "events", "hits", "events", "whole", "in", "merged", "out", "last part to");
  std::printf("%8s %6s %9s %9s %9s %9s %9s %15s\n", "a packet", "a part", "", "", "[Gb/s]", "[Gb/s]", "[Gb/s]", "last write");
  for (const NodeMeasured& run : runs) {
    std::printf("%8zu %6zu %9llu %9llu %9.2f %9.2f %9.2f", run.load.events_per_packet, run.load.hits_per_part,
                static_cast<Count>(run.events), static_cast<Count>(run.whole_events), run.in_gbit_per_s, run.merged_gbit_per_s,
                run.out_gbit_per_s);
    if (run.last_part_to_last_write) {
      std::printf(" %7llu-%-7llu\n", static_cast<Count>(run.last_part_to_last_write->min),
                  static_cast<Count>(run.last_part_to_last_write->max));
    } else {
      std::printf(" %15s\n", "-");
    }
  }
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
    const auto [place, is_new] = lowest.try_emplace(one.frame_bytes, 1.0);
    place->second = std::min(place->second, one.measured.line_rate_fraction);
  }
  std::uint64_t lost = 0;
  for (const Case* one : ready_host(report)) lost += one->measured.lost();
  json.pair("lost_packets", lost).key("line_rate_fraction").open('{');
  for (const auto& [bytes, fraction] : lowest) json.pair(std::to_string(bytes), fraction);
  json.close('}').pair("cycles_per_wall_second", report.cycles_per_wall_second).key("cases");
  write_cases(json, report.cases);
  json.key("throughput");
  write_throughput(json, report.cases);
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

void print_tables(const Report& report) {
  std::printf("RTL, the host ready at once: latency in cycles of %.1f ns\n", gateware::kNsPerCycle);
  print_latencies(report.cases);
  std::printf("\nRTL, many packets\n");
  print_latencies(report.long_runs);
  print_mixed(report.mixed);
  std::printf("\nRTL, frames back to back at 10 Gb/s\n");
  print_throughput(report.cases);
  const gateware::HostTiming& host = report.host;
  std::printf(
      "\nModelled host (chosen numbers, not the NIC's): a write lands after %u cycles, a read is answered after %u to %u, the bus "
      "is busy %u cycles of "
      "1024, seed %llu\n",
      host.write_cycles, host.read_cycles_min, host.read_cycles_max, host.busy_per_1024, static_cast<Count>(host.seed));
  print_latencies(report.with_host);
  print_throughput(report.with_host);
  std::printf("\nRouter, %zu ports of %zu bytes at %.2f MHz\n", kRouterPorts, kRouterWordBytes, kCyclesPerSecond * 1e-6);
  print_router(report.router);
  std::printf("\nNode, four ports at 10 Gb/s with packets of 1168 B, merged: latency in cycles of %.1f ns\n", gateware::kNsPerCycle);
  print_node(report.node);
  std::printf("\nSpeed of the simulation: %.0f cycles a second\n", report.cycles_per_wall_second);
}

}  // namespace nanet::bench
