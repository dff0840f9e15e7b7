// SPDX-License-Identifier: Apache-2.0
// The link of a KM3NeT floor, simulated in half bits: reset and aligned again and again, with receivers that are wrong beside the right one; and loaded, at both rates.
// Prints tables, or with --json one object.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

#include "json_writer.hpp"
#include "model/km3/phase_test.hpp"
#include "model/km3/traffic_test.hpp"

namespace {

using namespace nanet::gateware::km3;
using nanet::bench::JsonWriter;

constexpr std::uint64_t kResetsOfTheTest = 4320;  // 12 hours, one each 10 s
constexpr std::uint64_t kControlShare = 20;       // of the resets, for each that is wrong
constexpr std::uint64_t kControlResetsMin = 20;
constexpr double kPayloadFractionMin = 0.99;

constexpr std::string_view kUsage = R"(usage: bench_km3_link [OPTION...]
  --resets N   of the link, each from any phase of every divider (4320)
  --frames N   on the idle link and on the busy one, at each line rate (100)
  --seed N     of all that is random (1)
  --json       one object in place of tables
Exit status: 0, 1 when a latency has more than one value, a wrong receiver has one, or the payload is less than 0.99 of what the line carries, 2 usage.
)";

struct Options {
  std::uint64_t resets = kResetsOfTheTest, frames = 100, seed = 1;
  bool json = false;
};

struct Control {
  const char* name;
  Settings settings;
  PhaseResult result;
};

struct Report {
  double fibre_down_bits = 0, fibre_up_bits = 0;
  PhaseResult phase;
  std::vector<Control> controls;
  std::vector<TrafficResult> lines;  // 800 Mb/s first

  bool good() const {
    bool all = phase.one_latency();
    for (const Control& control : controls) all = all && !control.result.one_latency();
    for (const TrafficResult& line : lines) {
      all = all && line.up && line.latency_values() == 1 && line.wrong() == 0 && line.payload_fraction >= kPayloadFractionMin;
    }
    return all;
  }
};

bool read_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number != 0;
}

std::optional<Options> read_options(int argc, char** argv) {
  Options options;
  for (int k = 1; k < argc; ++k) {
    const std::string_view name = argv[k];
    if (name == "--json") {
      options.json = true;
      continue;
    }
    std::uint64_t* const number = name == "--resets"   ? &options.resets
                                  : name == "--frames" ? &options.frames
                                  : name == "--seed"   ? &options.seed
                                                       : nullptr;
    if (number == nullptr || ++k == argc || !read_number(argv[k], *number)) return std::nullopt;
  }
  return options;
}

Report measure(const Options& options) {
  Report report;
  Settings settings;
  settings.seed = options.seed;
  report.fibre_down_bits = static_cast<double>(settings.down_delay) / 2;
  report.fibre_up_bits = static_cast<double>(settings.up_delay) / 2;
  report.phase = phase_test(settings, options.resets);
  const std::uint64_t resets = std::max(options.resets / kControlShare, kControlResetsMin);
  const auto control = [&](const char* name, Size size, Wrong wrong, bool pattern) {
    Settings own = settings;
    own.size = size;
    own.wrong = wrong;
    own.test_pattern = pattern;
    report.controls.push_back({name, own, phase_test(own, resets)});
  };
  control("slide_off", Size::short_frames, Wrong::slides_in_logic, false);
  control("elastic_buffer", Size::short_frames, Wrong::elastic_buffer, false);
  control("k28_7_accepted", Size::any_comma, Wrong::nothing, true);
  control("byte_order_free", Size::short_frames, Wrong::any_byte_order, false);
  for (const Size size : {Size::mbps_800, Size::mbps_2500}) {
    settings.size = size;
    report.lines.push_back(traffic_test(settings, options.frames));
  }
  return report;
}

// What the RTL's own monitors told.
std::uint64_t told(const Seen& seen) { return seen.error_trip + seen.error_phase; }

struct Named {
  const char* name;
  const Values& values;
};

std::array<Named, 5> of(const Seen& seen) {
  return {{{"down", seen.down},
           {"recovered", seen.recovered},
           {"floor_serialiser", seen.floor_tx},
           {"round_trip", seen.round_trip},
           {"recovered_on_shore", seen.third}}};
}

void write_phase(JsonWriter& json, const PhaseResult& result) {
  json.pair("resets", result.resets).pair("not_up", result.not_up).pair("latency_values", result.latency_values());
  json.pair("told_by_monitors", told(result.seen));
  for (const Named& one : of(result.seen)) {
    json.key(one.name).open('[');
    for (const std::uint64_t value : one.values.all()) json.value(static_cast<double>(value) / 2);
    json.close(']');
  }
}

void print_json(const Options& options, const Report& report) {
  JsonWriter json;
  json.open('{').pair("seed", options.seed).pair("fibre_down", report.fibre_down_bits).pair("fibre_up", report.fibre_up_bits);
  write_phase(json, report.phase);
  json.pair("payload_fraction", report.lines.front().payload_fraction);
  json.key("controls").open('[');
  for (const Control& control : report.controls) {
    json.open('{').key("name").text(control.name);
    write_phase(json, control.result);
    json.close('}');
  }
  json.close(']').key("lines").open('[');
  for (const TrafficResult& line : report.lines) {
    json.open('{').pair("line_mbps", line.line_mbps).pair("frame_words", line.frame_words).pair("frames", line.frames);
    json.pair("payload_fraction", line.payload_fraction).pair("latency_values", line.latency_values()).pair("wrong", line.wrong());
    json.pair("express_codes", line.seen.express_down.count() + line.seen.express_up.count()).close('}');
  }
  json.close(']').close('}');
  std::puts("");
}

void print_tables(const Report& report) {
  std::printf("%-20s %8s %8s %8s %8s\n", "receiver", "resets", "not up", "values", "told");
  const auto row = [](const char* name, const PhaseResult& result) {
    std::printf("%-20s %8llu %8llu %8zu %8llu\n", name, static_cast<unsigned long long>(result.resets),
                static_cast<unsigned long long>(result.not_up), result.latency_values(),
                static_cast<unsigned long long>(told(result.seen)));
  };
  row("right", report.phase);
  for (const Control& control : report.controls) row(control.name, control.result);
  std::printf("fibres: %.1f and %.1f bits\n", report.fibre_down_bits, report.fibre_up_bits);
  for (const Named& one : of(report.phase.seen)) {
    if (one.values.different() == 1) std::printf("%s: %.1f bits\n", one.name, static_cast<double>(one.values.last()) / 2);
  }
  for (const TrafficResult& line : report.lines) {
    std::printf("%u Mb/s: payload %.4f of what the line carries, %zu latency of codes and frames idle and busy, %llu wrong\n",
                line.line_mbps, line.payload_fraction, line.latency_values(), static_cast<unsigned long long>(line.wrong()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Options> options = read_options(argc, argv);
  if (!options) {
    std::fprintf(stderr, "%s", kUsage.data());
    return 2;
  }
  const Report report = measure(*options);
  options->json ? print_json(*options, report) : print_tables(report);
  return report.good() ? 0 : 1;
}
