// SPDX-License-Identifier: Apache-2.0
// Latency and throughput of the NIC of gateware/, of its router and of the node that merges, counted in simulated cycles; measure.hpp, conditions.hpp,
// router.hpp and node.hpp say what is counted.
// Prints tables, or with --json one object.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <exception>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "node_rig.hpp"
#include "output.hpp"

namespace {

using namespace nanet::bench;
using nanet::gateware::HostTiming;
namespace gateware = nanet::gateware;

constexpr std::array<std::size_t, 14> kPayloadBytes{18, 19, 25, 26, 64, 82, 210, 466, 978, 1168, 1234, 1454, 1472, 8972};
constexpr std::array<std::uint32_t, 4> kPacketsPerBuffer{1, 4, 16, 64};
constexpr std::array<std::size_t, 8> kWithHost{18, 82, 210, 466, 978, 1234, 1472, 8972};
constexpr std::array<std::size_t, 2> kLong{18, 1472};
constexpr std::uint32_t kLongPacketsPerBuffer = 16;
constexpr std::size_t kMixedBytesMin = 18, kMixedBytesMax = 1472;
constexpr std::uint64_t kStarts = 240, kStartsOfAQuickRun = 24;
constexpr std::uint64_t kCyclesOfAQuickRun = 20'000;  // and less: of each case
constexpr std::uint64_t kPacketsOfNode = 50;          // one of so many of a long run: they are of four boards, and longer
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max() / 2;

constexpr std::string_view kUsage = R"(usage: bench_gateware [OPTION...]
  --cycles N          of each frame size and buffer, of each condition, and of each load of the router (400000)
  --packets N         of each long run, and of that with all sizes at random (20000)
  --host-write N      modelled host: cycles from the bus to memory (64)
  --host-read MIN-MAX modelled host: cycles until a read is answered (100-140)
  --host-busy N       modelled host: cycles of 1024 in which its bus takes nothing (32)
  --host-seed N       modelled host: of its random numbers (1)
  --line-gbps N       10, or 1: the NIC with GMII, whose cycle is 8 ns (10)
  --damage KIND       to see that it is found: payload, bit, stale, length, offset, source or stamp, on the way to memory (none);
                      no tables then, and only the first of them is measured
  --json              one object in place of tables
or: bench_gateware --play-node BOARDS.pcap MERGED.pcap
  what four boards sent, through the simulated node: a recording of its packets of merged events
Exit status: 0, 1 when a packet is not what was sent or a bound is passed, 2 usage.
)";

struct Options {
  std::uint64_t cycles = 400'000, packets = 20'000;
  HostTiming host{.write_cycles = 64, .read_cycles_min = 100, .read_cycles_max = 140, .busy_per_1024 = 32, .seed = 1};
  gateware::Line line = gateware::Line::gbps_10;
  Damage damage = Damage::none;
  bool json = false;
};

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_line(std::string_view text, gateware::Line& line) {
  if (text != "1" && text != "10") return false;
  line = text == "1" ? gateware::Line::gbps_1 : gateware::Line::gbps_10;
  return true;
}

bool read_damage(std::string_view text, Damage& damage) {
  const auto found = std::ranges::find(kDamageNames, text);
  damage = static_cast<Damage>(found - kDamageNames.begin());
  return found != kDamageNames.end();
}

bool read_option(std::string_view name, std::string_view value, Options& options) {
  if (name == "--cycles") return read_number(value, options.cycles) && options.cycles != 0;
  if (name == "--packets") return read_number(value, options.packets) && options.packets != 0;
  if (name == "--host-write") return read_number(value, options.host.write_cycles);
  if (name == "--host-busy") return read_number(value, options.host.busy_per_1024);
  if (name == "--host-seed") return read_number(value, options.host.seed);
  if (name == "--line-gbps") return read_line(value, options.line);
  if (name == "--damage") return read_damage(value, options.damage);
  const std::size_t dash = value.find('-');
  return name == "--host-read" && dash != value.npos && read_number(value.substr(0, dash), options.host.read_cycles_min) &&
         read_number(value.substr(dash + 1), options.host.read_cycles_max);
}

