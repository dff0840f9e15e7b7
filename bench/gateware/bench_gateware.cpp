// SPDX-License-Identifier: Apache-2.0
// Latency and throughput of the NIC of gateware/, of its router and of the node that merges, counted in simulated cycles; measure.hpp, router.hpp and node.hpp say
// what is counted.
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
#include <string_view>
#include <vector>

#include "node_rig.hpp"
#include "output.hpp"

namespace {

using namespace nanet::bench;
using nanet::gateware::HostTiming;

// Payloads are 46 bytes less. 110 and 1518: payloads of 64 and 1472.
constexpr std::array<std::size_t, 14> kFrameBytes{64, 65, 71, 72, 110, 128, 256, 512, 1024, 1214, 1280, 1500, 1518, 9018};
constexpr std::array<std::uint32_t, 4> kPacketsPerBuffer{1, 4, 16, 64};
constexpr std::array<std::size_t, 8> kWithHost{64, 128, 256, 512, 1024, 1280, 1518, 9018};
constexpr std::array<std::size_t, 2> kLong{64, 1518};
constexpr std::uint32_t kLongPacketsPerBuffer = 16;
constexpr std::size_t kMixedBytesMin = 64, kMixedBytesMax = 1518;
constexpr std::uint64_t kPacketsOfNode = 50;  // one of so many of a long run: they are of four boards, and longer
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max() / 2;

constexpr std::string_view kUsage = R"(usage: bench_gateware [OPTION...]
  --cycles N          of each frame size and buffer, and of each load of the router (400000)
  --packets N         of each long run, and of that with all sizes at random (20000)
  --host-write N      modelled host: cycles from the bus to memory (64)
  --host-read MIN-MAX modelled host: cycles until a read is answered (100-140)
  --host-busy N       modelled host: cycles of 1024 in which its bus takes nothing (32)
  --host-seed N       modelled host: of its random numbers (1)
  --json              one object in place of tables
or: bench_gateware --play-node BOARDS.pcap MERGED.pcap
  what four boards sent, through the simulated node: a recording of its packets of merged events
)";

struct Options {
  std::uint64_t cycles = 400'000, packets = 20'000;
  HostTiming host{.write_cycles = 64, .read_cycles_min = 100, .read_cycles_max = 140, .busy_per_1024 = 32, .seed = 1};
  bool json = false;
};

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_option(std::string_view name, std::string_view value, Options& options) {
  if (name == "--cycles") return read_number(value, options.cycles) && options.cycles != 0;
  if (name == "--packets") return read_number(value, options.packets) && options.packets != 0;
  if (name == "--host-write") return read_number(value, options.host.write_cycles);
  if (name == "--host-busy") return read_number(value, options.host.busy_per_1024);
  if (name == "--host-seed") return read_number(value, options.host.seed);
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

Case run(std::size_t frame_bytes, std::uint32_t packets_per_buffer, std::uint64_t packets, std::uint64_t cycles,
         const HostTiming& host) {
  return {frame_bytes, packets_per_buffer,
          measure({.frame_bytes = {frame_bytes},
                   .packets_per_buffer = packets_per_buffer,
                   .packets_max = packets,
                   .cycles_max = cycles,
                   .host = host})};
}

// Every size of a frame as often as any other, in an order of its own.
Case run_mixed(std::uint64_t packets) {
  std::vector<std::size_t> sizes(kMixedBytesMax - kMixedBytesMin + 1), order;
  std::iota(sizes.begin(), sizes.end(), kMixedBytesMin);
  std::mt19937_64 random(1);
  while (order.size() < packets) {
    for (std::size_t k = sizes.size(); k > 1; --k) std::swap(sizes[k - 1], sizes[random() % k]);
    order.insert(order.end(), sizes.begin(), sizes.end());
  }
  return {
      kMixedBytesMax, kLongPacketsPerBuffer,
      measure({.frame_bytes = order, .packets_per_buffer = kLongPacketsPerBuffer, .packets_max = packets, .cycles_max = kNoLimit})};
}

Report measure_all(const Options& options) {
  Report report;
  const HostTiming ready{};
  for (const std::size_t bytes : kFrameBytes) {
    for (const std::uint32_t packets : kPacketsPerBuffer)
      report.cases.push_back(run(bytes, packets, kNoLimit, options.cycles, ready));
  }
  for (const std::size_t bytes : kLong)
    report.long_runs.push_back(run(bytes, kLongPacketsPerBuffer, options.packets, kNoLimit, ready));
  report.mixed.push_back(run_mixed(options.packets));
  double cycles = 0, wall_s = 0;
  for (const auto* cases : {&report.cases, &report.long_runs, &report.mixed}) {
    for (const Case& one : *cases) {
      cycles += static_cast<double>(one.measured.cycles);
      wall_s += one.measured.wall_s;
    }
  }
  report.cycles_per_wall_second = cycles / wall_s;
  report.host = options.host;
  for (const std::size_t bytes : kWithHost)
    report.with_host.push_back(run(bytes, kLongPacketsPerBuffer, kNoLimit, options.cycles, options.host));
  report.router = measure_router(options.cycles);
  report.node = measure_node(std::max<std::uint64_t>(options.packets / kPacketsOfNode, 10));
  return report;
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
    const Report report = measure_all(*options);
    options->json ? print_json(report) : print_tables(report);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
