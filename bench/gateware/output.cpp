// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

namespace nanet::bench {
namespace {

using Count = unsigned long long;

void print_latencies(const std::vector<Case>& cases, gateware::Line line) {
  std::printf("%6s %8s %5s %9s  %13s %13s %13s %13s %9s\n", "frame", "packets", "start", "packets", "first byte", "last byte",
              "first byte", "last byte", "last, ns");
  std::printf("%6s %8s %5s %9s  %13s %13s %13s %13s %9s\n", "[B]", "a buffer", "lane", "", "to write", "to write", "to completion",
              "to completion", "to write");
  for (const Case& one : cases) {
    for_each_size(one, [&](std::size_t bytes, unsigned lane, const Latencies& latencies) {
      std::printf("%6zu %8u %5u %9llu ", frame_bytes(bytes), one.packets_per_buffer, lane,
                  static_cast<Count>(latencies.last_to_write.count()));
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
      std::printf(" %9.1f\n", static_cast<double>(latencies.last_to_write.max()) * gateware::ns_per_cycle(line));
    });
  }
}

void print_throughput(const std::vector<Case>& cases, gateware::Line line) {
  std::printf("%6s %8s %9s %9s %7s %12s %12s %10s\n", "frame", "packets", "sent", "stored", "lost", "packets/s", "payload MB/s",
              "of line");
  std::printf("%6s %8s\n", "[B]", "a buffer");
  for (const Case& one : cases) {
    const Measured& measured = one.measured;
    std::printf("%6zu %8u %9llu %9llu %7llu %12.0f %12.1f %10.6f", frame_bytes(one.payload_bytes), one.packets_per_buffer,
                static_cast<Count>(measured.sent), static_cast<Count>(measured.compared.packets),
                static_cast<Count>(measured.lost()), measured.packets_per_s(line),
                measured.packets_per_s(line) * static_cast<double>(one.payload_bytes) * 1e-6, measured.line_rate_fraction);
    for (const auto& [name, count] : measured.drops)
      std::printf("  %.*s %llu", static_cast<int>(name.size()), name.data(), static_cast<Count>(count));
    std::printf("\n");
  }
}

void print_mixed(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    std::uint64_t spread = 0, packets = 0;
    std::size_t least = SIZE_MAX, most = 0;
    for_each_size(one, [&](std::size_t bytes, unsigned, const Latencies& latencies) {
      spread = std::max(spread, latencies.last_to_write.spread());
      packets += latencies.last_to_write.count();
      least = std::min(least, bytes);
      most = std::max(most, bytes);
    });
    std::printf(
        "%llu packets, frames of %zu to %zu B at random: lost %llu, last byte to last write spreads %llu cycles at most for one "
        "size and lane\n",
        static_cast<Count>(packets), frame_bytes(least), frame_bytes(most), static_cast<Count>(one.measured.lost()),
        static_cast<Count>(spread));
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

void print_node(const std::vector<NodeMeasured>& runs) {
  std::printf("%8s %6s %6s %9s %9s %9s %9s %9s %15s\n", "events", "hits", "flush", "events", "whole", "in", "merged", "out",
              "last part to");
  std::printf("%8s %6s %6s %9s %9s %9s %9s %9s %15s\n", "a packet", "a part", "", "", "", "[Gb/s]", "[Gb/s]", "[Gb/s]",
              "last write, of");
  for (const NodeMeasured& run : runs) {
    std::printf("%8zu %6zu %6u %9llu %9llu %9.2f %9.2f %9.2f", run.load.events_per_packet, run.load.hits_per_part,
                run.load.flush_cycles, static_cast<Count>(run.events), static_cast<Count>(run.whole_events), run.in_gbit_per_s,
                run.merged_gbit_per_s, run.out_gbit_per_s);
    if (run.last_part_to_last_write) {
      std::printf(" %5llu-%-4llu %4llu\n", static_cast<Count>(run.last_part_to_last_write->min),
                  static_cast<Count>(run.last_part_to_last_write->max), static_cast<Count>(run.load.bound_cycles().value_or(0)));
    } else {
      std::printf(" %15s\n", "-");
    }
  }
}

void print_conditions(const std::vector<Condition>& conditions) {
  std::printf("%-76s %9s %6s %6s %9s %6s %8s\n", "condition", "packets", "wrong", "lost", "cycles", "spread", "sent, of");
  std::printf("%-76s %9s %6s %6s %9s %6s %8s\n", "", "compared", "", "", "", "", "line");
  for (const Condition& one : conditions) {
    const Compared& compared = one.measured.compared;
    std::printf("%-76s %9llu %6llu %6llu", one.name.c_str(), static_cast<Count>(compared.packets),
                static_cast<Count>(compared.wrong), static_cast<Count>(compared.missing));
    if (one.max_cycles != 0) {
      std::printf(" %4llu-%-4llu %6llu", static_cast<Count>(one.min_cycles), static_cast<Count>(one.max_cycles),
                  static_cast<Count>(one.spread_cycles));
    } else {
      std::printf(" %9s %6s", "-", "-");
    }
    if (one.measured.tx_sent != 0) std::printf(" %8.4f", one.measured.tx_line_rate_fraction);
    if (one.starts != 0) {
      std::printf("   %llu of %llu starts wrong", static_cast<Count>(one.wrong_starts), static_cast<Count>(one.starts));
    }
    std::printf("\n");
  }
}

}  // namespace

std::uint64_t Report::compared_packets() const {
  std::uint64_t packets = 0;
  for_each_run([&](const Measured& one) { packets += one.compared.packets; });
  return packets;
}

std::uint64_t Report::wrong_packets() const {
  std::uint64_t packets = 0;
  for_each_run([&](const Measured& one) { packets += one.compared.wrong; });
  return packets;
}

std::vector<std::string> Report::problems() const {
  std::vector<std::string> problems;
  const std::uint64_t wrong = wrong_packets();
  if (wrong != 0) {
    std::string first;
    for_each_run([&](const Measured& one) {
      if (first.empty()) first = one.compared.first_wrong;
    });
    problems.push_back(std::to_string(wrong) + " of " + std::to_string(compared_packets()) +
                       " packets are not what was sent (the first: " + first + ") the NIC, or its model, is broken");
  }
  for (const Condition& one : conditions) {
    for (const std::string& bound : one.passed_bounds()) {
      problems.push_back(one.name + ": a bound is passed (" + bound + ") see docs/design/gateware-nic.md");
    }
  }
  return problems;
}

void print_tables(const Report& report) {
  std::printf("RTL, the host ready at once: latency in cycles of %.1f ns\n", gateware::ns_per_cycle(report.line));
  print_latencies(report.cases, report.line);
  std::printf("\nRTL, many packets\n");
  print_latencies(report.long_runs, report.line);
  print_mixed(report.mixed);
  std::printf("\nRTL, frames back to back at %u Gb/s\n", static_cast<unsigned>(report.line));
  print_throughput(report.cases, report.line);
  const gateware::HostTiming& host = report.host;
  std::printf(
      "\nModelled host (chosen numbers, not the NIC's): a write lands after %u cycles, a read is answered after %u to %u, the bus "
      "is busy %u cycles of "
      "1024, seed %llu\n",
      host.write_cycles, host.read_cycles_min, host.read_cycles_max, host.busy_per_1024, static_cast<Count>(host.seed));
  print_latencies(report.with_host, report.line);
  print_throughput(report.with_host, report.line);
  std::printf("\nRTL, the host ready at once, frames back to back, under these conditions\n");
  print_conditions(report.conditions);
  std::printf("\nRouter, %zu ports of %zu bytes at %.2f MHz\n", kRouterPorts, kRouterWordBytes, kRouterCyclesPerSecond * 1e-6);
  print_router(report.router);
  std::printf("\nNode, four ports at 10 Gb/s with packets of 1168 B, merged: latency in cycles of %.1f ns\n",
              gateware::ns_per_cycle(gateware::Line::gbps_10));
  print_node(report.node);
  std::printf("\nCompared whole with what was sent: %llu packets, %llu wrong\n", static_cast<Count>(report.compared_packets()),
              static_cast<Count>(report.wrong_packets()));
  std::printf("Speed of the simulation: %.0f cycles a second\n", report.cycles_per_wall_second);
}

}  // namespace nanet::bench
