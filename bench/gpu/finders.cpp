// SPDX-License-Identifier: Apache-2.0
// bench_gpu_finders: the ring finders on a GPU, events in device memory.
//
//   --finder NAME        only this one; `records`: only the second part; without it all of both
//   --events 1048576, --records 16777216, --limit-s 300, --short: a smoke of it, --csv FILE
//
// First the rate of each on events in device memory, beside one core of this machine, and how long a running kernel takes for one event and for 64. Then
// the MATH fit of records in device memory (`record_fit`; the case is how many hits each has), beside a copy of as many bytes within that memory (`copy`).
// `bytes_per_s` are bytes read and bytes written. All bits are compared with the CPU's. A cell that has no meaning for its row is empty.
// Exit status: 0; 1 events differ from the CPU's; 2 no GPU or wrong options; 3 something took too long.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "../micro/finder_quality.hpp"
#include "common.hpp"
#include "gpu/record_fit.hpp"
#include "nanet/gpu/ring_finder.hpp"
#include "nanet/rich/finder.hpp"
#include "nanet/setup_error.hpp"
#include "rich/math_fit.hpp"

using namespace nanet;
using bench::Csv;

namespace {

struct Case {
  const char* name;  // of `nanet physics`
  std::uint32_t ring_count;
  double distance_min_mm;
};

struct CsvRow {
  std::string finder, name;
  std::string events_per_s, bytes_per_s, cpu_events_per_s, latency_1_us, latency_64_us, differ;
};

void write_row(Csv& csv, const CsvRow& row) {
  csv.line(row.finder + "," + row.name + "," + row.events_per_s + "," + row.bytes_per_s + "," + row.cpu_events_per_s + "," +
           row.latency_1_us + "," + row.latency_64_us + "," + row.differ);
}

std::string text(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.6g", value);
  return digits;
}

double cpu_ns_per_event(const rich::FinderConfig& config, std::span<const event::Event> hits, std::span<rich::EventRings> rings) {
  double best = 1e18;
  for (int pass = 0; pass < 3; ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    rich::find_rings(config, hits, rings);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / static_cast<double>(hits.size()));
  }
  for (rich::EventRings& found : rings) found.more_rings = 0;  // which the finder's kernel alone does not look for
  return best;
}

// Of each finder, or only of one. Returns how many events differ from the CPU's.
std::size_t run_finders(const Case& row, std::size_t event_count, const std::string& only, Csv& csv) {
  const std::size_t different = std::min<std::size_t>(event_count, 8192);  // events made; repeated up to event_count
  const auto events = bench::make_events({row.name, row.ring_count, 12, 1.2, row.distance_min_mm}, different, 2);
  std::vector<event::Event> hits;
  for (std::size_t e = 0; e < event_count; ++e)
    hits.push_back({events[e % different].hits.data(), events[e % different].hit_count});
  gpu::RingFinder device(hits);
  std::vector<rich::EventRings> expected(different);
  std::size_t all_differ = 0;
  for (std::uint32_t k = 0; k < rich::kFinderCount; ++k) {
    const rich::FinderConfig config{.kind = static_cast<rich::FinderKind>(k)};
    const char* const finder = rich::finder_name(config.kind);
    if (!only.empty() && only != finder) continue;
    const double cpu_ns = cpu_ns_per_event(config, std::span(hits).first(different), expected);
    double seconds = device.find(config);
    for (int pass = 0; pass < 4 && seconds < 1.0; ++pass) seconds = std::min(seconds, device.find(config));
    const std::vector<rich::EventRings> found = device.rings();
    std::size_t differ = 0;
    for (std::size_t e = 0; e < found.size(); ++e)
      differ += std::memcmp(&found[e], &expected[e % different], sizeof(rich::EventRings)) != 0;
    const double rate = static_cast<double>(event_count) / seconds;
    const double one_us = 1e6 * device.latency_seconds(config, 1);
    const double many_us = 1e6 * device.latency_seconds(config, 64);
    std::printf("%-18s %-10s %12.3f %12.3f %8.1f %10.2f %10.2f %8zu\n", row.name, finder, rate * 1e-6, 1e3 / cpu_ns,
                rate * 1e-9 * cpu_ns, one_us, many_us, differ);
    std::fflush(stdout);
    write_row(csv, {finder, row.name, text(rate), "", text(1e9 / cpu_ns), text(one_us), text(many_us), std::to_string(differ)});
    all_differ += differ;
  }
  return all_differ;
}

// `count` records of one clean ring; hits_each hits, or as many as the ring happens to have (mean 20) for 0.
std::vector<gpu::EventRecord> make_records(std::size_t count, std::uint32_t hits_each) {
  std::vector<gpu::EventRecord> records;
  const auto events = bench::make_events({"records", 1, hits_each == 0 ? 20.0 : 26.0, 0, 0}, 4 * count, 3);
  for (const emulate::McEvent& event : events) {
    if (records.size() == count) break;
    const std::uint32_t take = hits_each != 0 ? hits_each : std::min(event.hit_count, gpu::kRecordHitsMax);
    if (event.hit_count < take) continue;
    gpu::EventRecord& record = records.emplace_back();
    record.hit_count = static_cast<std::uint8_t>(take);
    for (std::uint32_t k = 0; k < take; ++k) record.hits[k] = event.hits[k * event.hit_count / take];
    for (std::uint32_t k = take; k < gpu::kRecordHitsMax; ++k) record.hits[k] = 77;  // after the hits anything may lie
  }
  return records;
}