std::optional<Options> read_options(int argc, char** argv) {
  Options options;
  for (int k = 1; k < argc; ++k) {
    if (std::string_view(argv[k]) == "--json") {
      options.json = true;
    } else if (k + 1 == argc || !read_option(argv[k], argv[k + 1], options)) {
      return std::nullopt;
    } else {
      ++k;
    }
  }
  return options;
}

// The measurements of one call of the program.
class Session {
 public:
  explicit Session(const Options& options) : options_(options) {}

  Report measure_all() {
    Report report{.line = options_.line, .host = options_.host};
    for (const std::size_t bytes : kPayloadBytes) {
      for (const std::uint32_t packets : kPacketsPerBuffer)
        report.cases.push_back(run(bytes, packets, kNoLimit, options_.cycles, {}));
    }
    if (options_.damage != Damage::none) return report;
    for (const std::size_t bytes : kLong) {
      report.long_runs.push_back(run(bytes, kLongPacketsPerBuffer, options_.packets, kNoLimit, {}));
    }
    report.mixed.push_back(run_mixed());
    report.cycles_per_wall_second = cycles_ / wall_s_;
    for (const std::size_t bytes : kWithHost) {
      report.with_host.push_back(run(bytes, kLongPacketsPerBuffer, kNoLimit, options_.cycles, options_.host));
    }
    const bool quick = options_.cycles <= kCyclesOfAQuickRun;
    report.conditions = measure_conditions(options_.cycles, quick ? kStartsOfAQuickRun : kStarts, options_.line);
    report.router = measure_router(options_.cycles);
    report.node = measure_node(std::max<std::uint64_t>(options_.packets / kPacketsOfNode, 10));
    return report;
  }

 private:
  Case run(const Traffic& traffic) {
    const Measured measured = measure(traffic);
    cycles_ += static_cast<double>(measured.cycles);
    wall_s_ += measured.wall_s;
    return {std::ranges::max(traffic.payload_bytes), traffic.packets_per_buffer, measured};
  }

  Case run(std::size_t payload_bytes, std::uint32_t packets_per_buffer, std::uint64_t packets, std::uint64_t cycles,
           const HostTiming& host) {
    return run({.payload_bytes = {payload_bytes},
                .packets_per_buffer = packets_per_buffer,
                .packets_max = packets,
                .cycles_max = cycles,
                .host = host,
                .line = options_.line,
                .damage = options_.damage});
  }

  // Every size of a frame as often as any other, in an order of its own.
  Case run_mixed() {
    std::vector<std::size_t> sizes(kMixedBytesMax - kMixedBytesMin + 1), order;
    std::iota(sizes.begin(), sizes.end(), kMixedBytesMin);
    std::mt19937_64 random(1);
    while (order.size() < options_.packets) {
      for (std::size_t k = sizes.size(); k > 1; --k) std::swap(sizes[k - 1], sizes[random() % k]);
      order.insert(order.end(), sizes.begin(), sizes.end());
    }
    return run({.payload_bytes = order,
                .packets_per_buffer = kLongPacketsPerBuffer,
                .packets_max = options_.packets,
                .cycles_max = kNoLimit,
                .line = options_.line,
                .damage = options_.damage});
  }

  const Options options_;
  double cycles_ = 0, wall_s_ = 0;  // with the host ready at once
};

// What a reader of the tables would not see at once. Whether there is nothing.
bool print_problems(const Report& report) {
  const std::vector<std::string> problems = report.problems();
  for (const std::string& problem : problems) std::fprintf(stderr, "error: %s\n", problem.c_str());
  return problems.empty();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--play-node") {
    try {
      play_node(argv[2], argv[3]);
      return 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "error: %s\n", error.what());
      return 1;
    }
  }
  const std::optional<Options> options = read_options(argc, argv);
  if (!options) {
    std::fprintf(stderr, "%s", kUsage.data());
    return 2;
  }
  try {
    const Report report = Session(*options).measure_all();
    if (options->damage == Damage::none) options->json ? print_json(report) : print_tables(report);
    return print_problems(report) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
