// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

namespace nanet::bench {
namespace {

using torus::kLinks;
using torus::Load;
using torus::Node;
using torus::Pattern;
using torus::Settings;
using torus::Shape;
using torus::Torus;
using torus::Window;

constexpr std::uint64_t kDrainCyclesMax = 400'000;  // a full torus is empty long before
constexpr std::uint64_t kDrainStep = 500;
constexpr std::uint32_t kHopWireCycles = 3;
constexpr int kHopRounds = 40;

std::uint64_t credits_cycles(const Torus& torus) {
  return 2ull * torus.wire_cycles() + 64;
}  // each end has heard what the other has room for

std::uint64_t arrived(const Torus& torus) {
  std::uint64_t packets = 0;
  for (std::size_t n = 0; n < torus.size(); ++n) packets += torus.node(n).sink().latencies().count();
  return packets;
}

std::uint64_t born(const Torus& torus) {
  std::uint64_t packets = 0;
  for (std::size_t n = 0; n < torus.size(); ++n) packets += torus.node(n).source().born();
  return packets;
}

void read_nodes(const Torus& torus, Point& point) {
  const auto window = static_cast<double>(point.run.window_cycles);
  std::uint64_t hops = 0, good = 0;
  point.accepted_worst_node = std::numeric_limits<double>::max();
  for (std::size_t n = 0; n < torus.size(); ++n) {
    const Node& node = torus.node(n);
    const double accepted = static_cast<double>(node.sink().window_words()) / window;
    point.accepted += accepted / static_cast<double>(torus.size());
    point.accepted_worst_node = std::min(point.accepted_worst_node, accepted);
    point.latencies.add(node.sink().latencies());
    hops += node.sink().hops();
    good += node.sink().good();
    std::array<double, kLinks>& words = point.link_words.emplace_back();
    for (std::size_t port = 0; port < kLinks; ++port) words[port] = static_cast<double>(node.link(port).words) / window;
  }
  point.mean_hops = good == 0 ? 0 : static_cast<double>(hops) / static_cast<double>(good);
}

void check(Torus& torus, std::vector<std::string>& problems, bool may_lose = false) {
  if (!torus.drain(kDrainCyclesMax)) problems.push_back("something stands still: not all packets that were sent in have a fate");
  const torus::Books books = torus.books();
  if (books.wrong != 0) problems.push_back(std::to_string(books.wrong) + " packets are not what was sent");
  if (!may_lose && books.flagged + books.losses() != 0)
    problems.push_back(std::to_string(books.flagged + books.losses()) + " packets flagged or lost");
  if (const std::string problem = torus.problem(); !problem.empty()) problems.push_back(problem);
}

// A row of packets from a node to its neighbour, with nothing in the other direction but CREDITs.
LinkEfficiency measure_efficiency(std::uint32_t payload_bytes, std::uint32_t wire_cycles, std::vector<std::string>& problems) {
  constexpr std::uint64_t kWarmup = 4000, kWindow = 12'000;
  Torus torus({.shape = Shape({3, 1, 1}), .wire_cycles = wire_cycles, .threads = 1});
  const std::uint64_t packets = (kWarmup + kWindow) / torus::payload_words(payload_bytes);  // more than can go
  for (std::uint64_t k = 0; k < packets; ++k) torus.node(0).source().push(1, payload_bytes, 0);
  torus.set_window({kWarmup, kWarmup + kWindow});
  torus.run(kWarmup + kWindow);
  const torus::Sink& sink = torus.node(1).sink();
  LinkEfficiency link{.payload_bytes = payload_bytes, .packets = sink.row_packets(), .cycles = sink.row_cycles()};
  check(torus, problems);
  if (link.cycles != 0) {
    link.efficiency = static_cast<double>(link.packets * torus::payload_words(payload_bytes)) / static_cast<double>(link.cycles);
  }
  return link;
}

// One packet at a time from each node, to itself and to each of its neighbours; a neighbour's is later by a hop and the wire.
Hops measure_hops(std::vector<std::string>& problems) {
  Torus torus({.shape = Shape({3, 3, 3}), .wire_cycles = kHopWireCycles, .threads = 1});
  torus.run(credits_cycles(torus));
  Hops hops;
  hops.min.fill(std::numeric_limits<std::uint64_t>::max());
  torus::Random random(1);
  const auto nodes = static_cast<std::uint32_t>(torus.size());
  const auto round = [&](auto destination, auto&& cycles_are) {
    torus.run(1 + random.next() % 61);
    const std::uint64_t begin = torus.cycle();
    for (std::uint32_t n = 0; n < nodes; ++n) torus.node(n).source().push(destination(n), 0, begin);
    torus.run(100);
    for (std::uint32_t n = 0; n < nodes; ++n) cycles_are(torus.node(destination(n)).sink().last_header_cycle() - begin);
    hops.packets += nodes;
  };
  round([](std::uint32_t n) { return n; }, [&](std::uint64_t cycles) { hops.router_cycles = std::max(hops.router_cycles, cycles); });
  for (int k = 0; k < kHopRounds; ++k) {
    for (std::size_t port = 0; port < kLinks; ++port) {
      round([&](std::uint32_t n) { return torus.shape().neighbour(n, port); },
            [&](std::uint64_t cycles) {
              const std::uint64_t hop = cycles - hops.router_cycles - kHopWireCycles;
              hops.min[port] = std::min(hops.min[port], hop);
              hops.max[port] = std::max(hops.max[port], hop);
            });
    }
  }
  check(torus, problems);
  return hops;
}

}  // namespace

// Less than 95 % of what was born in the window came in as long a time, or some of it had not come long after.
bool Point::is_saturated() const {
  constexpr double kLeast = 0.95;
  const double words = static_cast<double>(born) * torus::packet_words(run.load.payload_bytes);
  const double nodes = static_cast<double>(link_words.size());
  return latencies.count() < born || accepted * nodes * static_cast<double>(run.window_cycles) < kLeast * words;
}

Point measure_point(const Run& run) {
  Point point{.run = run};
  const auto begin = std::chrono::steady_clock::now();
  Torus torus(run.settings);
  torus.run(credits_cycles(torus));
  torus.set_load(run.load);
  const std::uint64_t from = torus.cycle() + run.warmup_cycles;
  torus.set_window({from, from + run.window_cycles});
  torus.run(run.warmup_cycles + run.window_cycles);
  point.born = born(torus);
  for (std::uint64_t k = 0; k < run.drain_cycles && arrived(torus) < point.born; k += kDrainStep) torus.run(kDrainStep);
  read_nodes(torus, point);
  check(torus, point.problems);
  point.books = torus.books();
  point.node_cycles = torus.cycle() * torus.size();
  point.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return point;
}

Fault measure_fault(const Run& run, std::size_t port) {
  constexpr std::uint64_t kSilentCyclesMax = 4000, kStep = 16;
  Torus torus(run.settings);
  Fault fault{.port = port};
  torus::Random random(run.load.seed + port);
  fault.node = static_cast<std::uint32_t>(random.next() % torus.size());
  const std::uint32_t there = torus.shape().neighbour(fault.node, port);
  const torus::LinkCounts& one = torus.node(fault.node).link(port);
  const torus::LinkCounts& other = torus.node(there).link(port ^ 1);
  torus.run(credits_cycles(torus));
  torus.set_load(run.load);
  torus.run(run.warmup_cycles + random.next() % 300);

  const std::uint64_t cut = torus.cycle() + torus.wire_cycles();
  torus.set_cable(fault.node, port, false);
  while ((one.silences == 0 || other.silences == 0) && torus.cycle() < cut + kSilentCyclesMax) torus.run(kStep);
  if (one.silences == 0 || other.silences == 0) {
    fault.problems.emplace_back("a dead cable was not noticed");
  } else {
    fault.silent_cycles = std::max(one.silent_cycle, other.silent_cycle) - cut;
  }
  torus.set_link(fault.node, port, false);  // as the lanes do
  torus.run(run.window_cycles / 2);
  torus.set_cable(fault.node, port, true);
  torus.set_link(fault.node, port, true);
  const std::uint64_t before = one.good + other.good;
  torus.run(run.window_cycles / 2);
  fault.packets_after = one.good + other.good - before;
  if (fault.packets_after == 0) fault.problems.emplace_back("no packet came over the cable after it was back");
  check(torus, fault.problems, true);
  fault.books = torus.books();
  fault.false_alarms = fault.books.links.silences - one.silences - other.silences;
  if (fault.false_alarms != 0) fault.problems.push_back(std::to_string(fault.false_alarms) + " links took a neighbour for dead");
  return fault;
}

Ways measure_ways(const Run& run) {
  Torus torus(run.settings);
  torus.run(credits_cycles(torus));
  torus.set_load(run.load);
  torus.run(run.warmup_cycles + run.window_cycles);
  Ways found;
  check(torus, found.problems);
  found.books = torus.books();
  for (std::uint32_t n = 0; n < torus.size(); ++n) {
    for (std::size_t from = 0; from < 2 * kLinks; ++from) {
      for (std::size_t to = 0; to < 2 * kLinks; ++to) {
        if (torus.node(n).went(from, to)) found.ways.push_back({n, from, to});
      }
    }
  }
  return found;
}

LinkReport measure_link(std::uint32_t wire_cycles) {
  LinkReport report{.wire_cycles = wire_cycles, .efficiencies = {}, .hops = {}, .problems = {}};
  for (const std::uint32_t payload_bytes : {4096u, 256u}) {
    report.efficiencies.push_back(measure_efficiency(payload_bytes, wire_cycles, report.problems));
  }
  report.hops = measure_hops(report.problems);
  return report;
}

namespace {

constexpr std::uint32_t kPutTarget = 0x1'0000;  // of the region, in the memory of each node
constexpr std::uint64_t kPutCyclesMax = 5000;

void put_once(torus::RdmaTorus& torus, std::uint32_t from, const torus::Region& region, std::uint32_t at, PutReport& report) {
  const std::uint32_t to = region.node;
  const auto data = torus.memory(from).subspan(at, report.bytes), came = torus.memory(to).subspan(kPutTarget + at, report.bytes);
  torus.put(from, at, report.bytes, region, at);
  std::vector<Completion> completions;
  for (const std::uint64_t end = torus.cycle() + kPutCyclesMax; completions.empty() && torus.cycle() < end;) {
    torus.run(1);
    completions = torus.take(to);
  }
  if (completions.size() != 1 || completions[0].kind != CompletionKind::message || !std::ranges::equal(data, came)) {
    report.problems.push_back("a PUT from node " + std::to_string(from) + " to " + std::to_string(to) + " did not come as it was");
    return;
  }
  const std::uint64_t cycles = torus.node(to).completion_cycle() - torus.node(from).job_cycle();
  report.min = report.puts == 0 ? cycles : std::min(report.min, cycles);
  report.max = std::max(report.max, cycles);
  ++report.puts;
}

}  // namespace

PutReport measure_put(std::uint32_t wire_cycles) {
  constexpr std::uint32_t kRounds = 16;
  PutReport report{.wire_cycles = wire_cycles, .problems = {}};
  torus::Random random(1);
  for (const auto& shape : {torus::Shape({3, 1, 1}), torus::Shape({1, 3, 1}), torus::Shape({1, 1, 3})}) {
    torus::RdmaTorus torus(shape, wire_cycles);
    std::vector<torus::Region> regions;
    for (std::uint32_t n = 0; n < torus.size(); ++n) {
      for (std::uint8_t& byte : torus.memory(n).first(kPutTarget)) byte = static_cast<std::uint8_t>(random.next());
      regions.push_back(torus.share(n, kPutTarget, kPutTarget, false, true));
    }
    for (std::uint32_t k = 0; k < kRounds * torus.size() * 2; ++k) {
      const auto from = static_cast<std::uint32_t>(k % torus.size()),
                 to = static_cast<std::uint32_t>((from + 1 + k % 2) % torus.size());
      torus.run(64 + random.next() % 37);  // so that a CREDIT leaves at another cycle of each
      put_once(torus, from, regions[to], report.bytes * k, report);
    }
  }
  return report;
}

}  // namespace nanet::bench
