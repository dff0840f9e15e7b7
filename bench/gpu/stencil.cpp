// SPDX-License-Identifier: Apache-2.0
// bench_gpu_stencil: Jacobi sweeps on GPUs, against a copy within the GPU's memory, and tiles through PCIe, against copies alone.
//
//   --parts check,resident,tile   which of the three; --dtypes fp32,fp64
//   --sizes 16384,32768           of the field that stays, squares; --passes 1,2,3,4,6,8 sweeps a pass; --gpus 1,2 (as many as there are); --shares 1 a GPU
//   --tile-mb 64,256,1024,4096    of the tile that moves, fp32; --tile-sweeps 1,16,100; --tile-pass 8 sweeps a pass; --tile-chunk-mb: chosen
//   --repeats 5 (medians), --limit-s 300, --short: a smoke of it, --csv FILE
//   --tune 16384                  nothing but the table of variants that the kernels were chosen from, of fields of this size
//
// `fraction` counts an update as one cell read and one written, over the bytes of the copy: 1 is the most that one sweep a pass can reach.
// check compares with the library of the CPU, bit for bit. Exit status: 0; 1 cells differ from the CPU's; 2 no GPU or wrong options; 3 too long.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "common.hpp"
#include "nanet/flow/region.hpp"
#include "nanet/setup_error.hpp"
#include "stencil/jacobi.hpp"
#include "stencil_gpu/stencil.hpp"
#include "stencil_tune.hpp"

using namespace nanet;
using bench::Csv;