std::size_t count_different(const std::vector<gpu::EventRecord>& records, const std::vector<gpu::FittedCircle>& circles) {
  std::vector<rich::Ring> rings(records.size());
  std::vector<event::Event> events;
  for (const gpu::EventRecord& record : records) events.push_back({record.hits, record.hit_count});
  rich::fit_rings(events, rings);
  std::size_t differ = 0;
  for (std::size_t k = 0; k < circles.size(); ++k) {
    const rich::Ring& ring = rings[k % rings.size()];
    const gpu::FittedCircle expected{ring.x_mm, ring.y_mm, ring.radius_mm, ring.rms_mm};
    differ += std::memcmp(&circles[k], &expected, sizeof expected) != 0;
  }
  return differ;
}

// Returns how many records differ from the CPU's.
std::size_t run_records(std::size_t record_count, Csv& csv) {
  constexpr std::size_t kDifferent = 1u << 15;
  const std::size_t repeats = std::max<std::size_t>(record_count / kDifferent, 1);
  const std::size_t count = repeats * kDifferent;
  const double bytes = static_cast<double>(count * (sizeof(gpu::EventRecord) + sizeof(gpu::FittedCircle)));
  const std::size_t copied = static_cast<std::size_t>(bytes) / 2;
  const double copy_rate = 2.0 * static_cast<double>(copied) / gpu::RecordFit::copy_seconds(copied);
  std::printf(
      "\nMATH on %zu records of 64 B, 16 B of answer each: %.2f GB a pass; a copy of as many bytes, read and written: %.0f GB/s\n",
      count, bytes * 1e-9, copy_rate * 1e-9);
  write_row(csv, {"copy", "of as many bytes", "", text(copy_rate), "", "", "", ""});
  std::size_t all_differ = 0;
  std::printf("%-18s %12s %12s %14s %8s\n", "hits", "GPU [Gev/s]", "GPU [GB/s]", "of the copy", "differ");
  for (const std::uint32_t hits_each : {12u, 20u, 0u}) {
    const std::vector<gpu::EventRecord> records = make_records(kDifferent, hits_each);
    gpu::RecordFit device(records, repeats);
    double seconds = device.fit();
    for (int pass = 0; pass < 9; ++pass) seconds = std::min(seconds, device.fit());
    const std::size_t differ = count_different(records, device.circles());
    const double rate = static_cast<double>(count) / seconds;
    const std::string name = hits_each == 0 ? "Poisson of mean 20" : std::to_string(hits_each);
    std::printf("%-18s %12.2f %12.0f %13.1f%% %8zu\n", name.c_str(), rate * 1e-9, bytes / seconds * 1e-9,
                100.0 * bytes / seconds / copy_rate, differ);
    std::fflush(stdout);
    write_row(csv, {"record_fit", name, text(rate), text(bytes / seconds), "", "", "", std::to_string(differ)});
    all_differ += differ;
  }
  return all_differ;
}

int run(const bench::Options& options) {
  Csv csv(options.text("--csv"));
  const std::string only = options.text("--finder");
  if (!only.empty() && only != "records") bench::finder_of(only);  // throws for one that is not there
  const std::size_t event_count = std::max<std::size_t>(options.count("--events", options.is_short() ? 1u << 13 : 1u << 20), 64);
  const std::size_t record_count = options.count("--records", options.is_short() ? 1u << 16 : 1u << 24);
  bench::limit_run_time(static_cast<unsigned>(options.count("--limit-s", 300)));
  bench::describe_machine("bench_gpu_finders", csv);
  csv.line("# events: " + std::to_string(event_count));
  csv.line("finder,case,events_per_s,bytes_per_s,cpu_events_per_s,latency_1_us,latency_64_us,events_that_differ");
  std::size_t differ = 0;
  if (only != "records") {
    std::printf("%zu events\n%-18s %-10s %12s %12s %8s %10s %10s %8s\n", event_count, "case", "finder", "GPU [Mev/s]",
                "core [Mev/s]", "ratio", "1 ev. [us]", "64 ev. [us]", "differ");
    for (const Case& row : {Case{"single_ring", 1, 0}, Case{"two_rings_apart", 2, 60}, Case{"three_rings_apart", 3, 60}}) {
      differ += run_finders(row, event_count, only, csv);
    }
  }
  if (only.empty() || only == "records") differ += run_records(record_count, csv);
  return differ != 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(bench::Options(argc, argv, {"--finder", "--events", "--records", "--limit-s", "--csv"}));
  } catch (const SetupError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
