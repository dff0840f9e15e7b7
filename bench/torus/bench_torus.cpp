// SPDX-License-Identifier: Apache-2.0
// Load curves of a torus of verilated nodes, and what a link and a hop take, counted in simulated cycles. Prints one JSON object (docs/json.md).
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../gateware/json_writer.hpp"
#include "measure.hpp"

namespace {

using namespace nanet::bench;
namespace torus = nanet::torus;

constexpr std::string_view kUsage = R"(usage: bench_torus [OPTION...]
  --shape XxYxZ       nodes of each dimension, such as 4x4x4 (2x2x2)
  --pattern NAME      uniform, neighbour, tornado, complement, transpose, rotate or hot_spot (uniform)
  --loads A,B,...     offered, in words a node and cycle, header and footer included (0.5)
  --payload-bytes N   of each packet, 0 to 4096 (256)
  --wire-cycles N     of cable and lanes, each way (16)
  --threads N         (1)
  --seed N            of the random numbers (1)
  --warmup N, --window N, --drain N   cycles (3000, 6000, 20000)
  --faults N          in place of load curves: N times each kind of cable is cut under the first load, and comes back (0)
  --ways 1            in place of load curves: which ways through each router packets took, for torus_dependencies.py
or: bench_torus --link N     efficiency of a link with N cycles of wire each way, and the cycles of a hop
or: bench_torus --put N      small PUTs from memory to memory over a wire of N cycles
Exit status: 0, 1 when a packet is not what was sent, lost or stands still, 2 usage.
)";

struct Options {
  Run run;
  std::vector<double> loads{0.5};
  std::optional<std::uint32_t> link, put;
  std::uint32_t faults = 0, ways = 0;
};

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_loads(std::string_view text, std::vector<double>& loads) {
  loads.clear();
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    double load = 0;
    if (!read_number(text.substr(0, comma), load) || !(load >= 0 && load <= 1)) return false;
    loads.push_back(load);
    if (comma == text.size()) return true;
    text.remove_prefix(comma + 1);
  }
}

bool read_pattern(std::string_view text, torus::Pattern& pattern) {
  const auto found = std::ranges::find(torus::kPatternNames, text);
  pattern = static_cast<torus::Pattern>(found - torus::kPatternNames.begin());
  return found != torus::kPatternNames.end();
}

bool read_option(std::string_view name, std::string_view value, Options& options) {
  Run& run = options.run;
  if (name == "--shape") run.settings.shape = torus::Shape::read(value);
  if (name == "--shape") return true;
  if (name == "--pattern") return read_pattern(value, run.load.pattern);
  if (name == "--loads") return read_loads(value, options.loads);
  if (name == "--payload-bytes")
    return read_number(value, run.load.payload_bytes) && run.load.payload_bytes <= torus::kPayloadBytesMax;
  if (name == "--wire-cycles") return read_number(value, run.settings.wire_cycles);
  if (name == "--threads") return read_number(value, run.settings.threads);
  if (name == "--seed") return read_number(value, run.load.seed);
  if (name == "--warmup") return read_number(value, run.warmup_cycles);
  if (name == "--window") return read_number(value, run.window_cycles) && run.window_cycles != 0;
  if (name == "--drain") return read_number(value, run.drain_cycles);
  if (name == "--ways") return read_number(value, options.ways);
  if (name == "--faults") return read_number(value, options.faults);
  if (name == "--put") return read_number(value, options.put.emplace());
  return name == "--link" && read_number(value, options.link.emplace());
}

std::optional<Options> read_options(int argc, char** argv) {
  Options options;
  options.run.settings.shape = torus::Shape({2, 2, 2});
  for (int k = 1; k < argc; k += 2) {
    if (k + 1 == argc || !read_option(argv[k], argv[k + 1], options)) return std::nullopt;
  }
  return options;
}

void print_problems(JsonWriter& json, const std::vector<std::string>& problems) {
  json.key("problems").open('[');
  for (const std::string& problem : problems) json.text(problem);
  json.close(']');
}

void print_latency(JsonWriter& json, const torus::Latencies& latencies) {
  json.key("latency_cycles");
  if (latencies.count() == 0) {
    json.null();
    return;
  }
  json.open('{').pair("mean", latencies.mean()).pair("min", latencies.min()).pair("p50", latencies.at(0.5));
  json.pair("p99", latencies.at(0.99)).pair("max", latencies.max()).close('}');
}

void print_books(JsonWriter& json, const torus::Books& books) {
  json.key("books").open('{').pair("injected", books.injected).pair("good", books.good).pair("flagged", books.flagged);
  json.pair("wrong", books.wrong).key("losses").open('{');
  const auto loss = [&](std::string_view name, std::uint64_t count) {
    if (count != 0) json.pair(name, count);
  };
  loss("drop_length", books.router.drop_length);
  loss("drop_outside", books.router.drop_outside);
  loss("drop_turn", books.router.drop_turn);
  loss("drop_port", books.router.drop_port);
  loss("drop_hops", books.router.drop_hops);
  loss("drop_down", books.links.drop_down);
  loss("drop_header", books.links.drop_header);
  loss("drop_lost", books.links.drop_lost);
  loss("in_wires", books.in_wires);
  json.close('}').key("is_balanced").boolean(books.balance()).close('}');
}