namespace {

constexpr const char* kColumns =
    "part,dtype,rows,columns,gpus,sweeps_per_pass,sweeps,seconds,updates_per_s,copy_bytes_per_s,fraction_of_copy,to_one_gpu,"
    "in_s,compute_s,out_s,transfer_s,to_transfer,cells_that_differ";

struct Row {
  std::string part, dtype;
  std::size_t rows = 0, columns = 0;
  int gpus = 1;
  std::uint32_t sweeps_per_pass = 0;
  std::uint64_t sweeps = 0;
  std::string seconds, updates, copy, fraction, to_one, in, compute, out, transfer, to_transfer, differ;
};

std::string text(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.6g", value);
  return digits;
}

void write_row(Csv& csv, const Row& row) {
  const std::string head = row.part + "," + row.dtype + "," + std::to_string(row.rows) + "," + std::to_string(row.columns) + "," +
                           std::to_string(row.gpus) + "," + std::to_string(row.sweeps_per_pass) + "," + std::to_string(row.sweeps);
  csv.line(head + "," + row.seconds + "," + row.updates + "," + row.copy + "," + row.fraction + "," + row.to_one + "," + row.in +
           "," + row.compute + "," + row.out + "," + row.transfer + "," + row.to_transfer + "," + row.differ);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double seconds_of(auto&& work) {
  const std::uint64_t begin_ns = bench::now_ns();
  work();
  return 1e-9 * static_cast<double>(bench::now_ns() - begin_ns);
}

std::vector<int> first_devices(int count, int shares = 1) {
  std::vector<int> devices;
  for (int k = 0; k < count * shares; ++k) devices.push_back(k / shares);
  return devices;
}

// ---- the bits of the CPU

template <class T>
std::size_t count_different(const std::vector<T>& found, const std::vector<T>& wanted) {
  std::size_t differ = 0;
  for (std::size_t k = 0; k < found.size(); ++k) differ += std::memcmp(&found[k], &wanted[k], sizeof(T)) != 0;
  return differ;
}

template <class T>
std::size_t run_check(const char* dtype, bool is_short, const std::vector<std::uint32_t>& passes, int gpus, Csv& csv) {
  const std::size_t rows = is_short ? 300 : 3001, columns = is_short ? 401 : 4099;
  const std::uint64_t sweeps = 29;
  const std::vector<T> start = bench::noise<T>(rows * columns);
  std::vector<T> wanted(start.size());
  std::vector<stencil::ChangeNorm> wanted_norms(2);
  const int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
  stencil::Jacobi<T> host({.rows = rows, .columns = columns, .norm_every = 10, .team = {.thread_count = threads}});
  host.load(start.data());
  host.run(sweeps, wanted_norms);
  host.store(wanted.data());
  std::size_t all_differ = 0;
  for (const std::uint32_t sweeps_per_pass : passes) {
    for (int count = 1; count <= gpus; ++count) {
      gpu::Jacobi<T> jacobi(
          {.rows = rows, .columns = columns, .sweeps_per_pass = sweeps_per_pass, .norm_every = 10, .devices = first_devices(count)});
      std::vector<T> found(start.size());
      std::vector<stencil::ChangeNorm> norms(2);
      jacobi.load(start.data());
      jacobi.run(sweeps, norms);
      jacobi.store(found.data());
      std::size_t differ = count_different(found, wanted);
      for (std::size_t k = 0; k < norms.size(); ++k) {
        differ += norms[k].sweep != wanted_norms[k].sweep || norms[k].max != wanted_norms[k].max || norms[k].l2 != wanted_norms[k].l2;
      }
      std::printf("check    %s %zu x %zu, %u a pass, %d GPU: %zu of %zu cells and norms differ from the CPU's\n", dtype, rows,
                  columns, sweeps_per_pass, count, differ, found.size() + norms.size());
      write_row(csv, {"check", dtype, rows, columns, count, sweeps_per_pass, sweeps, "", "", "", "", "", "", "", "", "", "",
                      std::to_string(differ)});
      all_differ += differ;
    }
  }
  return all_differ;
}

// ---- the field that stays

struct Resident {
  double updates_per_s;
  double copy_bytes_per_s;
};

template <class T>
Resident measure_resident(const gpu::JacobiConfig& config, const std::vector<T>& start, int repeats) {
  gpu::Jacobi<T> jacobi(config);
  jacobi.load(start.data());
  std::vector<double> copies, rates;
  const auto copy = [&] {
    for (int k = 0; k < 5; ++k) {
      const gpu::CopyTime time = jacobi.copy();
      copies.push_back(static_cast<double>(time.bytes) / time.seconds);
    }
  };
  const double inner = static_cast<double>(config.rows - 2) * static_cast<double>(config.columns - 2);
  const auto passes = static_cast<std::uint64_t>(std::max(4.0, 6e10 / (inner * config.sweeps_per_pass)));
  const std::uint64_t sweeps = passes * config.sweeps_per_pass;
  copy();
  jacobi.run(2 * config.sweeps_per_pass, {});
  for (int k = 0; k < repeats; ++k) {
    rates.push_back(inner * static_cast<double>(sweeps) / seconds_of([&] { jacobi.run(sweeps, {}); }));
  }
  copy();
  return {median(rates), *std::max_element(copies.begin(), copies.end())};
}

template <class T>
void run_resident(const char* dtype, std::size_t size, const std::vector<std::uint32_t>& passes,
                  const std::vector<std::uint32_t>& gpus, int shares, int repeats, Csv& csv) {
  const std::vector<T> start = bench::noise<T>(size * size);
  for (const std::uint32_t sweeps_per_pass : passes) {
    double one = 0;
    for (const std::uint32_t count : gpus) {
      const Resident found = measure_resident<T>(
          {.rows = size, .columns = size, .sweeps_per_pass = sweeps_per_pass, .devices = first_devices(static_cast<int>(count), shares)},
          start, repeats);
      if (count == 1) one = found.updates_per_s;
      const double fraction = found.updates_per_s * 2 * sizeof(T) / found.copy_bytes_per_s;
      const double to_one = one > 0 ? found.updates_per_s / one : 0;
      std::printf("resident %s %6zu x %-6zu %u GPU, %u a pass: %8.1f Gupdate/s, %.3f of a copy at %.0f GB/s, %.3f of one GPU\n",
                  dtype, size, size, count, sweeps_per_pass, found.updates_per_s * 1e-9, fraction, found.copy_bytes_per_s * 1e-9,
                  to_one);
      std::fflush(stdout);
      write_row(csv, {"resident", dtype, size, size, static_cast<int>(count), sweeps_per_pass, 0, "", text(found.updates_per_s),
                      text(found.copy_bytes_per_s), text(fraction), one > 0 ? text(to_one) : "", "", "", "", "", "", ""});
    }
  }
}

// ---- the tile that moves

gpu::TileTimes median_of(std::vector<gpu::TileTimes> times) {
  std::sort(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.total_seconds < b.total_seconds; });
  return times[times.size() / 2];
}

void say_tile(const char* part, std::size_t rows, std::size_t columns, std::uint32_t per_pass, std::uint64_t sweeps,
              const gpu::TileTimes& times, double transfer, Csv& csv) {
  const double updates = static_cast<double>(rows - 2) * static_cast<double>(columns - 2) * static_cast<double>(sweeps);
  std::printf(
      "%-8s fp32 %6zu x %-6zu %4llu sweeps: in %8.3f ms, compute %8.3f ms, out %8.3f ms, total %8.3f ms, %.3f of the way alone\n",
      part, rows, columns, static_cast<unsigned long long>(sweeps), 1e3 * times.in_seconds, 1e3 * times.compute_seconds,
      1e3 * times.out_seconds, 1e3 * times.total_seconds, times.total_seconds / transfer);
  std::fflush(stdout);
  write_row(csv, {part, "fp32", rows, columns, 1, per_pass, sweeps, text(times.total_seconds), text(updates / times.total_seconds),
                  "", "", "", text(times.in_seconds), text(times.compute_seconds), text(times.out_seconds), text(transfer),
                  text(times.total_seconds / transfer), ""});
}

void run_tile(std::size_t megabytes, const std::vector<std::uint32_t>& sweep_counts, std::size_t chunk_bytes,
              std::uint32_t per_pass, int repeats, Csv& csv) {
  const auto columns = static_cast<std::size_t>(std::sqrt(static_cast<double>(megabytes << 20) / sizeof(float))) / 32 * 32;
  const std::size_t rows = (megabytes << 20) / sizeof(float) / columns;
  const flow::Region memory({.name = "tile", .bytes = rows * columns * sizeof(float), .huge_pages = true, .locked = false});
  const std::span<float> tile{reinterpret_cast<float*>(memory.data()), rows * columns};
  std::fill(tile.begin(), tile.end(), 1.0f);
  std::fill_n(tile.begin(), columns, 2.0f);
  gpu::JacobiTile<float> mover({.rows = rows, .columns = columns, .sweeps_per_pass = per_pass, .chunk_bytes = chunk_bytes}, tile);
  const auto repeated = [&](auto&& move) {
    std::vector<gpu::TileTimes> times;
    for (int k = 0; k < repeats; ++k) times.push_back(move());
    return median_of(times);
  };
  mover.stream(per_pass);  // once before, for the clocks
  const gpu::TileTimes alone = repeated([&] { return mover.transfer(); });
  say_tile("transfer", rows, columns, per_pass, 0, alone, alone.total_seconds, csv);
  for (const std::uint64_t sweeps : sweep_counts) {
    say_tile("paper", rows, columns, per_pass, sweeps, repeated([&] { return mover.move_sweep_move(sweeps); }), alone.total_seconds,
             csv);
    say_tile("stream", rows, columns, per_pass, sweeps, repeated([&] { return mover.stream(sweeps); }), alone.total_seconds, csv);
  }
}

// ---- all of it

double copy_bytes_per_s() {
  constexpr std::size_t kSide = 16384;
  gpu::Jacobi<float> field({.rows = kSide, .columns = kSide});
  double best = 0;
  for (int k = 0; k < 10; ++k) {
    const gpu::CopyTime time = field.copy();
    best = std::max(best, static_cast<double>(time.bytes) / time.seconds);
  }
  return best;
}

int run_tune(std::int32_t size, int repeats, Csv& csv) {
  const double copy = copy_bytes_per_s();
  std::printf("a copy: %.0f GB/s; the best of each variant: %s\n", copy * 1e-9, bench::kTuneColumns);
  csv.line("# copy_bytes_per_s: " + text(copy));
  csv.line(bench::kTuneColumns);
  bench::tune<float>("fp32", size, repeats, copy, csv);
  bench::tune<double>("fp64", size, repeats, copy, csv);
  return 0;
}

int run(const bench::Options& options) {
  const bool is_short = options.is_short();
  Csv csv(options.text("--csv"));
  bench::limit_run_time(static_cast<unsigned>(options.count("--limit-s", 300)));
  bench::describe_machine("bench_gpu_stencil", csv);
  const int repeats = static_cast<int>(std::max<std::uint64_t>(options.count("--repeats", is_short ? 1 : 5), 1));
  if (!options.text("--tune").empty()) return run_tune(static_cast<std::int32_t>(options.count("--tune", 16384)), repeats, csv);
  int there = 0;
  gpu::check(cudaGetDeviceCount(&there), "cudaGetDeviceCount");
  std::vector<std::uint32_t> gpus = options.counts("--gpus", "1,2,4,8");
  std::erase_if(gpus, [&](std::uint32_t count) { return count > static_cast<std::uint32_t>(there); });
  const auto shares = static_cast<int>(std::max<std::uint64_t>(options.count("--shares", 1), 1));
  const auto passes = options.counts("--passes", "1,2,3,4,6,8");
  const auto parts = options.list("--parts", "check,resident,tile");
  const auto wants = [&](const char* part) { return std::find(parts.begin(), parts.end(), part) != parts.end(); };
  const auto dtypes = options.list("--dtypes", "fp32,fp64");
  csv.line("# gpus: " + std::to_string(there));
  csv.line(kColumns);
  std::size_t differ = 0;
  for (const std::string& dtype : dtypes) {
    const bool is_fp32 = dtype == "fp32";
    if (!is_fp32 && dtype != "fp64")
      throw SetupError("there is no dtype '" + dtype + "'", "fp32 and fp64 can be swept", "take these");
    if (wants("check")) {
      differ += is_fp32 ? run_check<float>("fp32", is_short, passes, there, csv)
                        : run_check<double>("fp64", is_short, passes, there, csv);
    }
    if (!wants("resident")) continue;
    for (const std::uint32_t size : options.counts("--sizes", is_short ? "2048" : "16384,32768")) {
      if (is_fp32) run_resident<float>("fp32", size, passes, gpus, shares, repeats, csv);
      if (!is_fp32) run_resident<double>("fp64", size, passes, gpus, shares, repeats, csv);
    }
  }
  if (wants("tile")) {
    const auto per_pass = static_cast<std::uint32_t>(options.count("--tile-pass", 8));
    for (const std::uint32_t megabytes : options.counts("--tile-mb", is_short ? "64" : "64,256,1024,4096")) {
      run_tile(megabytes, options.counts("--tile-sweeps", is_short ? "4" : "1,16,100"), options.count("--tile-chunk-mb", 0) << 20,
               per_pass, repeats, csv);
    }
  }
  return differ != 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(bench::Options(argc, argv,
                              {"--parts", "--dtypes", "--sizes", "--passes", "--gpus", "--shares", "--tile-mb", "--tile-sweeps",
                               "--tile-chunk-mb", "--tile-pass", "--repeats", "--limit-s", "--csv", "--tune"}));
  } catch (const SetupError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