void print_point(JsonWriter& json, const Point& point) {
  const Run& run = point.run;
  json.open('{').key("pattern").text(torus::kPatternNames[static_cast<std::size_t>(run.load.pattern)]);
  json.key("shape")
      .text(run.settings.shape.text())
      .pair("payload_bytes", run.load.payload_bytes)
      .pair("wire_cycles", run.settings.wire_cycles);
  json.pair("seed", run.load.seed).pair("window_cycles", run.window_cycles);
  json.pair("offered", run.load.offered).pair("accepted", point.accepted).pair("accepted_worst_node", point.accepted_worst_node);
  json.key("is_saturated").boolean(point.is_saturated());
  print_latency(json, point.latencies);
  json.pair("mean_hops", point.mean_hops);
  print_books(json, point.books);
  json.key("link_words").open('[');
  for (const auto& node : point.link_words) {
    json.open('[');
    for (const double words : node) json.value(words);
    json.close(']');
  }
  json.close(']').pair("node_cycles", point.node_cycles).pair("wall_s", point.wall_s);
  print_problems(json, point.problems);
  json.close('}');
}

void print_link(const LinkReport& report) {
  JsonWriter json;
  json.open('{').pair("wire_cycles", report.wire_cycles).key("efficiencies").open('[');
  for (const LinkEfficiency& one : report.efficiencies) {
    json.open('{').pair("payload_bytes", one.payload_bytes).pair("packets", one.packets).pair("cycles", one.cycles);
    json.pair("efficiency", one.efficiency).close('}');
  }
  json.close(']').key("hops").open('{').pair("packets", report.hops.packets);
  for (const auto& [name, cycles] : {std::pair("min", report.hops.min), std::pair("max", report.hops.max)}) {
    json.key(name).open('[');
    for (const std::uint64_t one : cycles) json.value(one);
    json.close(']');
  }
  json.close('}');
  print_problems(json, report.problems);
  json.close('}');
  std::puts("");
}

void print_put(const PutReport& report) {
  JsonWriter json;
  json.open('{').pair("bytes", report.bytes).pair("wire_cycles", report.wire_cycles);
  json.pair("host_read_cycles", report.host_read_cycles).pair("puts", report.puts).pair("min", report.min).pair("max", report.max);
  print_problems(json, report.problems);
  json.close('}');
  std::puts("");
}

bool print_curve(const Options& options) {
  JsonWriter json;
  json.open('{').key("curves").open('[');
  bool good = true;
  for (const double load : options.loads) {
    Run run = options.run;
    run.load.offered = load;
    const Point point = measure_point(run);
    good &= point.problems.empty();
    print_point(json, point);
    std::fflush(stdout);
  }
  json.close(']').close('}');
  std::puts("");
  return good;
}

bool print_faults(const Options& options) {
  JsonWriter json;
  json.open('{').key("faults").open('[');
  bool good = true;
  for (std::size_t k = 0; k < options.faults * torus::kLinks; ++k) {
    Run run = options.run;
    const std::size_t port = k % torus::kLinks;
    if (!run.settings.shape.has_link(port)) continue;
    run.load.offered = options.loads.front();
    run.load.seed += k;
    const Fault fault = measure_fault(run, port);
    good &= fault.problems.empty();
    json.open('{').pair("node", fault.node).pair("port", fault.port).pair("silent_cycles", fault.silent_cycles);
    json.pair("packets_after", fault.packets_after).pair("false_alarms", fault.false_alarms);
    print_books(json, fault.books);
    print_problems(json, fault.problems);
    json.close('}');
  }
  json.close(']').close('}');
  std::puts("");
  return good;
}

bool print_ways(const Options& options) {
  Run run = options.run;
  run.load.offered = options.loads.front();
  const Ways found = measure_ways(run);
  JsonWriter json;
  json.open('{').key("shape").text(run.settings.shape.text()).key("ways").open('[');
  for (const Way& way : found.ways) json.open('[').value(way.node).value(way.from).value(way.to).close(']');
  json.close(']');
  print_books(json, found.books);
  print_problems(json, found.problems);
  json.close('}');
  std::puts("");
  return found.problems.empty();
}

bool measure(const Options& options) {
  if (options.link) {
    const LinkReport report = measure_link(*options.link);
    print_link(report);
    return report.problems.empty();
  }
  if (options.put) {
    const PutReport report = measure_put(*options.put);
    print_put(report);
    return report.problems.empty();
  }
  if (const auto why = torus::refusal(options.run.load.pattern, options.run.settings.shape)) throw std::invalid_argument(*why);
  if (options.ways != 0) return print_ways(options);
  return options.faults != 0 ? print_faults(options) : print_curve(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::optional<Options> options = read_options(argc, argv);
    if (!options) {
      std::fprintf(stderr, "%s", kUsage.data());
      return 2;
    }
    return measure(*options) ? 0 : 1;
  } catch (const std::exception& error) {  // a shape, wire or pattern that cannot be
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
